"""Groups are named by the kind of the object that declares them, so that kubectl finds it."""

from __future__ import annotations

import json

import pytest

from gangsched.cli import main
from gangsched.core.objects.declaration import GroupKey
from gangsched.views.resource_names import resource_of
from tests.whatif.test_expanded import node
from tests.whatif.test_native import GANG, job, pods, workload


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("gangsched PodGroup", "podgroup.gangsched.io"),
        ("gangsched PodGroup, job pods", "podgroup.gangsched.io"),
        ("native PodGroup", "podgroup.scheduling.k8s.io"),
        ("native CompositePodGroup", "compositepodgroup.scheduling.k8s.io"),
        ("volcano PodGroup", "podgroup.scheduling.volcano.sh"),
        ("Job", "gang.gangsched.io"),
        ("gangsched pods", "gang.gangsched.io"),
        ("", "gang.gangsched.io"),
    ],
)
def test_the_kind_of_a_group_is_that_of_the_object_that_declares_it(source, expected):
    assert resource_of(GroupKey("ns", "g"), source) == expected


def test_a_pod_without_a_group_is_a_pod():
    assert resource_of(GroupKey("ns", "p", "uid"), "") == "pod"


@pytest.mark.parametrize(
    ("objects", "name"),
    [([job(scheduling=GANG)], "train-pgt-0"), ([workload("workers"), *pods("workers", 3)], "workers")],
    ids=["Job", "Workload"],
)
def test_simulate_names_the_kind_of_a_native_group(tmp_path, capsys, objects, name):
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects, node("n", "3")]}))
    assert main(["simulate", str(file)]) == 0
    shown = capsys.readouterr().out
    assert main(["simulate", "-o", "json", str(file)]) == 0
    events = json.loads(capsys.readouterr().out)["events"]
    assert f"default/{name} (podgroup.scheduling.k8s.io)" in shown
    assert [(each["name"], each["resource"]) for each in events] == [(name, "podgroup.scheduling.k8s.io")]
