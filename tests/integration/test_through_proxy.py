"""The operator behind the fault proxy: whatever faults its requests get, gangs end whole or wholly unbound."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest

from testbed.operator import Operator
from tests.effort import in_turn, seeded
from tests.faults.plan import OF_LISTS, OF_WRITES, Fault, Rates, only
from tests.faults.proxy import ProxyProcess
from tests.faults.server import OUTAGE
from tests.integration.cluster import Cluster

GROUPS, MEMBERS, NODES, ROOM = 4, 3, 3, 2
"""As many groups as ROOM fit at a time: 3 nodes of 2 CPUs for groups of 3 members of 1 CPU."""

STORM_WITHIN_S = 30.0
RATE, RATE_OF_WATCHES = 0.5, 0.9
OF_EVENTS = {Fault.WATCH_DUPLICATES, Fault.WATCH_REORDERS, Fault.WATCH_LAGS}
"""These end no watch, and only the pods' watch has enough events, so it must not be among the few without a fault."""
PROVOKED_BY = {Fault.STALE_LIST: Fault.EXPIRED_LATER}
"""Lists are rare: something else has to ask for them."""
CITED = {Fault.RESET_BEFORE, Fault.THROTTLED, Fault.ERROR, Fault.UNAVAILABLE, Fault.TIMEOUT}
"""docs/evidence.md names the test of these."""
OUTAGES_S = (0.5, 1, 2, 5, 30)


class Storm:
    """A race of groups while the proxy injects faults, and its expected outcome."""

    def __init__(self, cluster: Cluster, proxy: ProxyProcess, behind: Operator) -> None:
        self.cluster = cluster
        self.proxy = proxy
        self._operator = behind

    def whole(self) -> bool:
        """Whether as many groups as fit are bound whole, and no other in part."""
        assert self._operator.child.poll() is None, "whatever the API server answers, the operator goes on"
        return sorted(of_groups(self.cluster).values()) == [MEMBERS] * ROOM

    def end(self, groups: list[str]) -> None:
        """Calm the proxy: groups become whole, and when they are deleted the others do."""
        self.proxy.calm()
        self.cluster.until(self.whole, what=f"{ROOM} whole groups")
        first = of_groups(self.cluster)
        for name in self.cluster.bound():
            self.cluster.delete_pod(name)
        self.cluster.until(self.whole, what="the others whole")

        assert first.keys() | of_groups(self.cluster).keys() == set(groups)
        assert max(Counter(self.cluster.bound().values()).values()) <= ROOM, "a node has more than it can hold"


@pytest.fixture
def storm(cluster: Cluster, proxy: ProxyProcess, behind: Operator) -> Iterator[Storm]:
    yield Storm(cluster, proxy, behind)
    proxy.unblock()
    proxy.calm()


def race(cluster: Cluster) -> list[str]:
    """More groups than fit, created member by member in turn."""
    for number in range(NODES):
        cluster.add_node(f"n{number}", cpu=str(ROOM), wait=False)
    groups = [f"g{number}" for number in range(GROUPS)]
    for group in groups:
        cluster.add_group(group, min_member=MEMBERS)
    for number in range(MEMBERS):
        for group in groups:
            cluster.add_pod(f"{group}-{number}", group)
    return groups


def of_groups(cluster: Cluster) -> Counter[str]:
    """How many members of each group are bound."""
    return Counter(name.rpartition("-")[0] for name in cluster.bound())


def rates(fault: Fault) -> Rates:
    rate = 1.0 if fault in OF_EVENTS else RATE if fault in OF_WRITES | OF_LISTS else RATE_OF_WATCHES
    faults = only(fault, rate=rate)
    if fault in PROVOKED_BY:
        faults |= only(PROVOKED_BY[fault], rate=RATE_OF_WATCHES)
    return Rates(of=faults, delay_s=(0.1, 1.0), watch_s=(0.0, 0.5), watch_events=5)


def _while_within(condition: Callable[[], bool], *, within_s: float) -> None:
    """Wait as long as it holds, but not longer than this."""
    deadline = time.monotonic() + within_s
    while condition() and time.monotonic() < deadline:
        time.sleep(0.05)


