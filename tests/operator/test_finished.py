"""When a finished PodGroup is due to be deleted; whether it may be, the machine decides (scenarios/test_expired.py)."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.api.times import parse_time
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.record import Phase
from gangsched.operator.finished import PAUSES_S, SELECTOR, Expiries, Finished, finished_group
from tests.operator.groups import podgroup

ENDED = parse_time("2026-01-01T00:00:00Z")
NOW = ENDED + 1000.0


def test_the_selector_leaves_out_every_phase_that_is_not_the_last() -> None:
    excluded = [part.removeprefix("status.phase!=") for part in SELECTOR.split(",")]
    assert excluded == ["", *(phase for phase in Phase if phase not in ("Succeeded", "Failed"))]


@pytest.mark.parametrize(
    ("group", "default_ttl_s", "due"),
    [
        (podgroup(ttl="90s"), None, ENDED + 90),
        (podgroup(ttl="90s", phase="Failed"), 5.0, ENDED + 90),
        (podgroup(), 5.0, ENDED + 5),
        (podgroup(finished=None), 5.0, NOW + 5),
        (podgroup(ttl="1m", annotations={"gangsched.io/keep": "false"}), None, ENDED + 60),
        (podgroup(), None, None),
        *(
            (podgroup(ttl="1s", phase=phase), 5.0, None)
            for phase in (*Phase, None)
            if phase not in ("Succeeded", "Failed")
        ),
        (podgroup(ttl="1s", annotations={"gangsched.io/keep": "true"}), 5.0, None),
        (podgroup(ttl="1s", deletionTimestamp="2026-01-01T00:00:00Z"), 5.0, None),
        (podgroup(ttl="soon"), 5.0, None),
        (podgroup(ttl=7), 5.0, None),
        (podgroup(ttl="1s", finished="yesterday"), 5.0, None),
        (podgroup(ttl="1s", finished=7), 5.0, None),
        ({**podgroup(), "status": None}, 5.0, None),
        ({**podgroup(), "spec": None}, 5.0, ENDED + 5),
    ],
    ids=str,
)
def test_a_group_is_due_its_time_to_live_after_its_end(
    group: Any, default_ttl_s: float | None, due: float | None
) -> None:
    found = finished_group(group, default_ttl_s=default_ttl_s, now=NOW)
    assert found == (None if due is None else Finished(GroupKey("team", "g"), "uid-g", "7", due))


def finished(name: str, due: float, version: str = "1") -> Finished:
    return Finished(GroupKey("team", name), f"uid-{name}", version, due)


def taken(expiries: Expiries, now: float, most: int = 20) -> list[str]:
    return [f"{each.key.name}@{each.resource_version}" for each in expiries.take(now, most)]


def test_at_most_so_many_are_taken_and_the_longest_due_first() -> None:
    expiries = Expiries()
    for number in range(50, 0, -1):
        expiries.note(finished(f"g{number}", float(number)))
    assert taken(expiries, 0.5) == []
    assert taken(expiries, 45.0) == [f"g{number}@1" for number in range(1, 21)]
    assert len(taken(expiries, 45.0)) == 20
    assert len(taken(expiries, 45.0)) == 5
    assert taken(expiries, 45.0) == []


def test_one_that_is_still_there_is_taken_again_after_growing_pauses_and_then_forgotten() -> None:
    expiries, now = Expiries(), 10.0
    expiries.note(finished("a", 5.0))
    for pause_s in PAUSES_S:
        assert taken(expiries, now) == ["a@1"]
        expiries.note(finished("a", 5.0))
        now += pause_s
        assert taken(expiries, now - 1) == []
    assert taken(expiries, now) == ["a@1"]
    assert len(expiries) == 0


def test_one_that_has_changed_is_taken_in_its_new_form_alone_and_one_that_is_gone_not_at_all() -> None:
    expiries = Expiries()
    expiries.note(finished("a", 5.0))
    expiries.note(finished("b", 5.0))
    expiries.note(finished("a", 8.0, version="2"))
    expiries.forget("uid-b")
    expiries.forget("uid-of-nobody")
    assert taken(expiries, 6.0) == []
    assert taken(expiries, 9.0) == ["a@2"]
