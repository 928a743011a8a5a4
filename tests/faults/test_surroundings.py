"""The soak's environment: kubelets reject pods that do not fit, the world follows its seed, the leader is known."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.api import ApiError
from tests.faults.contenders import Life
from tests.faults.history import CountedClock, History
from tests.faults.kubelet import Kubelets
from tests.faults.manifests import a_node, a_pod
from tests.faults.objects import Json
from tests.faults.rejections import Rejections
from tests.faults.world import NAMESPACE


class FakeApi:
    """Records every request; created objects are returned with a UID. Paths in `gone` answer 404."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.gone = ""
        self._uids = itertools.count(1)

    def post(self, path: str, body: Json) -> Json:
        self.asked.append(("POST", path, json.loads(json.dumps(body))))
        return body | {"metadata": body["metadata"] | {"uid": f"u{next(self._uids)}", "namespace": NAMESPACE}}

    def merge(self, path: str, body: Json) -> Json:
        if self.gone and path.startswith(self.gone):
            raise ApiError(404, reason="NotFound", message="")
        self.asked.append(("PATCH", path, body))
        return body

    def delete(self, path: str, *, grace_s: int | None = None) -> Json:
        self.asked.append(("DELETE", path, grace_s))
        return {}


def history_with(*nodes: Json, kubelets: Kubelets | None = None) -> History:
    history = History(CountedClock(), on_bound=kubelets.take if kubelets is not None else lambda _: None)
    history.nodes_replaced(nodes)
    return history


def kubelets_after(*pods: Json, api: FakeApi) -> Kubelets:
    """The kubelets after they have processed these pods."""
    kubelets = Kubelets(api)  # type: ignore[arg-type]
    history = history_with(a_node(cpu="2"), a_node("n2", cpu="2"), kubelets=kubelets)
    for pod in pods:
        history.pod_seen(pod)
    kubelets.stop()
    kubelets.serve(history)
    kubelets.join(10)
    return kubelets


def test_a_kubelet_rejects_the_pod_that_was_bound_too_late() -> None:
    api = FakeApi()
    pods = [a_pod(name, node="n1", cpu=cpu) for name, cpu in (("a", "1"), ("b", "2"), ("c", "1"), ("d", "100m"))]
    kubelets = kubelets_after(*pods, a_pod("e", node="n2", cpu="2"), api=api)

    assert [path.split("/")[-2] for _, path, _ in api.asked] == ["b", "d"]
    assert api.asked[0][2]["metadata"] == {"uid": "uid-b"}
    assert api.asked[0][2]["status"]["phase"] == "Failed"
    assert api.asked[0][2]["status"]["reason"] == "OutOfcpu"
    assert kubelets.rejected == {"OutOfcpu": 2}


@pytest.mark.parametrize(
    ("times", "gone", "changed", "wrong"),
    [
        ([0, 10, 30, 70, 150], (), 0, 0),
        ([0, 10, 20, 30, 40, 50], (), 0, 1),
        ([0, 10, 20, 30, 40, 50], ("u0",), 0, 0),
        ([0, 10, 20, 30, 40, 50], (), 15, 0),
        ([0, 0, 10, 10, 20, 20], (), 0, 0),
        ([0, 0, 10, 10, 20, 20, 30], (), 0, 1),
        ([0] * 8, (), 0, 0),
        ([0] * 8 + [310] * 8, (), 0, 0),
    ],
)
def test_rejections_of_one_maker_are_too_fast_if_more_than_five_that_exist_are_of_five_minutes(
    times: list[int], gone: tuple[str, ...], changed: float, wrong: int
) -> None:
    judge = Rejections()
    there = {f"u{number}" for number in range(len(times))} - set(gone)
    for number, at in enumerate(times):
        judge.note("a", "n1", f"u{number}", at=1000.0 + at, there=there, changed=1000.0 + changed if changed else 0.0)
        judge.note("b", "n1", f"u{number}", at=1000.0 + 400 * number, there=there)
    assert len(judge.wrong) == wrong


@pytest.mark.parametrize(
    ("log", "status", "expected", "found"),
    [
        ("all is well\n", 0, {0}, 0),
        ("all is well\n", -9, {-9}, 0),
        ("", None, set(), 0),
        ("all is well\n", 0, set(), 1),
        ("all is well\n", -9, set(), 1),
        ("could not renew the lease\n", 1, {-9}, 1),
        ("Traceback (most recent call last):\n  File …\n", 0, {0}, 1),
        ("the scheduler's core failed; this is a bug\n", None, set(), 1),
        ("another process binds pods of our schedulerName\n", None, set(), 1),
    ],
)
def test_the_end_and_the_log_of_a_process_tell_of_defects(
    tmp_path: Path, *, log: str, status: int | None, expected: set[int], found: int
) -> None:
    (tmp_path / "log").write_text(log)
    child: Any = SimpleNamespace(log=tmp_path / "log")
    life = Life(name="a-1", started=0.0, child=child, recording=tmp_path, ended=status, expected=expected)

    assert len(life.defects()) == found
