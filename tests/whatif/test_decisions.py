"""`gangsched.simulate`: the scheduler's decisions for Python programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import gangsched
from gangsched.cli import main
from gangsched.core.constraints.taint_toleration import TaintToleration
from tests.cli.test_simulate import group, node, pod, workload

RACE = Path(__file__).resolve().parents[2] / "examples" / "race"


MEMBERS = [group("g", 3), *(pod(f"g-{number}", "g") for number in range(3))]


def test_a_gang_that_fits_is_bound_whole_to_nodes_with_names():
    decided = gangsched.simulate([node("n1", "2"), node("n2", "2")], MEMBERS)
    found = decided.of("g")
    assert (found.phase, found.is_whole, found.is_group, found.minimum, found.members) == (
        "Scheduled",
        True,
        True,
        3,
        3,
    )
    assert set(found.placements) == {"g-0", "g-1", "g-2"}
    assert set(found.placements.values()) == {"n1", "n2"}
    assert decided.waiting == ()


def test_a_gang_that_does_not_fit_holds_nothing_and_says_why():
    decided = gangsched.simulate(node("n1", "2"), MEMBERS)
    found = decided.of("g")
    assert (found.placements, found.is_whole, found.reason) == ({}, False, "NeverFits")
    assert "Only 2 of 3 members fit" in found.message
    assert decided.waiting == (found,)


def test_a_pod_without_a_group_is_a_decision_of_its_own():
    found = gangsched.simulate(node("n1", "1"), [pod("alone", ""), pod("second", "")])
    assert [(each.name, each.is_group, each.is_whole) for each in found.last] == [
        ("alone", False, True),
        ("second", False, False),
    ]
    assert found.of("alone").placements == {"alone": "n1"}


def test_objects_may_be_text_files_and_lists_of_these_in_any_argument(tmp_path):
    file = tmp_path / "nodes.yaml"
    file.write_text(yaml.safe_dump_all([node("n1", "2"), node("n2", "1")]))
    text = yaml.safe_dump_all(MEMBERS)
    as_objects = gangsched.simulate([node("n1", "2"), node("n2", "1")], MEMBERS)
    assert gangsched.simulate(file, text) == as_objects
    assert gangsched.simulate([file], [text]) == as_objects
    assert (
        gangsched.simulate([], (), file, json.dumps({"kind": "List", "apiVersion": "v1", "items": MEMBERS}))
        == as_objects
    )


def test_it_decides_as_the_command_does(capsys):
    files = sorted(RACE.glob("*.yaml"))
    assert main(["simulate", "--json", *map(str, files)]) == 0
    printed = json.loads(capsys.readouterr().out)
    decided = gangsched.simulate(files[-1], files[:-1])
    assert [(each.namespace, each.name, each.phase, each.reason, dict(each.placements)) for each in decided.last] == [
        (each["namespace"], each["name"], each["phase"], each["reason"], each["placements"])
        for each in printed["groups"]
    ]
    assert [(round(each.at_s, 3), each.name, each.reason) for each in decided.steps] == [
        (each["time"], each["name"], each["reason"]) for each in printed["events"]
    ]


def test_settings_are_those_of_the_operator(tmp_path):
    others = [group("g", 1), pod("g-0", "g", schedulerName="mine")]
    file = tmp_path / "config.yaml"
    file.write_text("schedulerNames: [mine]\n")
    for settings in ({"config": {"schedulerNames": ["mine"]}}, {"config": file}, {"scheduler_names": ["mine"]}):
        assert gangsched.simulate(node("n1", "2"), others, **settings).of("g").is_whole


def test_objects_without_a_namespace_are_in_the_named_one():
    found = gangsched.simulate(node("n1", "3"), MEMBERS, namespace="team")
    assert found.of("g", "team").is_whole


def test_groups_of_another_scheduler_are_named_with_it():
    others = [group("g", 1), pod("g-0", "g", schedulerName="gangshced"), pod("h-0", "h", schedulerName="volcano")]
    found = gangsched.simulate(node("n1", "2"), others)
    assert found.elsewhere == {("default", "g"): "gangshced", ("default", "h"): "volcano"}
    assert found.last == ()


def test_what_is_ignored_is_counted():
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    assert gangsched.simulate(node("n1", "3"), [*MEMBERS, service]).ignored == {"Service": 1}


@pytest.mark.parametrize(
    ("nodes", "pods", "told"),
    [
        (3, [], "nodes: is 3: give objects as dicts, YAML as text, or a Path"),
        ("my/nodes.yaml", [], "nodes: is 'my/nodes.yaml', the name of a file: write pathlib.Path('my/nodes.yaml')"),
        ([], [pod("a", ""), {"kind": "Pod"}], "pods, item 2: apiVersion is missing"),
        ("a: [", [], "nodes, document 1"),
        (Path("missing.yaml"), [], "missing.yaml: cannot be read"),
        ([], [group("g", 0)], "PodGroup g: the API server would refuse it"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_place(nodes, pods, told):
    with pytest.raises(gangsched.ManifestError, match=r".") as error:
        gangsched.simulate(nodes, pods)
    assert any(problem.startswith(told) or told in problem for problem in error.value.problems)


def test_pods_that_are_not_created_are_told_and_the_rest_is_decided():
    """Regression: one such workload ended the whole question, though the command line answered it."""
    found = gangsched.simulate(
        node("n1", "3"), [*MEMBERS, workload("Job", "j", pod_spec={"priorityClassName": "none"})]
    )
    [refused] = found.refused
    assert "Job j: 1 of its 1 pods are not created, because PriorityClass none is missing" in refused
    assert found.of("g").is_whole


def test_invalid_settings_are_named():
    with pytest.raises(gangsched.InvalidConfig, match=r"config: .*nonsense"):
        gangsched.simulate([], [], config={"nonsense": 1})


def test_a_name_that_is_not_there_names_those_that_are():
    with pytest.raises(KeyError, match="default/g"):
        gangsched.simulate(node("n1", "3"), MEMBERS).of("other")


def test_importing_the_package_loads_nothing_but_itself():
    done = subprocess.run(
        [sys.executable, "-c", "import gangsched, sys; print([m for m in sys.modules if m.startswith('gangsched.')])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="nothing"):
        _ = gangsched.nothing


def test_a_bug_over_a_node_is_an_exception_and_not_an_answer_without_that_node(monkeypatch):
    def fail(*_args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(TaintToleration, "set_node", fail)
    with pytest.raises(ZeroDivisionError):
        gangsched.simulate([node("n1", "2"), node("n2", "2")], MEMBERS)
