"""The metrics of gangsched, in their own registry. The reference in docs/ is generated from `describe`.

No metric has a label for a group, pod, node or namespace: the number of time series does not grow with the cluster.
"""

from __future__ import annotations

import platform
from collections import Counter as Numbers
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics import MetricWrapperBase

from gangsched.core.objects.effects import BindPod, EvictPod
from gangsched.core.objects.stats import Measured, Stats
from gangsched.runtime.distributions import Distribution
from gangsched.runtime.durations import Durations
from gangsched.runtime.machine_numbers import MachineNumbers


class Described(NamedTuple):
    """One metric as the documentation lists it."""

    name: str
    type: str
    labels: tuple[str, ...]
    help: str


_PASS_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_CALL_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_LAG_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5)
_STAGE_BUCKETS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5)
_BUDGET_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5)
_OUTCOMES = {0: "Unanswered", 401: "Denied", 403: "Denied", 404: "NotFound", 409: "Conflict", 429: "Throttled"}
_CLASSES = ((400, "Ok"), (500, "Refused"))


# Otherwise the text format has an extra metric for the creation time of every counter and histogram.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """All metrics of one process. Each instance has its own registry."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self._registry = registry
        self._known = MachineNumbers()
        registry.register(self._known)
        self._bindings = counter(
            "gangsched_bindings",
            "Bindings, by result: Bound, or why not. Withdrawn and Dropped bindings were never sent: the scheduler"
            " withdrew its decision, or was shut down.",
            ["result"],
        )
        self._evictions = counter(
            "gangsched_evictions",
            "Evictions, by result: Evicted, or why not. Dropped evictions were never sent because of a shutdown.",
            ["result"],
        )
        self._binding_duration = histogram(
            "gangsched_binding_duration_seconds", "Time from sending a binding to its answer.", buckets=_CALL_BUCKETS
        )
        self._writes = counter(
            "gangsched_writes",
            "Other requests (status patches, conditions, Events, Demands, look-ups of owners, creations and"
            " deletions of PodGroups), by kind and result. Dropped ones were never sent because of a shutdown.",
            ["kind", "result"],
        )
        self._own_results = {BindPod.__name__: self._bindings, EvictPod.__name__: self._evictions}
        self._withheld = counter(
            "gangsched_writes_withheld",
            "Writes not sent because this process's term of leadership had ended, by kind.",
            ["kind"],
        )
        self._queued = gauge("gangsched_effects_queued", "Writes waiting to be sent, by kind.", ["kind"])
        self._effects = counter("gangsched_effects", "Writes decided, by kind. A dry run counts them too.", ["kind"])
        self._dropped = counter(
            "gangsched_events_dropped", "Kubernetes Events dropped because the queue was full (the oldest first)."
        )
        self._pass_duration = histogram(
            "gangsched_pass_duration_seconds",
            "Duration of one scheduling cycle, from draining the events to deciding the writes.",
            buckets=_PASS_BUCKETS,
        )
        self._inputs = counter("gangsched_inputs", "Events handled by scheduling cycles, by type.", ["type"])
        self._watch_events = counter("gangsched_watch_events", "Watch events received, by resource.", ["resource"])
        self._relists = counter(
            "gangsched_relists",
            "Complete lists of a resource after the first one, by resource and cause.",
            ["resource", "cause"],
        )
        self._durations = Durations(registry)
        self._stages = Distribution(
            "gangsched_stage_duration_seconds",
            "Duration of the stages of a scheduling cycle: Events (applying events), Upkeep (updating groups), Plan"
            " (placing groups) and Status (deciding statuses, Events and demands).",
            _STAGE_BUCKETS,
            label="stage",
        )
        self._budget = Distribution(
            "gangsched_pass_budget_used",
            "Share of its work budget that a scheduling cycle has used. At 1 it leaves work to the next cycle.",
            _BUDGET_BUCKETS,
        )
        self._watch_lag = Distribution(
            "gangsched_watch_lag_seconds",
            "Time from the answer to a binding until the watch of pods shows it; 0 if the watch was first.",
            _LAG_BUCKETS,
        )
        for distribution in (self._stages, self._budget, self._watch_lag):
            registry.register(distribution)
        self._requests: Numbers[tuple[str, str, str]] = Numbers()
        self._api_requests = counter(
            "gangsched_api_requests",
            "Requests to the API server, by verb, resource and outcome: Ok, Conflict (409), NotFound (404), Throttled"
            " (429), Denied (401 or 403), Refused (another 4xx), Failed (5xx) or Unanswered. A watch counts once, when"
            " it begins.",
            ["verb", "resource", "outcome"],
        )
        self._loop_lag = histogram(
            "gangsched_loop_lag_seconds",
            "Delay with which the event loop wakes a task that measures it every second.",
            buckets=_LAG_BUCKETS,
        )
        self._synced = gauge(
            "gangsched_synced",
            "1 while this replica makes decisions: it has listed every kind of object, and it leads.",
        )
        self._leader = gauge(
            "gangsched_leader",
            "1 while this replica may write: it holds the lease or runs without leader election, and it is no dry run.",
        )
        self._lease_transitions = gauge(
            "gangsched_lease_transitions",
            "How often the lease has changed hands, according to the Lease; 0 without leader election.",
        )
        self._renewal_failures = counter(
            "gangsched_lease_renewal_failures", "Failed attempts of this replica to renew its lease."
        )
        self._leases_lost = counter(
            "gangsched_leases_lost", "How often this replica lost the lease as the leader and became a standby."
        )
        self._api_failures = counter(
            "gangsched_api_failures",
            "Failed requests to the API server, by problem, verb and resource. Unreachable: no answer. Credentials:"
            " missing or not accepted (401). Denied: the right is missing, or the server does not know it yet (403)."
            " Failing: an internal error of the server.",
            ["problem", "verb", "resource"],
        )
        self._api_problem_seconds = gauge(
            "gangsched_api_problem_seconds",
            "How long requests to the API server have been failing, by problem; 0 while there is no problem.",
            ["problem"],
        )
        self._crd_lacks = gauge(
            "gangsched_crd_fields_missing",
            "Fields of PodGroup that this operator knows and the installed CustomResourceDefinition lacks: apply the"
            " current one.",
        )
        self._group_faults = counter(
            "gangsched_group_faults",
            "Exceptions in the logic of one group or plain pod, by the step that failed. Each one parks that group and"
            " is a bug: report it with the traceback from the log.",
            ["step"],
        )
        self._rebuilds = counter(
            "gangsched_accounts_rebuilt",
            "How often the accounts of nodes' capacity were rebuilt, because they contradicted each other after an"
            " exception that gangsched_group_faults counts.",
        )
        self._rival_bindings = counter(
            "gangsched_rival_bindings", "Pods of our schedulerNames that another process bound while this replica led."
        )
        gauge("gangsched_build_info", "Always 1; the labels are the versions.", ["version", "python"]).labels(
            version("gangsched"), platform.python_version()
        ).set(1)

    def read_stats_from(self, stats: Callable[[], Stats]) -> None:
        """Read the machine's numbers from this function at every scrape."""
        self._known.stats = stats

    def answered(self, kind: str, result: str, duration_s: float) -> None:
        """Count a write of this kind that had this result after `duration_s`."""
        self._results(kind, result).inc()
        if kind == BindPod.__name__:
            self._binding_duration.observe(duration_s)

    def not_sent(self, kind: str, result: str, count: int = 1) -> None:
        """Count `count` decided writes of this kind that were not sent, for this reason."""
        self._results(kind, result).inc(count)

    def withheld(self, kind: str) -> None:
        """Count a write of this kind that was not sent because the term of leadership had ended."""
        self._withheld.labels(kind).inc()

    def read_queue_from(self, kind: str, waiting: Callable[[], int]) -> None:
        """Read the number of waiting writes of this kind from this function at every scrape."""
        self._queued.labels(kind).set_function(waiting)

    def decided(self, kind: str) -> None:
        """Count a decided write of this kind."""
        self._effects.labels(kind).inc()

    def event_dropped(self) -> None:
        """Count a Kubernetes Event that was dropped because the queue was full."""
        self._dropped.inc()

    def passed(self, duration_s: float, inputs: Mapping[str, int]) -> None:
        """Count a scheduling cycle that took `duration_s`, and its events by type."""
        self._pass_duration.observe(duration_s)
        for name, count in inputs.items():
            self._inputs.labels(name).inc(count)

    def watch_events(self, resource: str, count: int) -> None:
        """Count watch events of this resource."""
        self._watch_events.labels(resource).inc(count)

    def relisted(self, resource: str, cause: str) -> None:
        """Count another complete list of this resource."""
        self._relists.labels(resource, cause).inc()

    def measured(self, measurements: Measured) -> None:
        """Record the machine's measurements of a scheduling cycle."""
        self._durations.observe(measurements)
        self._budget.add(measurements.budget)

    def stage_took(self, stage: str, duration_s: float) -> None:
        """Record how long a stage of a scheduling cycle took."""
        self._stages.add(duration_s, stage)

    def watch_lagged(self, duration_s: float) -> None:
        """Record how far the watch of pods was behind the result of a binding."""
        self._watch_lag.add(duration_s)

    def api_answered(self, verb: str, resource: str, status: int) -> None:
        """Count a request that was answered with this HTTP status; 0 for no answer."""
        outcome = _OUTCOMES.get(status) or next((name for end, name in _CLASSES if status < end), "Failed")
        # Paths that name no resource belong to discovery and probes.
        named = "other" if resource.startswith("/") else resource
        self._requests[verb, named, outcome] += 1

    def loop_lagged(self, duration_s: float) -> None:
        """Record the delay of the event loop."""
        self._loop_lag.observe(duration_s)

    def deciding(self, yes: bool) -> None:  # noqa: FBT001 - the value of a gauge
        """Set whether this replica makes decisions."""
        self._synced.set(yes)

    def read_leader_from(self, may_write: Callable[[], bool]) -> None:
        """Read from this function at every scrape whether this replica may write."""
        self._leader.set_function(may_write)

    def lease_transitions(self, count: int) -> None:
        """Set how often the lease has changed hands, according to the Lease."""
        self._lease_transitions.set(count)

    def renewal_failed(self) -> None:
        """Count a failed attempt to renew our lease."""
        self._renewal_failures.inc()

    def lease_lost(self) -> None:
        """Count a loss of the lease."""
        self._leases_lost.inc()

    def crd_seen(self, missing: Sequence[str]) -> None:
        """Set the fields that the installed CustomResourceDefinition lacks. Any thread may call it."""
        self._crd_lacks.set(len(missing))

    def api_failed(self, problem: str, verb: str, resource: str) -> None:
        """Count a failed request."""
        self._api_failures.labels(problem, verb, resource).inc()

    def read_problem_from(self, problem: str, lasts_s: Callable[[], float]) -> None:
        """Read from this function at every scrape how long the problem has lasted."""
        self._api_problem_seconds.labels(problem).set_function(lasts_s)

    def rivals_bound(self, count: int) -> None:
        """Count pods of ours that another process has bound."""
        self._rival_bindings.inc(count)

    def _results(self, kind: str, result: str) -> Counter:
        """The counter of this kind: bindings and evictions have their own, all other writes share one."""
        own = self._own_results.get(kind)
        return own.labels(result) if own is not None else self._writes.labels(kind, result)

    def group_failed(self, step: str) -> None:
        """Count a failure of one group's logic in this step."""
        self._group_faults.labels(step).inc()

    def rebuilt(self) -> None:
        """Count a rebuild of the accounts."""
        self._rebuilds.inc()

    def render(self) -> bytes:
        """All metrics in the Prometheus text format."""
        requests, self._requests = self._requests, Numbers()
        for labels, number in requests.items():
            self._api_requests.labels(*labels).inc(number)
        return generate_latest(self._registry)


def describe() -> tuple[Described, ...]:
    """All metrics with type, labels and help, sorted by name: the source of the metrics reference in docs/."""
    metrics = Metrics()
    described = []
    for collector in list(metrics._registry._collector_to_names):  # noqa: SLF001 - prometheus-client has no other list
        if not isinstance(collector, MetricWrapperBase | MachineNumbers | Distribution):
            raise TypeError(f"{type(collector).__name__} cannot describe itself")
        for family in collector.describe():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = tuple(getattr(collector, "_labelnames", ())) or tuple(getattr(family, "_labelnames", ()))
            described.append(Described(name, family.type, labels, family.documentation))
    return tuple(sorted(described))
