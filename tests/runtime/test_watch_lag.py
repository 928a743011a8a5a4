"""How far the watch of pods is behind the answers to bindings."""

from __future__ import annotations

from gangsched.core.objects.events import PodSeen
from gangsched.core.objects.results import PodBound
from gangsched.runtime.watch_lag import WatchLag
from tests.builders import pod

BOUND = PodBound("u", "n1")
SHOWN = PodSeen(pod("p", uid="u", node="n1"))


def test_it_is_the_time_from_the_answer_until_the_watch_shows_the_binding():
    found: list[float] = []
    lag = WatchLag(found.append)
    lag.observe([PodSeen(pod("p", uid="u")), BOUND], 10.0)
    lag.observe([SHOWN], 10.5)
    lag.observe([SHOWN], 12.0)
    assert found == [0.5]


def test_it_is_none_where_the_watch_was_first():
    found: list[float] = []
    lag = WatchLag(found.append)
    lag.observe([SHOWN], 10.0)
    lag.observe([BOUND], 10.5)
    assert found == [0.0]


def test_what_has_no_other_half_is_forgotten_after_a_minute():
    found: list[float] = []
    lag = WatchLag(found.append)
    lag.observe([BOUND], 10.0)
    lag.observe([], 80.0)
    lag.observe([SHOWN], 81.0)
    assert found == []
