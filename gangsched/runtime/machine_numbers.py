"""The metrics that are read from the machine's own numbers at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gangsched.core.objects.stats import Stats
from gangsched.core.planning.strategies import GPU_SUFFIX

_MILLI = 1000


class MachineNumbers(Collector):
    """Converts `stats` of the machine to metrics at each scrape; without `stats` all numbers are 0."""

    def __init__(self) -> None:
        self.stats: Callable[[], Stats] | None = None

    def describe(self) -> Iterator[Metric]:
        return self._families(None)

    def collect(self) -> Iterator[Metric]:
        return self._families(self.stats() if self.stats is not None else None)

    @staticmethod
    def _families(stats: Stats | None) -> Iterator[Metric]:
        for name, text, number in (
            (
                "gangsched_pods",
                "Pods in the scheduler's cache: all pods that have not ended, of any scheduler.",
                stats and stats.pods,
            ),
            ("gangsched_nodes", "Nodes in the scheduler's cache.", stats and stats.nodes),
            ("gangsched_waiting", "Complete groups and plain pods that wait for room.", stats and stats.waiting),
            (
                "gangsched_parked",
                "Waiting groups and plain pods that are retried only after an event that can help them.",
                stats and stats.parked,
            ),
            (
                "gangsched_avoided_nodes",
                "Nodes that all groups avoid for a while if others fit, because pods were refused there.",
                stats and stats.avoided_nodes,
            ),
            (
                "gangsched_partly_bound_groups",
                "Groups whose quorum is only partly bound; repairDeadline limits how long this lasts.",
                stats and stats.partial,
            ),
            ("gangsched_plans_open", "Open plans of preemption.", stats and stats.plans),
            (
                "gangsched_reservations_open",
                "Groups for which places are reserved for later.",
                stats and stats.reservations,
            ),
        ):
            yield GaugeMetricFamily(name, text, value=number or 0)
        yield from _capacity(stats)
        groups = GaugeMetricFamily("gangsched_groups", "Groups known to the scheduler, by phase.", labels=["phase"])
        refusals = CounterMetricFamily(
            "gangsched_refusals", "Decisions that a group or plain pod must wait, by reason.", labels=["reason"]
        )
        for phase, number in (stats.phases if stats is not None else {}).items():
            groups.add_metric([phase], number)
        for reason, number in (stats.refusals if stats is not None else {}).items():
            refusals.add_metric([reason], number)
        aside = GaugeMetricFamily(
            "gangsched_objects_set_aside",
            "Objects that count as not there, because an exception that concerns no group occurred over them, by kind."
            " Each one is a bug: report it with the traceback from the log.",
            labels=["kind"],
        )
        for kind, number in (stats.set_aside if stats is not None else {}).items():
            aside.add_metric([kind], number)
        yield groups
        yield refusals
        yield from _preemption(stats)
        yield aside
        yield CounterMetricFamily(
            "gangsched_node_refusals",
            "Refusals by the API server or a kubelet that count against a node and not against the pod.",
            value=stats.node_refusals if stats is not None else 0,
        )
        yield CounterMetricFamily(
            "gangsched_timeouts",
            "Attempts of groups that ended because maxScheduleTime had passed.",
            value=stats.timeouts if stats is not None else 0,
        )


def _preemption(stats: Stats | None) -> Iterator[Metric]:
    """What has come of plans of preemption."""
    ended = CounterMetricFamily(
        "gangsched_plans_ended",
        "Plans of preemption and reservations that have ended, by how: see docs/preemption.md and docs/backfill.md.",
        labels=["ending"],
    )
    for ending, number in (stats.ended if stats is not None else {}).items():
        ended.add_metric([ending], number)
    evictions = CounterMetricFamily(
        "gangsched_evictions_decided",
        "Evictions that were decided, by cause: Rollback, Restart, Preemption or Overdue. gangsched_evictions counts"
        " results.",
        labels=["cause"],
    )
    for cause, number in (stats.evictions if stats is not None else {}).items():
        evictions.add_metric([cause], number)
    lost = CounterMetricFamily(
        "gangsched_lost_resource_seconds",
        "Amounts that preempted pods had requested, times the seconds that they had run: cores, bytes, GPUs of all"
        " kinds.",
        labels=["resource"],
    )
    for resource, amount in _shown(stats.lost if stats is not None else {}).items():
        lost.add_metric([resource], amount)
    yield ended
    yield evictions
    yield lost
    yield CounterMetricFamily(
        "gangsched_victim_search_trials",
        "How often searches for pods to preempt have tried to place a group.",
        value=stats.trials if stats is not None else 0,
    )
    yield CounterMetricFamily(
        "gangsched_backfilled",
        "Groups and single pods that were placed on nodes that are reserved for later, because they end before.",
        value=stats.backfilled if stats is not None else 0,
    )


def _capacity(stats: Stats | None) -> Iterator[Metric]:
    """Capacity that serves no running group.

    Of the extended resources only GPUs are shown, because a cluster may have any number of extended resources.
    """
    for name, text, amounts in (
        (
            "gangsched_held_capacity",
            "Capacity reserved for members that are not bound, by resource: cores, bytes, and GPUs of all kinds.",
            stats.held if stats is not None else {},
        ),
        (
            "gangsched_idle_capacity",
            "Capacity of bound members whose group has fewer members bound than its minimum, by resource.",
            stats.idle if stats is not None else {},
        ),
        (
            "gangsched_reserved_idle_capacity",
            "Capacity that is kept free on nodes that are reserved for later, by resource.",
            stats.reserved_idle if stats is not None else {},
        ),
    ):
        family = GaugeMetricFamily(name, text, labels=["resource"])
        for resource, number in _shown(amounts).items():
            family.add_metric([resource], number)
        yield family


def _shown(amounts: Mapping[str, float]) -> dict[str, float]:
    gpus = sum(number for resource, number in amounts.items() if resource.endswith(GPU_SUFFIX))
    return {"cpu": amounts.get("cpu", 0) / _MILLI, "memory": amounts.get("memory", 0), "gpu": gpus}
