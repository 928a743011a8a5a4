"""kill -9 at each write of a plan of preemption: victims whole or gone, and its group whole or unbound.

A proxy lets the writes of one kind pass until one of them has taken effect, holds back its answer and refuses those
that follow. Then the operator is killed. Its successor has to finish what was begun.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from testbed.api import ApiError, unless_gone
from testbed.operator import Operator
from testbed.workloads import member
from tests import effort
from tests.faults.plan import Fault, Rates
from tests.faults.proxy import ProxyProcess
from tests.integration.cluster import Cluster, Json
from tests.integration.urgent import add_urgent, alive, evictions, urgent_class

pytestmark = [pytest.mark.timeout(3600), pytest.mark.explores]
HELD = "example.com/held"
"""A finalizer by which victims terminate until the test lets them end."""
SIZE = 7
"""Members of the group: as many as leave for it."""
GANGS = {"low-a": 3, "low-b": 2}
"""The groups that leave as a whole, with the number of their members."""
KEPT, LARGE = 2, 4
"""So many members with so many CPUs an elastic group needs and keeps; an extra one leaves, and so does a lone pod."""
LATE_S = 60.0
ROUNDS = 10
SAMPLE = 5
_SHOWN = 20_000
"""So much of the log of the last leader tells who decided what, if a gang has left that should stay."""


class Point(NamedTuple):
    """A write of a plan: after so many of its kind have taken effect, the next one and all others are refused.

    `left`: it is written only after the victims have left.
    """

    name: str
    method: str
    path: str
    body: str = ""
    after: int = 1
    left: bool = False


RESERVED = ("PATCH", "/podgroups/high/status", '"kind":"Preemption"')
MARKED = ("PATCH", "/podgroups/low-", '"preempted":{')
EVICTED = ("POST", "/eviction", "")
BOUND = ("POST", "/binding", "")
POINTS = (
    Point("before the reservation", *RESERVED, after=0),
    Point("reservation", *RESERVED),
    Point("before the first mark", *MARKED, after=0),
    Point("first mark", *MARKED),
    Point("last mark", *MARKED, after=2),
    Point("before the first eviction", *EVICTED, after=0),
    Point("first eviction", *EVICTED),
    Point("half of the evictions", *EVICTED, after=SIZE // 2),
    Point("last eviction", *EVICTED, after=SIZE),
    Point("Event on the group", "POST", "/events", '"reason":"WaitsForVictims"'),
    Point("Event on a victim", "POST", "/events", '"reason":"Preempted"'),
    Point("nomination of the first member", "PATCH", "/pods/high-", '"nominatedNodeName":"n1"'),
    Point("nomination of the last member", "PATCH", "/pods/high-", '"nominatedNodeName":"n1"', after=SIZE),
    Point("before the first binding", *BOUND, after=0, left=True),
    Point("first binding", *BOUND, left=True),
    Point("half of the bindings", *BOUND, after=SIZE // 2, left=True),
    Point("last binding", *BOUND, after=SIZE, left=True),
    Point("group is scheduled", "PATCH", "/podgroups/high/status", '"reason":"Scheduled"', left=True),
)


def rounds() -> list[tuple[Point, int]]:
    """Each point ten times in `make nightly`; otherwise some points once."""
    if effort.examples(len(POINTS)) >= len(POINTS):
        return [(point, number) for point in POINTS for number in range(ROUNDS)]
    return [(point, 0) for point in Random(effort.first_seed).sample(POINTS, SAMPLE)]


@pytest.fixture(scope="module")
def strict(with_crd) -> Iterator[ProxyProcess]:
    """A proxy whose delays last until the test ends them."""
    with ProxyProcess(with_crd, seed=4, rates=Rates(of={}, delay_s=(LATE_S, LATE_S))) as running:
        yield running


@pytest.fixture(scope="module")
def behind_it(with_crd, strict) -> Iterator[Operator]:
    with urgent_class(with_crd), Operator(with_crd, kubeconfig=strict.kubeconfig_for()) as running:
        yield running


@pytest.fixture
def killed(behind_it: Operator, strict: ProxyProcess) -> Iterator[Operator]:
    """The operator, which runs again after a test that has failed."""
    yield behind_it
    strict.forget()
    strict.calm()
    if behind_it.child.poll() is not None:
        behind_it.start()


@pytest.mark.parametrize(("point", "number"), rounds(), ids=lambda value: getattr(value, "name", value))
def test_after_a_kill_at_any_write_victims_are_whole_or_gone_and_the_group_is_bound(
    cluster: Cluster, strict: ProxyProcess, killed: Operator, point: Point, number: int
) -> None:
    """In two of three rounds the group loses a member, or all of it, while there is no leader."""
    fill(cluster)
    kill_at(cluster, strict, killed, point)
    before = bound(cluster)
    lost = ("nothing", "a member", "the group")[number % 3] if not before else "nothing"
    if lost == "a member":
        cluster.delete_pod("high-0")
    elif lost == "the group":
        remove(cluster, "high")
    killed.start()
    until_settled(cluster)
    if lost != "nothing":
        cluster.until(lambda: not open_plan(cluster), what="the reservation has ended with the plan")
        assert not cluster.bound("high")
        if lost == "the group":
            add_urgent(cluster, SIZE)
        else:
            cluster.add_pods("high", 1)
    until_settled(cluster, whole=True)
    cluster.until(lambda: not open_plan(cluster) and not marked(cluster), what="no trace of the plan is left")
    assert len(alive(cluster, "elastic")) == KEPT, f"{evictions(cluster)}\n{killed.log[-_SHOWN:]}"
    clear(cluster)


def fill(cluster: Cluster) -> None:
    """A full node: two groups and a pod that would leave for a larger one, and a group that could give up a member."""
    cluster.add_node("n1", cpu=str(SIZE + KEPT * LARGE))
    for name, size in GANGS.items():
        cluster.add_group(name, min_member=size)
        add_victims(cluster, name, size)
    cluster.add_group("elastic", min_member=KEPT, roles=[{"name": "worker", "minMember": KEPT}, {"name": "extra"}])
    cluster.add_pods("elastic", KEPT, first=1, requests={"cpu": str(LARGE)}, labels={"gangsched.io/role": "worker"})
    add_victims(cluster, "elastic", 1, labels={"gangsched.io/role": "extra"})
    cluster.make_pod(with_finalizer(member("lone")))
    cluster.until(lambda: len(cluster.bound()) == SIZE + KEPT, what="the node is full")
    cluster.until(lambda: all(cluster.phase(name) == "Running" for name in (*GANGS, "elastic")), what="all run")


def add_victims(cluster: Cluster, name: str, size: int, **fields: Any) -> None:
    for at in range(size):
        cluster.make_pod(with_finalizer(member(f"{name}-{at}", name, **fields)))


def with_finalizer(pod: Json) -> Json:
    return pod | {"metadata": pod["metadata"] | {"finalizers": [HELD]}}


def kill_at(cluster: Cluster, proxy: ProxyProcess, operator: Operator, point: Point) -> None:
    """Have a group preempt the others, and kill the operator right after the write has taken effect."""

    def order(fault: Fault, *, times: int) -> None:
        proxy.next(
            fault=fault,
            method=point.method,
            path_contains=point.path,
            body_contains=point.body,
            times=times,
            after=max(0, point.after - 1),
        )

    fault = Fault.DELAY_AFTER if point.after else Fault.UNAVAILABLE
    order(fault, times=1)
    order(Fault.UNAVAILABLE, times=10_000)
    so_far = proxy.injected[fault]
    add_urgent(cluster, SIZE)

    def struck() -> bool:
        if point.left:
            end_victims(cluster)
        return proxy.injected[fault] > so_far

    cluster.until(struck, within_s=30, what=point.name)
    operator.kill()
    proxy.forget()
    proxy.calm()


def until_settled(cluster: Cluster, *, whole: bool = False) -> None:
    """Wait until each gang is whole or gone, and the group is whole or unbound; with `whole` it must be bound."""

    def settled() -> bool:
        end_victims(cluster)
        if any(len(alive(cluster, name)) not in (0, size) for name, size in GANGS.items()):
            return False
        return bound(cluster) == SIZE or (not whole and not bound(cluster) and not terminating(cluster))

    what = "victims are whole or gone, and the group is whole" + ("" if whole else " or unbound")
    cluster.until(settled, within_s=60, what=what)


def end_victims(cluster: Cluster) -> None:
    """Let those pods end that terminate."""
    for pod in terminating(cluster):
        with contextlib.suppress(ApiError):
            cluster.api.merge(path_of(cluster, pod), {"metadata": {"finalizers": None}})


def path_of(cluster: Cluster, pod: Json) -> str:
    return f"/api/v1/namespaces/{cluster.namespace}/pods/{pod['metadata']['name']}"


def terminating(cluster: Cluster) -> list[Json]:
    return [pod for pod in cluster.pods() if "deletionTimestamp" in pod["metadata"]]


def bound(cluster: Cluster) -> int:
    return len(cluster.bound("high"))


def open_plan(cluster: Cluster) -> bool:
    """Whether the status of the group shows a reservation."""
    with unless_gone():
        return "reservation" in cluster.status("high")
    return False


def marked(cluster: Cluster) -> list[str]:
    """The groups whose statuses say that all members leave."""
    return [name for name in GANGS if "preempted" in cluster.status(name)]


def remove(cluster: Cluster, group: str) -> None:
    for pod in cluster.pods(group):
        cluster.delete_pod(pod["metadata"]["name"])
    cluster.delete_group(group)


def clear(cluster: Cluster) -> None:
    cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods", grace_s=0)
    for name in ("high", "elastic", *GANGS):
        cluster.delete_group(name)

    def empty() -> bool:
        end_victims(cluster)
        return not cluster.pods()

    cluster.until(empty, what="all pods are gone")
