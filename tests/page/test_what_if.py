"""A manifest tried in a separate process."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import (
    Event,
    GroupsReplaced,
    NamespaceSeen,
    NamespacesReplaced,
    NodesReplaced,
    PodsReplaced,
    PriorityClassesReplaced,
    Synced,
)
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.results import PodBound
from gangsched.page import child
from gangsched.page.what_if import WhatIf
from gangsched.views.copied import pieces
from gangsched.views.diagnosis import from_cluster
from gangsched.views.diagnosis_json import as_object
from gangsched.whatif import subprocess_worker
from tests.builders import group, node, pod
from tests.cgroups import limited

NOW = 1_700_000_000.0
JOB = """
apiVersion: gangsched.io/v1alpha1
kind: PodGroup
metadata: {name: new}
spec: {minMember: 2}
---
apiVersion: batch/v1
kind: Job
metadata: {name: new}
spec:
  parallelism: 2
  completions: 2
  template:
    metadata: {labels: {gangsched.io/pod-group: new}}
    spec:
      schedulerName: gangsched
      priorityClassName: high
      restartPolicy: Never
      containers: [{name: main, image: any, resources: {requests: {cpu: CPU}}}]
"""
pytestmark = pytest.mark.slow


def facts() -> list[Event]:
    """Four cpus, two of them in use; two groups wait for more than the rest."""
    waits = [pod(f"waits-{number}", group="waits", cpu="2", created=NOW - 60) for number in range(2)]
    return [
        NamespacesReplaced((NamespaceSeen("default", ()),)),
        PriorityClassesReplaced((("high", PriorityClass(1000)), ("gentle", PriorityClass(1000, preempts=False)))),
        NodesReplaced((node("n1", cpu="4"),)),
        GroupsReplaced((group("runs", min_member=1), group("waits", min_member=2))),
        PodsReplaced((pod("runs-0", group="runs", node="n1", cpu="2"), *waits)),
        Synced(),
    ]


def patient(known: Callable[[], Sequence[Event]] = facts, **options: Any) -> WhatIf:
    """Its limit of the time is not reached by a process that a busy machine hardly lets run."""
    return WhatIf(known, Settings(), now=lambda: NOW, **({"within_s": 240.0} | options))


async def tried(manifests: str | bytes, known: Callable[[], list[Event]] = facts, **options: Any) -> dict[str, Any]:
    what_if = patient(known, **options)
    return await what_if.tried(manifests if isinstance(manifests, bytes) else manifests.encode())


@pytest.fixture
def answer(monkeypatch, capsysbinary) -> Callable[..., dict[str, Any]]:
    """The answer of what the process runs, here in the test's process, which takes a tenth of the time."""

    def answered(manifests: str | bytes, known: Iterable[object] = ()) -> dict[str, Any]:
        question = manifests if isinstance(manifests, bytes) else manifests.encode()
        sent = [(Settings(), NOW, question), *(known or pieces(facts()))]
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"".join(map(pickle.dumps, sent)))))
        monkeypatch.setattr(sys, "argv", ["subprocess_worker", str(1 << 30), "60"])
        monkeypatch.setattr(child, "limit", lambda *_: None)
        subprocess_worker.main()
        found: dict[str, Any] = msgspec.json.decode(capsysbinary.readouterr().out)
        return found

    return answered


async def test_what_fits_would_be_bound_on_a_named_node():
    found = await tried(JOB.replace("CPU", "1"))
    assert found["groups"] == [
        {
            "namespace": "default",
            "name": "new",
            "pod": False,
            "whole": True,
            "phase": "Scheduled",
            "reason": "Scheduled",
            "message": found["groups"][0]["message"],
            "members": 2,
            "minimum": 2,
            "nodes": {"n1": 2},
            "after": 0.0,
        }
    ]
    assert (found["more"], found["elsewhere"], found["ignored"], found["nodes"]) == (0, {}, {}, 0)


def test_what_does_not_fit_would_wait_and_the_reason_is_told(answer):
    found = answer(JOB.replace("CPU", "2").replace("high", "gentle"))
    [new] = found["groups"]
    assert (new["whole"], new["reason"], new["nodes"]) == (False, "Unschedulable", {})
    assert found["leaving"] == {"pods": 0, "groups": 0, "nodes": {}}
    assert "Only 1 of 2 members fit" in new["message"]


