"""The operator's metrics: each one changes when the event that it measures happens on the real API server."""

from __future__ import annotations

from testbed.operator import Operator
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
