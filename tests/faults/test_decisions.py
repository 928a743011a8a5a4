"""The capacity checks: decisions that contradict known state, and bindings that contradict state known for certain."""

from __future__ import annotations

import pytest

from gangsched.core.objects.effects import BindPod, Effect
from gangsched.core.objects.events import Event, NodeGone, NodeSeen, NodesReplaced, PodSeen, PodsReplaced
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import PodBound
from tests.builders import node, pod
from tests.faults.decisions import Term, overbound, overcommitted, sent_by
from tests.faults.history import Bound
from tests.faults.manifests import a_node
from tests.faults.objects import Key
from tests.faults.recording import Recording, Turn

SMALL = NodeSeen(node("n1", cpu="2", pods=2))


def to(node_name: str, *names: str) -> list[Effect]:
    return [BindPod(f"uid-default/{name}", "default", name, node_name) for name in names]


def seen(*names: str, **fields) -> list[Event]:
    return [PodSeen(pod(name, **fields)) for name in names]


def recording(*turns: tuple[list[Event], list[Effect]]) -> Recording:
    return Recording(Policy(), tuple(Turn(tuple(events), 5.0, tuple(effects)) for events, effects in turns))


EXCEEDING = {
    "three where two fit": [([SMALL, *seen("a", "b", "c")], to("n1", "a", "b", "c"))],
    "beside what is there": [([SMALL, *seen("a", "b", node="n1"), *seen("c")], to("n1", "c"))],
    "beside a stranger": [([SMALL, *seen("a", cpu="1500m", node="n1", scheduler="x"), *seen("c")], to("n1", "c"))],
    "beside one that terminates": [
        ([SMALL, *seen("a", cpu="2", node="n1", terminating=True), *seen("c")], to("n1", "c"))
    ],
    "beside its own of an earlier turn": [
        ([SMALL, *seen("a", "b", "c")], to("n1", "a", "b")),
        ([], to("n1", "c")),
    ],
    "beside a listed one": [([SMALL, PodsReplaced((pod("a", cpu="2", node="n1"), pod("c")))], to("n1", "c"))],
    "beside an earlier term's, not seen yet": [
        ([SMALL, *seen("a", cpu="2"), *seen("c"), PodBound("uid-default/a", "n1")], to("n1", "c"))
    ],
    "on a node that went": [([SMALL, *seen("a")], []), ([NodeGone("n1")], to("n1", "a"))],
    "on a node that was not listed": [([SMALL, *seen("a")], []), ([NodesReplaced(())], to("n1", "a"))],
    "too many pods": [([SMALL, *seen("a", "b", "c", cpu="100m")], to("n1", "a", "b", "c"))],
}


@pytest.mark.parametrize("turns", EXCEEDING.values(), ids=EXCEEDING)
def test_a_decision_beyond_what_was_known_is_found(turns) -> None:
    (wrong,) = overcommitted(recording(*turns))

    assert "at 5.000 it bound default/" in wrong


def bound(name: str, *beside: str, cpu: int = 1000, at: float = 100.0, ours: bool = True, gap: bool = False) -> Bound:
    return Bound(
        uid=name,
        key=Key("default", name),
        node="n1",
        at=at,
        ours=ours,
        requests={"cpu": cpu, "pods": 1},
        beside=beside,
        gap=gap,
    )


def term(*sent: str, name: str = "a-1", started: float = 50.0) -> Term:
    return Term(name=name, started=started, sent=frozenset(sent))


NODES = {"n1": a_node("n1", cpu="2")}


@pytest.mark.parametrize(
    ("bindings", "terms"),
    [
        # The term's own three bindings.
        ([bound("x"), bound("y", "x"), bound("z", "x", "y")], [term("x", "y", "z")]),
        # Another scheduler's pod, older than the process.
        ([bound("x", cpu=2000, at=40.0, ours=False), bound("z", "x")], [term("z")]),
        ([bound("x", cpu=2000, at=40.0), bound("z", "x")], [term("z"), term("x", name="b-1", started=1.0)]),
    ],
)
def test_a_node_filled_beyond_what_its_term_must_have_known_is_found(bindings, terms) -> None:
    (wrong,) = overbound(bindings, NODES, terms)

    assert wrong.startswith("a-1 bound default/z to node n1, which then had cpu ")


def test_who_sent_what_is_read_from_the_recording() -> None:
    recorded = recording(([SMALL, *seen("a", "b")], to("n1", "a")), ([], to("n1", "b")))

    assert sent_by(recorded) == {"uid-default/a", "uid-default/b"}