@in_turn("fault", Fault, ids=str, always=CITED)
def test_a_race_under_one_kind_of_fault_leaves_every_group_whole_or_unbound_and_loses_none(
    storm: Storm, fault: Fault
) -> None:
    before = storm.proxy.injected[fault]
    storm.proxy.storm(rates(fault))
    groups = race(storm.cluster)
    storm.cluster.until(lambda: storm.proxy.injected[fault] > before, within_s=STORM_WITHIN_S, what=f"a fault {fault}")
    _while_within(lambda: of_groups(storm.cluster).total() < ROOM * MEMBERS, within_s=1.0)

    storm.end(groups)


@seeded(5)
def test_a_race_under_all_kinds_of_fault_at_once_leaves_every_group_whole_or_unbound_and_loses_none(
    storm: Storm, seed: int
) -> None:
    before = storm.proxy.injected.total()
    storm.proxy.storm(Rates(delay_s=(0.1, Random(seed).uniform(0.5, 1.5)), watch_s=(0.0, 1.0), watch_events=5))
    groups = race(storm.cluster)
    storm.cluster.until(lambda: storm.proxy.injected.total() > before, within_s=STORM_WITHIN_S, what="a fault")
    _while_within(lambda: of_groups(storm.cluster).total() < ROOM * MEMBERS, within_s=1.0)

    storm.end(groups)


def test_a_race_cut_off_by_an_outage_leaves_every_group_whole_or_unbound_and_loses_none(storm: Storm) -> None:
    # Without the delay the bindings would be over before the outage.
    storm.proxy.next(fault=Fault.DELAY_BEFORE, method="POST", path_contains="/binding", times=2, after=1)
    storm.proxy.storm(Rates(of={}, delay_s=(5.0, 5.0)))
    groups = race(storm.cluster)
    storm.cluster.until(storm.cluster.bound, what="a binding")
    storm.proxy.block()
    storm.cluster.until(lambda: storm.proxy.injected[OUTAGE] >= 5, what="requests that met the outage")
    storm.proxy.unblock()

    storm.end(groups)


def test_no_outage_however_long_makes_the_operator_list_anything_again(storm: Storm, behind: Operator) -> None:
    """A watch resumes at its version, whatever failed and however often; here connections are refused and reset."""
    storm.cluster.add_node("n0", cpu="16")
    storm.cluster.until(lambda: behind.metric("gangsched_nodes") == 1)
    before = behind.metric("gangsched_relists_total")
    for number, lasts_s in enumerate(OUTAGES_S):
        storm.proxy.block()
        storm.cluster.add_gang(f"g{number}", 3)
        time.sleep(lasts_s)
        storm.proxy.unblock()
        storm.cluster.until_bound(f"g{number}", 3)
    assert behind.metric("gangsched_relists_total") == before


def test_an_operator_that_has_many_statuses_to_write_ends_within_seconds(cluster: Cluster, proxy: ProxyProcess) -> None:
    """Status writes are slow: purely informational ones are dropped, and bindings in flight are awaited."""
    proxy.next(fault=Fault.DELAY_BEFORE, method="PATCH", path_contains="/status", times=100_000)
    proxy.storm(Rates(of={}, delay_s=(60.0, 60.0)))
    try:
        with Operator(cluster.control_plane, kubeconfig=proxy.kubeconfig_for()) as operator:
            for number in range(160):
                cluster.add_group(f"g{number}", min_member=2)
            cluster.until(lambda: operator.metric("gangsched_effects_queued", kind="PatchStatus") > 100)
            began = time.monotonic()
            assert operator.stop() == 0
            # Awaiting those in flight would take the fifteen seconds of a request's time limit.
            assert time.monotonic() - began < 14
            assert "statuses and Events not sent because of the shutdown" in operator.log
    finally:
        proxy.calm()
        proxy.forget()


def test_the_reply_to_the_third_binding_of_a_group_is_lost_and_the_group_is_whole(storm: Storm) -> None:
    storm.proxy.next(fault=Fault.RESET_AFTER, method="POST", path_contains=("/pods/g0-", "/binding"), after=2)
    before = storm.proxy.injected
    groups = race(storm.cluster)
    storm.cluster.until_bound("g0", MEMBERS)

    storm.end(groups)

    assert storm.proxy.injected - before == {Fault.RESET_AFTER: 1}
