"""Whole-gang preemption with real controllers: who leaves, through the Eviction API, and who comes back."""

from __future__ import annotations

import time

import pytest

from testbed.api import ApiError
from testbed.operator import Operator
from tests.integration.urgent import add_budget, add_urgent, alive, until_replaced, urgent_class

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("operator")]


@pytest.fixture(scope="module")
def operator(with_crd):
    with urgent_class(with_crd), Operator(with_crd) as running:
        yield running


def test_a_stateful_set_leaves_as_a_whole_and_waits_behind_the_group_that_needed_its_nodes(cluster):
    cluster.add_node("n1", cpu="4")
    cluster.add_group("low", min_member=4)
    cluster.add_stateful_set("low", 4)
    cluster.until_bound("low", 4)
    first = {pod["metadata"]["uid"] for pod in cluster.pods("low")}
    add_urgent(cluster, 4)
    complete = time.monotonic()
    until_replaced(cluster, "high", 4)
    assert time.monotonic() - complete < 10, "no longer than the grace of the victims and a few seconds"
    cluster.until(lambda: len(alive(cluster, "low")) == 4, what="the controller has made them again")
    cluster.until_reason("low", "Unschedulable")
    assert not {pod["metadata"]["uid"] for pod in alive(cluster, "low")} & first
    assert cluster.bound("low") == {}
    assert cluster.status("low")["preemptions"] == 1
    assert [event["type"] for event in cluster.events("low", "Preempted")] == ["Normal"]
    for number in range(4):
        cluster.delete_pod(f"high-{number}")
    cluster.until_bound("low", 4)


def test_members_above_the_minimum_leave_first_and_their_group_runs_on(cluster):
    cluster.add_node("n1", cpu="4")
    cluster.add_group("elastic", min_member=2)
    cluster.add_pods("elastic", 4)
    cluster.until_bound("elastic", 4)
    cluster.until(lambda: cluster.phase("elastic") == "Running")
    add_urgent(cluster, 2)
    until_replaced(cluster, "high", 2)
    assert len(alive(cluster, "elastic")) == 2
    assert cluster.phase("elastic") == "Running"
    assert "preemptions" not in cluster.status("elastic")


def test_a_disruption_budget_that_forbids_the_cheaper_victim_makes_another_leave(cluster):
    cluster.add_node("n1", cpu="2")
    cluster.add_node("n2", cpu="2")
    for name in ("covered", "open"):
        cluster.add_group(name, min_member=2)
        cluster.add_pods(name, 2)
        cluster.until_bound(name, 2)
        cluster.until(lambda name=name: cluster.phase(name) == "Running")
    add_budget(cluster, "all", {"gangsched.io/pod-group": "covered"}, minAvailable=2)
    add_urgent(cluster, 2)
    until_replaced(cluster, "high", 2)
    assert len(alive(cluster, "covered")) == 2
    assert alive(cluster, "open") == []


def test_nobody_leaves_for_a_group_that_would_not_fit_even_so(cluster):
    cluster.add_node("n1", cpu="4")
    cluster.add_group("low", min_member=2)
    cluster.add_pods("low", 2)
    cluster.until_bound("low", 2)
    add_urgent(cluster, 5)
    cluster.until_reason("high", "NeverFits")
    cluster.add_group("equal", min_member=3)
    cluster.add_pods("equal", 3)
    cluster.until_reason("equal", "Unschedulable")
    time.sleep(2)
    assert len(alive(cluster, "low")) == 2


def test_whoever_leads_finishes_what_was_begun(cluster, operator):
    """The operator is killed again and again; afterwards each group is whole or gone."""
    cluster.add_node("n1", cpu="6")
    for kill_after_s in (0.0, 0.05, 0.1, 0.2, 0.4):
        cluster.add_group("low", min_member=6)
        cluster.add_pods("low", 6)
        cluster.until_bound("low", 6)
        add_urgent(cluster, 4)
        time.sleep(kill_after_s)
        operator.kill()
        operator.start()
        until_replaced(cluster, "high", 4, within_s=30)
        # The new leader need not have got to all of them when there was room.
        cluster.until(lambda: not alive(cluster, "low"), what="the rest leaves too")
        for group in ("high", "low"):
            for pod in cluster.pods(group):
                try:
                    cluster.delete_pod(pod["metadata"]["name"])
                except ApiError as error:
                    assert error.reason == "NotFound", error  # noqa: PT017 - it ended by itself
            cluster.delete_group(group)
        cluster.until(lambda: not cluster.pods(), what="all pods are gone")
