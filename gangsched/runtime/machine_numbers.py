"""The metrics that are read from the machine's own numbers at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gangsched.core.objects.stats import Stats
from gangsched.core.planning.strategies import GPU_SUFFIX

_MILLI = 1000
_NONE = Stats(
    pods=0,
    nodes=0,
    phases={},
    waiting=0,
    parked=0,
    refusals={},
    timeouts=0,
    avoided_nodes=0,
    node_refusals=0,
    held={},
    idle={},
    partial=0,
    set_aside={},
)
"""The numbers before there is a machine."""

Family = TypeVar("Family", CounterMetricFamily, GaugeMetricFamily)


class MachineNumbers(Collector):
    """Converts `stats` of the machine to metrics at each scrape."""

    def __init__(self) -> None:
        self.stats: Callable[[], Stats] = lambda: _NONE

    def describe(self) -> Iterator[Metric]:
        return _families(_NONE)

    def collect(self) -> Iterator[Metric]:
        return _families(self.stats())


def _families(stats: Stats) -> Iterator[Metric]:
    for name, text, number in (
        (
            "gangsched_pods",
            "Pods in the scheduler's cache: all pods that have not ended, of any scheduler.",
            stats.pods,
        ),
        ("gangsched_nodes", "Nodes in the scheduler's cache.", stats.nodes),
        ("gangsched_waiting", "Complete groups and plain pods that wait for room.", stats.waiting),
        (
            "gangsched_parked",
            "Waiting groups and plain pods that are retried only after an event that can help them.",
            stats.parked,
        ),
        (
            "gangsched_avoided_nodes",
            "Nodes that all groups avoid for a while if others fit, because pods were refused there.",
            stats.avoided_nodes,
        ),
        (
            "gangsched_partly_bound_groups",
            "Groups whose quorum is only partly bound; repairDeadline limits how long this lasts.",
            stats.partial,
        ),
        ("gangsched_plans_open", "Open plans of preemption.", stats.plans),
        ("gangsched_reservations_open", "Groups for which places are reserved for later.", stats.reservations),
    ):
        yield GaugeMetricFamily(name, text, value=number)
    yield from _capacity(stats)
    yield _labelled(
        GaugeMetricFamily, "gangsched_groups", "Groups known to the scheduler, by phase.", "phase", stats.phases
    )
    yield _labelled(
        CounterMetricFamily,
        "gangsched_refusals",
        "Decisions that a group or plain pod must wait, by reason.",
        "reason",
        stats.refusals,
    )
    yield from _preemption(stats)
    yield _labelled(
        GaugeMetricFamily,
        "gangsched_objects_set_aside",
        "Objects that count as not there, because an exception that concerns no group occurred over them, by kind."
        " Each one is a bug: report it with the traceback from the log.",
        "kind",
        stats.set_aside,
    )
    yield CounterMetricFamily(
        "gangsched_node_refusals",
        "Refusals by the API server or a kubelet that count against a node and not against the pod.",
        value=stats.node_refusals,
    )
    yield CounterMetricFamily(
        "gangsched_timeouts",
        "Attempts of groups that ended because maxScheduleTime had passed.",
        value=stats.timeouts,
    )


def _preemption(stats: Stats) -> Iterator[Metric]:
    """What has come of plans of preemption."""
    yield _labelled(
        CounterMetricFamily,
        "gangsched_plans_ended",
        "Plans of preemption and reservations that have ended, by how: see docs/preemption.md and docs/backfill.md.",
        "ending",
        stats.ended,
    )
    yield _labelled(
        CounterMetricFamily,
        "gangsched_evictions_decided",
        "Evictions that were decided, by cause: Rollback, Restart, Preemption or Overdue. gangsched_evictions"
        " counts results.",
        "cause",
        stats.evictions,
    )
    yield _labelled(
        CounterMetricFamily,
        "gangsched_lost_resource_seconds",
        "Amounts that preempted pods had requested, times the seconds that they had run: cores, bytes, GPUs of all"
        " kinds.",
        "resource",
        _shown(stats.lost),
    )
    yield CounterMetricFamily(
        "gangsched_victim_search_trials",
        "How often searches for pods to preempt have tried to place a group.",
        value=stats.trials,
    )
    yield CounterMetricFamily(
        "gangsched_backfilled",
        "Groups and single pods that were placed on nodes that are reserved for later, because they end before.",
        value=stats.backfilled,
    )


def _capacity(stats: Stats) -> Iterator[Metric]:
    """Capacity that serves no running group.

    Of the extended resources only GPUs are shown, because a cluster may have any number of extended resources.
    """
    for name, text, amounts in (
        (
            "gangsched_held_capacity",
            "Capacity reserved for members that are not bound, by resource: cores, bytes, and GPUs of all kinds.",
            stats.held,
        ),
        (
            "gangsched_idle_capacity",
            "Capacity of bound members whose group has fewer members bound than its minimum, by resource.",
            stats.idle,
        ),
        (
            "gangsched_reserved_idle_capacity",
            "Capacity that is kept free on nodes that are reserved for later, by resource.",
            stats.reserved_idle,
        ),
    ):
        yield _labelled(GaugeMetricFamily, name, text, "resource", _shown(amounts))


def _labelled(kind: type[Family], name: str, text: str, label: str, numbers: Mapping[str, float]) -> Family:
    """The family with these numbers by the label."""
    family = kind(name, text, labels=[label])
    for value, number in numbers.items():
        family.add_metric([value], number)
    return family


def _shown(amounts: Mapping[str, float]) -> dict[str, float]:
    gpus = sum(number for resource, number in amounts.items() if resource.endswith(GPU_SUFFIX))
    return {"cpu": amounts.get("cpu", 0) / _MILLI, "memory": amounts.get("memory", 0), "gpu": gpus}
