from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gangsched.core.objects.stats import Measured, Stats
from gangsched.runtime.distributions import Distribution
from gangsched.runtime.metrics import Metrics, describe

STATS = Stats(
    pods=7,
    nodes=2,
    phases={"Queued": 3, "Running": 1},
    waiting=4,
    parked=2,
    refusals={"Unschedulable": 9},
    timeouts=5,
    avoided_nodes=6,
    node_refusals=8,
    held={"cpu": 1500, "memory": 1 << 30, "nvidia.com/gpu": 2, "amd.com/gpu": 1, "example.com/thing": 4},
    idle={"cpu": 500},
    partial=3,
    set_aside={"Node": 2},
)


def samples(metrics: Metrics) -> dict[str, float]:
    return {
        sample.name + "".join(f" {name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def test_what_the_machine_knows_is_read_at_each_scrape():
    metrics, stats = Metrics(), [STATS]
    metrics.read_stats_from(lambda: stats[-1])
    found = samples(metrics)
    assert found["gangsched_pods"] == 7
    assert found["gangsched_nodes"] == 2
    assert found["gangsched_waiting"] == 4
    assert found["gangsched_parked"] == 2
    assert found["gangsched_groups phase=Queued"] == 3
    assert found["gangsched_refusals_total reason=Unschedulable"] == 9
    assert found["gangsched_timeouts_total"] == 5
    assert found["gangsched_avoided_nodes"] == 6
    assert found["gangsched_node_refusals_total"] == 8
    assert found["gangsched_held_capacity resource=cpu"] == 1.5
    assert found["gangsched_held_capacity resource=memory"] == 1 << 30
    assert found["gangsched_held_capacity resource=gpu"] == 3
    assert not any("thing" in name for name in found)
    assert found["gangsched_idle_capacity resource=cpu"] == 0.5
    assert found["gangsched_partly_bound_groups"] == 3
    assert found["gangsched_objects_set_aside kind=Node"] == 2
    stats.append(replace(STATS, pods=8))
    assert samples(metrics)["gangsched_pods"] == 8


def test_before_there_is_a_machine_the_numbers_are_zero():
    assert samples(Metrics())["gangsched_pods"] == 0


def test_two_instances_do_not_share_their_numbers():
    first, second = Metrics(), Metrics()
    first.event_dropped()
    assert samples(first)["gangsched_events_dropped_total"] == 1
    assert samples(second)["gangsched_events_dropped_total"] == 0


def test_every_metric_follows_the_naming_rules_and_says_what_it_means():
    """`tests/test_security.py` has the labels that they may have."""
    assert len(describe()) > 30
    for described in describe():
        assert re.fullmatch(r"gangsched_[a-z_]+", described.name)
        assert described.help.endswith("."), described.name
        assert described.name.endswith("_total") == (described.type == "counter"), described.name


def test_the_description_lists_everything_that_a_scrape_shows():
    metrics = Metrics()
    families = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in text_string_to_metric_families(metrics.render().decode())
    }
    assert families <= {described.name for described in describe()}
    assert ("gangsched_relists_total", ("resource", "cause")) in {(d.name, d.labels) for d in describe()}


def test_waits_are_told_by_a_few_bands_of_priorities():
    metrics = Metrics()
    waits = [(-1, 1.0), (0, 1.0), (7, 1.0), (999, 1.0), (1000, 1.0), (1_000_000_000, 1.0)]
    metrics.measured(Measured(waits=waits, partial_s=[2.0], starts=[("Limits", 0.0), ("Limits", 70.0)], budget=0.3))
    found = samples(metrics)
    counts = {name: count for name, count in found.items() if name.startswith("gangsched_gang_wait_seconds_count")}
    assert {name.partition("=")[2]: count for name, count in counts.items()} == {
        "negative": 1,
        "0": 1,
        "1-999": 2,
        "1000-999999": 1,
        "1000000+": 1,
    }
    assert found["gangsched_partly_bound_seconds_sum"] == 2.0
    assert found["gangsched_expected_start_error_seconds_bucket basis=Limits le=0.0"] == 1
    assert found["gangsched_expected_start_error_seconds_sum basis=Limits"] == 70.0
    assert found["gangsched_pass_budget_used_bucket le=0.25"] == 0
    assert found["gangsched_pass_budget_used_bucket le=0.5"] == 1


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, "Ok"),
        (201, "Ok"),
        (401, "Denied"),
        (403, "Denied"),
        (404, "NotFound"),
        (409, "Conflict"),
        (422, "Refused"),
        (429, "Throttled"),
        (503, "Failed"),
        (0, "Unanswered"),
    ],
)
def test_a_request_counts_by_its_outcome(status, outcome):
    metrics = Metrics()
    for _ in range(2):
        metrics.api_answered("create", "pods/binding", status)
    assert samples(metrics)[f"gangsched_api_requests_total outcome={outcome} resource=pods/binding verb=create"] == 2
    assert samples(metrics)[f"gangsched_api_requests_total outcome={outcome} resource=pods/binding verb=create"] == 2


def test_paths_that_are_no_resources_share_a_series():
    metrics = Metrics()
    for path in ("/version", "/apis/example.com"):
        metrics.api_answered("get", path, 200)
    assert samples(metrics)["gangsched_api_requests_total outcome=Ok resource=other verb=get"] == 2


class TestDistribution:
    def test_it_counts_as_the_clients_own_histogram_does(self):
        registry = CollectorRegistry()
        ours = Distribution("ours", "Text.", (0.1, 1, 10))
        registry.register(ours)
        theirs = Histogram("theirs", "Text.", buckets=(0.1, 1, 10), registry=registry)
        for value in (0.05, 0.1, 0.5, 1, 11, 20):
            ours.add(value)
            theirs.observe(value)
        text = generate_latest(registry).decode()
        ours_told, theirs_told = (
            [line.removeprefix(name) for line in text.splitlines() if line.startswith(f"{name}_")]
            for name in ("ours", "theirs")
        )
        assert ours_told == theirs_told

    def test_each_label_has_its_own_counts(self):
        metrics = Metrics()
        metrics.stage_took("Plan", 0.002)
        metrics.stage_took("Events", 0.2)
        metrics.stage_took("Plan", 0.3)
        found = samples(metrics)
        assert found["gangsched_stage_duration_seconds_count stage=Plan"] == 2
        assert found["gangsched_stage_duration_seconds_count stage=Events"] == 1
        assert found["gangsched_stage_duration_seconds_bucket le=0.005 stage=Plan"] == 1
