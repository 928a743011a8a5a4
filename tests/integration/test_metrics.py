"""The operator's metrics: each one changes when the event that it measures happens on the real API server."""

from __future__ import annotations

from testbed.operator import Operator
from tests.integration.admission import BindingPolicy
from tests.integration.cluster import Cluster


def test_a_group_that_is_bound_moves_the_metrics_of_waits_stages_budget_and_lag(cluster: Cluster, operator: Operator):
    cluster.add_node("n1", cpu="4")
    before = operator.metric("gangsched_gang_wait_seconds_count", priority="1-999")
    lagged = operator.metric("gangsched_watch_lag_seconds_count")
    cluster.add_group("a", min_member=2, priority=5)
    cluster.add_pods("a", 2)
    cluster.until_bound("a", 2)
    cluster.until(lambda: operator.metric("gangsched_gang_wait_seconds_count", priority="1-999") == before + 1)
    cluster.until(lambda: operator.metric("gangsched_watch_lag_seconds_count") >= lagged + 2)
    for stage in ("Events", "Upkeep", "Plan", "Status"):
        assert operator.metric("gangsched_stage_duration_seconds_count", stage=stage) > 0
        assert operator.metric("gangsched_stage_duration_seconds_sum", stage=stage) > 0
    stages = operator.metric("gangsched_stage_duration_seconds_sum")
    assert stages <= operator.metric("gangsched_pass_duration_seconds_sum")
    # A cycle may come between the two requests.
    cluster.until(
        lambda: (
            operator.metric("gangsched_pass_budget_used_count")
            == operator.metric("gangsched_pass_duration_seconds_count")
        )
    )
    assert operator.metric("gangsched_pass_budget_used_sum") > 0
    assert operator.metric("gangsched_binding_duration_seconds_count") >= 2
    assert operator.metric("gangsched_leader") == 1
    assert [operator.get(probe)[0] for probe in ("/livez", "/readyz")] == [200, 200]


def test_requests_are_counted_by_their_outcome(cluster: Cluster, operator: Operator, refuse_bindings: BindingPolicy):
    def bindings(outcome: str) -> float:
        return operator.metric("gangsched_api_requests_total", verb="create", resource="pods/binding", outcome=outcome)

    cluster.add_node("n1", cpu="4")
    good, bad = bindings("Ok"), bindings("Refused") + bindings("Denied")
    cluster.add_group("a", min_member=1)
    cluster.add_pods("a", 1)
    cluster.until_bound("a", 1)
    cluster.until(lambda: bindings("Ok") == good + 1)
    refuse_bindings("b-")
    cluster.add_group("b", min_member=1)
    cluster.add_pods("b", 1)
    cluster.until(lambda: bindings("Refused") + bindings("Denied") > bad)
    assert operator.metric("gangsched_api_requests_total", verb="watch", resource="pods", outcome="Ok") >= 1
    assert operator.metric("gangsched_api_requests_total", verb="list", resource="nodes", outcome="Ok") >= 1


def test_the_time_for_which_a_quorum_was_bound_in_part_is_measured(
    cluster: Cluster, operator: Operator, refuse_bindings: BindingPolicy
):
    cluster.add_node("n1", cpu="4")
    before = operator.metric("gangsched_partly_bound_seconds_count")
    refuse_bindings("a-1")
    cluster.add_group("a", min_member=2)
    cluster.add_pods("a", 2)
    cluster.until(lambda: operator.metric("gangsched_partly_bound_groups") == 1)
    cluster.until(lambda: operator.metric("gangsched_idle_capacity", resource="cpu") == 1)
    refuse_bindings.allow()
    cluster.until_bound("a", 2, within_s=60)
    cluster.until(lambda: operator.metric("gangsched_partly_bound_seconds_count") == before + 1)
    assert operator.metric("gangsched_partly_bound_groups") == 0
