from __future__ import annotations

import re
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gangsched.core.objects.stats import Stats
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
    stats.append(replace(STATS, pods=8))
    assert samples(metrics)["gangsched_pods"] == 8


def test_before_there_is_a_machine_the_numbers_are_zero():
    assert samples(Metrics())["gangsched_pods"] == 0


def test_two_instances_do_not_share_their_numbers():
    first, second = Metrics(), Metrics()
    first.event_dropped()
    assert samples(first)["gangsched_events_dropped_total"] == 1
    assert samples(second)["gangsched_events_dropped_total"] == 0


@pytest.mark.parametrize("described", describe(), ids=lambda described: described.name)
def test_every_metric_follows_the_naming_rules_and_says_what_it_means(described):
    assert re.fullmatch(r"gangsched_[a-z_]+", described.name)
    assert described.help.endswith(".")
    assert described.name.endswith("_total") == (described.type == "counter")
    assert not {"group", "pod", "node", "namespace", "name", "uid"} & set(described.labels)


def test_the_description_lists_everything_that_a_scrape_shows():
    metrics = Metrics()
    families = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in text_string_to_metric_families(metrics.render().decode())
    }
    assert families <= {described.name for described in describe()}
    assert ("gangsched_relists_total", ("resource", "cause")) in {(d.name, d.labels) for d in describe()}