def test_what_is_bound_though_no_watch_has_shown_it_is_not_bound_again(answer):
    bound = [PodBound(uid, "n1") for uid in ("uid-default/waits-0", "uid-default/waits-1")]
    found = answer(JOB.replace("CPU", "1").replace("high", "gentle"), pieces([*facts(), *bound]))
    assert not found["groups"][0]["whole"]


def test_it_is_counted_who_would_leave_for_what_fits_nowhere_else(answer):
    found = answer(JOB.replace("CPU", "2"))
    [new] = found["groups"]
    assert (new["whole"], new["reason"], new["nodes"]) == (True, "Scheduled", {"n1": 2})
    assert found["leaving"] == {"pods": 1, "groups": 1, "nodes": {"n1": 1}}
    # The one that leaves gets its grace period.
    assert new["after"] >= 30


def test_strategies_are_compared_side_by_side(answer, monkeypatch):
    """Each puts the two members of a PodGroup elsewhere; without a PodGroup nothing names a strategy."""
    nodes = (node("n1", cpu="4"), node("n2", cpu="16"))
    known = list(pieces([NodesReplaced(nodes) if isinstance(fact, NodesReplaced) else fact for fact in facts()]))
    found = answer(JOB.replace("CPU", "1").replace("high", "gentle"), known)
    by_name = {each["strategy"]: each for each in found["strategies"]}
    assert list(by_name) == ["Pack", "Spread", "MinimalFragmentation", "BestFit", "MostUsed"]
    assert by_name["Pack"]["nodes"] == found["groups"][0]["nodes"]
    assert by_name["Spread"]["nodes"] == {"n1": 1, "n2": 1}
    assert {each["whole"] for each in found["strategies"]} == {1}
    job = JOB.partition("---")[2].replace("    metadata: {labels: {gangsched.io/pod-group: new}}\n", "")
    assert answer(job.replace("CPU", "1"))["strategies"] == []
    monkeypatch.setattr(child, "COMPARED_CPU_S", 0.0)
    assert answer(JOB.replace("CPU", "1"))["strategies"] == []


def test_new_nodes_in_the_manifest_count(answer):
    more = "apiVersion: v1\nkind: Node\nmetadata: {name: n2}\nstatus: {allocatable: {cpu: 64, pods: 110}}\n---"
    found = answer(more + JOB.replace("CPU", "2"))
    assert found["nodes"] == 1
    assert found["groups"][0]["whole"]


def test_what_is_applied_again_replaces_what_is_there(answer):
    again = "apiVersion: gangsched.io/v1alpha1\nkind: PodGroup\nmetadata: {name: waits}\nspec: {minMember: 1}\n"
    found = answer(again)
    assert [(each["name"], each["whole"], each["minimum"]) for each in found["groups"]] == [("waits", True, 1)]


