"""A machine's state in pieces of bounded size."""

from __future__ import annotations

import msgspec
import pytest

from gangsched.core.machine import Machine
from gangsched.core.objects.devices import DeviceKind
from gangsched.core.objects.events import (
    DeviceObjectsReplaced,
    Event,
    GroupsReplaced,
    NodesReplaced,
    PodsReplaced,
    Synced,
)
from gangsched.core.objects.offered_devices import Attribute, AttributeType, Device, ResourceSlice
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import PodBound
from gangsched.views.copied import MOST, Collected, Piece, pieces, weight
from tests.builders import group, node, pod

NOW = 1_000_000.0


def known(pods: int = 0, nodes: int = 2) -> list[Event]:
    """A standby's facts about a cluster with one waiting group and other, running pods."""
    running = [
        pod(f"theirs/r{each}", group=f"g{each // 10}", node=f"n{each % nodes}", cpu="10m") for each in range(pods)
    ]
    waiting = [pod(f"mine/w-{each}", group="w", cpu="5") for each in range(3)]
    machine = Machine(Policy())
    machine.handle(
        [
            NodesReplaced(tuple(node(f"n{each}", cpu="8", pods=200) for each in range(nodes))),
            GroupsReplaced((group("mine/w", min_member=3),)),
            PodsReplaced((*running, *waiting)),
        ],
        NOW,
    )
    return machine.facts()


@pytest.mark.parametrize("number", [0, 1, 2, 500, 2_000])
def test_events_arrive_as_they_were_sent(number):
    sent: list[Event] = [
        NodesReplaced((node(),)),
        PodsReplaced(tuple(pod(f"mine/p{each}") for each in range(number))),
        PodBound("uid", "n1"),
        Synced(),
    ]
    told = list(pieces(sent))
    assert all(sum(map(weight, each.values or ())) <= MOST for each in told)
    collected = Collected()
    for each in told:
        collected.take(each)
    assert collected.events == sent


@pytest.mark.slow
def test_a_piece_is_cut_by_what_is_in_its_values():
    """A piece of this weight takes some milliseconds to make, and 500 ResourceSlices of 64 devices take a second."""
    attributes = tuple(Attribute(f"gpu.example/a{each}", AttributeType.STRING, f"v{each}") for each in range(12))
    devices = tuple(Device(f"gpu-{each}", attributes, (("memory", "80Gi"),)) for each in range(64))
    slices = tuple(ResourceSlice(f"s{each}", "gpu.example", "n", node="n", devices=devices) for each in range(500))
    told = list(pieces([DeviceObjectsReplaced(DeviceKind.SLICE, slices)]))
    weights = [sum(map(weight, each.values or ())) for each in told]
    assert max(weights) <= MOST
    assert min(weights[:-1]) > MOST / 2
    assert sum(weights) > 64 * 12 * 500
    assert [each.last for each in told] == [False] * (len(told) - 1) + [True]


def test_a_value_that_weighs_more_is_a_piece_of_its_own():
    large = node("large", labels={f"label-{each}": "x" for each in range(MOST)})
    told = list(pieces([NodesReplaced((node("a"), large, node("b")))]))
    assert [piece.values for piece in told] == [(node("a"),), (large,), (node("b"),)]


def test_every_event_of_a_start_has_what_it_has_many_of_last():
    for each in known(pods=20):
        assert type(msgspec.structs.astuple(each)[-1]) is tuple
    assert all(isinstance(each, Piece) for each in pieces(known()))
