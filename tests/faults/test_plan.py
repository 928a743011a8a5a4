"""Unit tests of the decisions about requests and of the order of events."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.plan import Asked, Fault, Plan, Rates, Rule, only
from tests.faults.streams import shuffle


def asked(method: str, path: str, **query: str) -> Asked:
    return Asked(method, path, query)


def test_faults_come_as_often_as_they_should_and_only_where_they_can() -> None:
    plan = Plan(seed=1, rates=Rates(of={Fault.CONFLICT: 0.3, Fault.EXPIRED: 0.2}))
    writes = Counter(plan.decide(asked("POST", "/api/v1/pods")).fault for _ in range(2000))
    watches = Counter(plan.decide(asked("GET", "/api/v1/pods", watch="true")).fault for _ in range(2000))

    assert writes.keys() == {None, Fault.CONFLICT}
    assert watches.keys() == {None, Fault.EXPIRED}
    assert writes[Fault.CONFLICT] == pytest.approx(600, abs=80)
    assert watches[Fault.EXPIRED] == pytest.approx(400, abs=80)


def test_every_fault_is_part_of_a_storm() -> None:
    assert Rates().of.keys() == set(Fault)


def test_in_calm_weather_only_rules_decide_the_oldest_first_and_not_where_the_fault_cannot_be() -> None:
    plan = Plan(seed=1, rates=Rates(of=only(Fault.ERROR, rate=1.0)))
    plan.stormy = False
    plan.add(Rule(fault=Fault.CONFLICT, path_contains=("/pods",), times=2))
    plan.add(Rule(fault=Fault.THROTTLED, method="POST", times=1))
    plan.add(Rule(fault=Fault.EXPIRED))
    requests = [asked("GET", "/api/v1/pods"), *[asked("POST", "/api/v1/pods")] * 4]
    requests += [asked("GET", "/api/v1/pods", watch="true")] * 2

    assert [plan.decide(request).fault for request in requests] == [
        *(None, Fault.CONFLICT, Fault.CONFLICT, Fault.THROTTLED, None),
        *(Fault.EXPIRED, None),
    ]


def lines(kinds: list[str]) -> list[bytes]:
    """A watch's lines: a name becomes an event of that object, an empty name a bookmark."""
    return [
        json.dumps(
            {
                "type": "MODIFIED" if name else "BOOKMARK",
                "object": {"metadata": {"name": name, "namespace": "n", "resourceVersion": str(number)}},
            }
        ).encode()
        + b"\n"
        for number, name in enumerate(kinds)
    ]


def versions(shuffled: list[bytes]) -> list[int]:
    return [int(json.loads(line)["object"]["metadata"]["resourceVersion"]) for line in shuffled]


@given(st.lists(st.sampled_from(["a", "b", "c", ""])), st.integers(0, 100))
def test_events_of_one_object_keep_their_order_and_nothing_passes_a_bookmark_or_the_last_event(
    names: list[str], seed: int
) -> None:
    order = versions(shuffle(lines(names), Random(seed)))

    assert sorted(order) == list(range(len(names)))
    for name in "abc":
        of_one = [version for version in order if names[version] == name]
        assert of_one == sorted(of_one)
    for position, version in enumerate(order):
        if names[version] == "":
            assert position == version
    if order:
        assert order[-1] == len(names) - 1


def test_events_of_different_objects_do_change_places() -> None:
    orders = {tuple(versions(shuffle(lines(["a", "b", "c", "d"]), Random(seed)))) for seed in range(50)}

    assert orders == {(*first, 3) for first in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]}