@pytest.mark.parametrize(
    ("manifests", "told"),
    [
        (b"\xff\xfe", child.NOT_TEXT),
        (b"a: [", "the manifest"),
        (JOB.replace("high", "nope").encode(), "PriorityClass nope is missing"),
        (JOB.replace("  parallelism", "  suspend: true\n  parallelism").encode(), "spec.suspend is true"),
        (b"kind: Pod\napiVersion: v1\nmetadata: {}\n", "Pod has no metadata.name"),
        (b'{"a":' * 50_000, "nested in more than 200 levels"),
        (b"[" * 200_000, "nested in more than 200 levels"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_answered_with_a_sentence(answer, manifests, told):
    found = answer(manifests.replace(b"CPU", b"1"))
    assert found.keys() == {"error"}
    assert told in found["error"]


async def test_a_manifest_that_takes_all_memory_ends_its_own_process_alone():
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    body = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p, annotations: {{x: *i}}}}\n{bomb}"
    found = await tried("x: 1\n---\n" + bomb + body.replace("a: &a", "aa: &aa", 1))
    assert "error" in found


async def test_what_takes_too_long_is_ended():
    found = await tried(JOB.replace("CPU", "1"), within_s=0.05)
    assert found == {"error": child.too_slow(0.05)}


async def test_what_takes_too_much_of_the_processor_is_ended(monkeypatch):
    monkeypatch.setattr("gangsched.page.child.CPU_S", 1)
    many = JOB.replace("CPU", "1").replace("parallelism: 2", "parallelism: 90000")
    many = many.replace("completions: 2", "completions: 90000")
    found = await tried(many)
    assert found == {"error": child.too_much_processor_time(1)}


def test_a_fault_of_ours_is_told_as_one(answer):
    """No known input makes the process fail."""
    assert "which is a bug" in answer("", ["not events"])["error"]


async def test_what_would_help_a_group_is_what_explain_says():
    what_if = patient()
    found: Any = await what_if.helps("default", "waits")
    diagnosis = from_cluster(facts(), GroupKey("default", "waits"), policy=Settings().policy(), now=NOW)
    assert diagnosis is not None
    said = as_object(diagnosis)
    assert found == {name: said[name] for name in ("helps", "besides", "shortfall", "expectedStart")}
    assert found["helps"][0] == "the end of default/runs: the group fits then"
    assert (found["shortfall"]["fits"], found["shortfall"]["wanted"]) == (1, 2)
    assert await what_if.helps("default", "none") == {"error": child.NO_GROUP}


async def test_nothing_is_decided_about_a_part_of_the_cluster():
    assert await tried(JOB, lacks=lambda: "Only groups are seen.") == {"error": "Only groups are seen."}


async def test_one_is_tried_at_a_time(monkeypatch):
    monkeypatch.setattr("gangsched.page.child.TURN_S", 0.05)
    what_if = patient()
    one, other = await asyncio.gather(what_if.tried(JOB.replace("CPU", "1").encode()), what_if.tried(b"kind: X"))
    assert "groups" in one
    assert other == {"error": child.BUSY}


async def test_one_that_was_given_up_does_not_keep_the_next_one_waiting():
    what_if = patient()
    given_up = asyncio.create_task(what_if.helps("default", "waits"))
    await asyncio.sleep(0.1)
    given_up.cancel()
    assert "groups" in await what_if.tried(JOB.replace("CPU", "1").encode())


async def test_nothing_is_imported_from_the_folder_in_which_the_person_works(tmp_path, monkeypatch):
    (tmp_path / "pickle.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    assert "groups" in await tried(JOB.replace("CPU", "1"))


async def test_a_container_with_little_memory_left_tries_nothing(tmp_path):
    found = await tried(JOB, cgroup=limited(tmp_path, str(600 << 20), 200 << 20))
    assert found == {"error": child.NO_ROOM}


def test_only_what_is_listed_passes_to_the_process():
    """The operator's environment may have secrets, such as a proxy's password."""
    own = {"PATH": "/bin", "HTTPS_PROXY": "http://me:secret@proxy", "KUBECONFIG": "/etc/config", "LANG": "C"}
    passed = child.environment(own)
    assert passed == {"PATH": "/bin", "LANG": "C", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    assert {"PATH", "LANG"} == passed.keys() & set(child.PASSES)


def test_the_process_gives_way_to_its_parent_and_is_limited():
    asked = """
import json, os, resource
from pathlib import Path
from gangsched.page import child
child.limit(1 << 30, 7)
limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_CPU, resource.RLIMIT_CORE)]
print(json.dumps([os.nice(0), int(Path("/proc/self/oom_score_adj").read_text()), limits]))
"""
    said = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True).stdout
    assert json.loads(said) == [min(19, os.nice(0) + 5), 1000, [1 << 30, 7, 0]]


async def test_the_loop_goes_on_while_a_large_cluster_is_sent(record_property):
    running = tuple(pod(f"r{at}", group=f"g{at // 10}", node=f"n{at % 1000}", cpu="10m") for at in range(10_000))
    nodes = tuple(node(f"n{at}", cpu="8") for at in range(1_000))
    waiting = tuple(pod(f"waits-{number}", group="waits", cpu="2") for number in range(2))
    known = [*facts(), NodesReplaced(nodes), PodsReplaced((*waiting, *running)), Synced()]
    what_if = patient(lambda: known)
    assert "helps" in await what_if.helps("default", "waits")
    record_property("measured", f"the longest piece took {what_if.longest_piece_s * 1e3:.0f} ms")
    assert what_if.longest_piece_s < 0.1
