"""Groups that sums exclude are searched for again once there can be more room, and only then."""

from __future__ import annotations

from unittest.mock import MagicMock

import numpy as np
import pytest

from gangsched.core.cluster.cache import Cluster
from gangsched.core.contention.hopeless import Hopeless
from gangsched.core.contention.plans import Plans
from gangsched.core.contention.pool import Pool
from gangsched.core.contention.search_results import Looked
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.planning.removable import Removable
from tests.builders import node, pod

BOTH = np.ones(2, dtype=np.bool_)


class Watched:
    """Two nodes with a pod each, and a group for which that is too little room on some of the rows."""

    def __init__(self, rows=BOTH):
        self.cluster = Cluster()
        for at in range(2):
            self.cluster.set_node(node(f"n{at}", cpu=100))
            self.cluster.set_pod(pod(f"there-{at}", cpu=1, group="", node=f"n{at}"))
        plans = Plans(self.cluster, MagicMock(), {}, a_minute=1, is_foreign=lambda _: False)
        self.hopeless = Hopeless(self.cluster, plans, exceeds=False)
        self.add("hopeless", rows)

    def add(self, name, rows=BOTH):
        """A group is without hope from now on, as long as there is no more room on these rows."""
        pool, looked = self._now()
        self.hopeless.add(GroupKey("default", name), 0, pool, looked, rows)

    def wait(self):
        """The names of those that are still without hope once that was looked at."""
        self.hopeless.wake(*self._now())
        return [name for name in ("hopeless", "next") if GroupKey("default", name) in self.hopeless.kinds]

    def _now(self):
        pool = Pool(Removable.of(self.cluster, ()), {}, {}, float("inf"), {}, self.cluster.node_changes)
        return pool, Looked((self.cluster.changes,), 0.0, 0.0, ())


def test_pods_that_come_and_go_give_no_hope_however_many():
    watched = Watched()
    for at in range(100):
        watched.cluster.set_pod(pod("new", cpu=1 + at % 50, group="", node=f"n{at % 2}"))
        assert watched.wait() == ["hopeless"]
        watched.cluster.remove_pod("uid-default/new")
        assert watched.wait() == ["hopeless"]


@pytest.mark.parametrize(("accepted", "waiting"), [([0], []), ([1], ["hopeless"])])
def test_more_room_gives_hope_where_the_group_can_use_it(accepted, waiting):
    watched = Watched(np.isin(np.arange(2), accepted))
    watched.cluster.remove_pod("uid-default/there-0")
    assert watched.wait() == waiting


def test_each_group_waits_for_more_room_than_it_was_excluded_with():
    watched = Watched()
    watched.cluster.set_pod(pod("new", cpu=1, group="", node="n0"))
    watched.add("next")
    watched.cluster.remove_pod("uid-default/new")
    assert watched.wait() == ["hopeless"]


def test_only_so_many_states_of_the_cluster_are_remembered():
    watched = Watched()
    for cpu in range(1, 40):
        watched.cluster.set_pod(pod("new", cpu=cpu, group="", node="n0"))
        watched.add("next")
    assert watched.wait() == ["next"]


def test_a_changed_node_gives_hope():
    watched = Watched()
    watched.cluster.set_node(node("n1", cpu=101))
    assert watched.wait() == []
