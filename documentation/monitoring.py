"""Monitoring: the chart's alerts, the runbook that explains each of them, and the chart's dashboard.

All are generated from the two tables here. A test parses each expression and compares its metrics with those
that exist.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import yaml

RUNBOOK = "docs/runbook.md"


class Alert(NamedTuple):
    """One alert; it fires once its expression holds for `lasts`. `means` and `do` are its section of the runbook."""

    name: str
    expr: str
    lasts: str
    severity: str
    summary: str
    means: str
    do: str


class Panel(NamedTuple):
    """One graph of the dashboard: its queries by legend, and the unit of its axis in Grafana's notation."""

    title: str
    unit: str
    queries: dict[str, str]


_PER_INSTALLATION = "by (namespace, job)"
"""A ServiceMonitor gives these labels; replicas of one installation share them."""

ALERTS = (
    Alert(
        "GangschedAbsent",
        "absent(gangsched_build_info)",
        "5m",
        "critical",
        "No replica of gangsched is scraped.",
        "No process of gangsched answers Prometheus, so most likely none runs. Pods with its schedulerName stay"
        " Pending; running pods are not affected.",
        "Look at the pods: `kubectl -n gangsched-system get pods`, then `kubectl describe pod` and the log of the one"
        " that restarts. If all are Ready, look at the ServiceMonitor's labels and the NetworkPolicy's `metricsFrom`.",
    ),
    Alert(
        "GangschedNoLeader",
        f"sum {_PER_INSTALLATION} (gangsched_leader) == 0",
        "2m",
        "critical",
        "No replica of gangsched in {{ $labels.namespace }} holds the Lease: nothing is scheduled.",
        "All replicas are standbys, and a Lease that its holder lost expires after 15 s. Either they cannot write the"
        " Lease, or something else holds it.",
        "Find out what holds it: `kubectl -n gangsched-system get lease gangsched -o yaml`. The log of each replica"
        " says why it does not lead. A 403 there names the missing right.",
    ),
    Alert(
        "GangschedTwoLeaders",
        f"sum {_PER_INSTALLATION} (gangsched_leader) > 1",
        "1m",
        "critical",
        "{{ $value }} replicas of gangsched in {{ $labels.namespace }} lead at once.",
        "Replicas with different Leases, or without leader election, decide at the same time. They bind each other's"
        " pods and may split gangs.",
        "Give all replicas of one installation the same `leaderElection`, and run none with `--no-leader-elect`. Two"
        " installations need different `schedulerNames`.",
    ),
    Alert(
        "GangschedNotDeciding",
        f"sum {_PER_INSTALLATION} (gangsched_leader) > 0 and sum {_PER_INSTALLATION} (gangsched_synced) == 0",
        "5m",
        "critical",
        "The leader of gangsched in {{ $labels.namespace }} has not listed everything and decides nothing.",
        "The leader waits for a list of some kind of object: a right is missing, or the API server does not answer.",
        "`/readyz` of the leader says which list it waits for, and the log says why.",
    ),
    Alert(
        "GangschedApiFailing",
        f"max {_PER_INSTALLATION} (gangsched_api_problem_seconds) > 120",
        "1m",
        "warning",
        "Requests of gangsched in {{ $labels.namespace }} to the API server have failed for two minutes.",
        "`gangsched_api_failures_total` says which requests fail, and whether they got no answer (Unreachable), were"
        " not authenticated (Credentials), lacked a right (Denied) or met an internal error (Failing).",
        "For Denied, compare the operator's ClusterRole with the chart's: `helm upgrade` restores it. For the others,"
        " look at the API server. gangsched recovers by itself once it answers.",
    ),
    Alert(
        "GangschedLeaseFlapping",
        f"max {_PER_INSTALLATION} (increase(gangsched_leases_lost_total[30m])) > 2",
        "0m",
        "warning",
        "gangsched in {{ $labels.namespace }} loses its Lease again and again.",
        "The leader could not renew its Lease within 10 s. Each time nothing is scheduled until another replica has"
        " taken over.",
        "Compare `gangsched_loop_lag_seconds` (a process without enough CPU) with"
        " `gangsched_lease_renewal_failures_total` (an API server that answers too slowly). Raise `resources`, and keep"
        " `priorityAndFairness` on.",
    ),
    Alert(
        "GangschedGroupFault",
        f"sum {_PER_INSTALLATION} (increase(gangsched_group_faults_total[15m])) > 0",
        "0m",
        "warning",
        "A bug in gangsched in {{ $labels.namespace }} has parked a group.",
        "An exception occurred in the logic of one group. That group is parked with the reason InternalError; all"
        " others continue.",
        "Find the traceback in the leader's log and report it with the group's manifest. After a change of the"
        " PodGroup's spec the group is tried again immediately.",
    ),
    Alert(
        "GangschedObjectSetAside",
        f"max {_PER_INSTALLATION} (gangsched_objects_set_aside) > 0",
        "0m",
        "warning",
        "A bug in gangsched in {{ $labels.namespace }} makes it do without an object.",
        "An exception occurred over an object that belongs to no group. That object counts as not there, so nothing is"
        " placed on a node that is set aside; all else continues.",
        "The metric counts them by kind, and `/readyz` of the leader names them. Find the traceback in its log and"
        " report it with the object. The object is tried again when it changes.",
    ),
    Alert(
        "GangschedRival",
        f"sum {_PER_INSTALLATION} (increase(gangsched_rival_bindings_total[10m])) > 0",
        "0m",
        "warning",
        "Another process binds pods of gangsched in {{ $labels.namespace }}.",
        "Pods with a schedulerName of this installation were bound by another process: a second installation with the"
        " same name, or a script.",
        "The log names the pods. Give each installation its own `schedulerNames` and each replica the same Lease.",
    ),
    Alert(
        "GangschedBindingsRefused",
        f'sum {_PER_INSTALLATION} (rate(gangsched_bindings_total{{result!~"Bound|Withdrawn|Dropped|Gone"}}[10m]))'
        f" > 0.1 * sum {_PER_INSTALLATION} (rate(gangsched_bindings_total[10m]))",
        "10m",
        "warning",
        "More than a tenth of the bindings of gangsched in {{ $labels.namespace }} is refused.",
        "The API server refuses bindings. Forbidden and Denied: an admission policy or a namespace that is being"
        " deleted. Conflict: another process binds the same pods. Unavailable: the server is overloaded.",
        "`gangsched_bindings_total` by result says which; conditions BindingRefused on PodGroups and Events"
        " BindingsRefused on nodes quote the server.",
    ),
    Alert(
        "GangschedGroupsDegraded",
        f'max {_PER_INSTALLATION} (gangsched_groups{{phase="Degraded"}}) > 0',
        "15m",
        "warning",
        "{{ $value }} groups of gangsched in {{ $labels.namespace }} have been Degraded for 15 minutes.",
        "Groups that were whole have fewer bound members than their minimum, or a partly bound group could not be"
        " rolled back, because a PodDisruptionBudget forbids it or no controller would recreate its pods.",
        "`kubectl get podgroups.gangsched.io -A | grep Degraded`, then `kubectl describe` one: the condition Degraded"
        " says what it waits for.",
    ),
    Alert(
        "GangschedTimeouts",
        f"sum {_PER_INSTALLATION} (increase(gangsched_timeouts_total[1h])) > 20",
        "0m",
        "info",
        "{{ $value }} attempts of groups in {{ $labels.namespace }} have timed out within an hour.",
        "Groups wait longer than their maxScheduleTime: the cluster has less room than they request.",
        "`gangsched explain -A` lists what waits, and for each what would help. Add nodes, or raise"
        " maxScheduleTime where waiting is expected.",
    ),
    Alert(
        "GangschedSlowPass",
        "histogram_quantile(0.99, sum by (namespace, job, le) (rate(gangsched_pass_duration_seconds_bucket[10m])))"
        " > 2.5",
        "10m",
        "warning",
        "Scheduling cycles of gangsched in {{ $labels.namespace }} take more than 2.5 s.",
        "Scheduling cycles take longer than their budget allows for, or the process has too little CPU.",
        "Compare with `gangsched_loop_lag_seconds`. If that is high too, raise the CPU request, and make sure that no"
        " CPU limit is set. docs/performance.md has the sizes that were measured.",
    ),
    Alert(
        "GangschedPartlyBound",
        f"max {_PER_INSTALLATION} (gangsched_partly_bound_groups) > 0",
        "5m",
        "warning",
        "{{ $value }} groups of gangsched in {{ $labels.namespace }} have been partly bound for 5 minutes.",
        "A quorum is partly bound, and within `repairDeadline` neither was the rest bound nor were the bound members"
        " evicted. These members hold room (`gangsched_idle_capacity`) and do no work.",
        "`kubectl get podgroups.gangsched.io -A`, then `kubectl describe` those in phase Binding or Degraded: the"
        " condition quotes what the API server refuses, or the PodDisruptionBudget that forbids an eviction. Delete"
        " the bound members to free their nodes.",
    ),
    Alert(
        "GangschedCapacityHeld",
        f'max {_PER_INSTALLATION} (min_over_time(gangsched_held_capacity{{resource="gpu"}}[15m])) > 0',
        "15m",
        "info",
        "{{ $value }} GPUs have been reserved by gangsched in {{ $labels.namespace }} for half an hour, and are not"
        " used.",
        "Places are held for members that do not exist yet, or that cannot be bound. `maxHoldTime` and"
        " `namespaceLimits` limit what one group and one namespace may hold.",
        "`kubectl get podgroups.gangsched.io -A | grep Reserved`: the field `status.reservation` says where and until"
        " when. Lower `maxHoldTime`, or the group's `maxScheduleTime`, if its members come too late.",
    ),
    Alert(
        "GangschedWatchLag",
        "histogram_quantile(0.95, sum by (namespace, job, le) (rate(gangsched_watch_lag_seconds_bucket[10m]))) > 2",
        "10m",
        "warning",
        "The watch of pods is more than 2 s behind in gangsched of {{ $labels.namespace }}.",
        "The API server answers bindings long before its watch shows them, so decisions are based on stale data.",
        "Compare `gangsched_loop_lag_seconds`: if it is high too, the process lacks CPU. Otherwise look at the API"
        " server's watch cache and at etcd.",
    ),
    Alert(
        "GangschedThrottled",
        f'sum {_PER_INSTALLATION} (rate(gangsched_api_requests_total{{outcome="Throttled"}}[10m]))'
        f" > 0.05 * sum {_PER_INSTALLATION} (rate(gangsched_api_requests_total[10m]))",
        "10m",
        "warning",
        "The API server throttles more than a twentieth of the requests of gangsched in {{ $labels.namespace }}.",
        "Responses with status 429: API priority and fairness gives gangsched too few seats, or PodDisruptionBudgets"
        " forbid evictions.",
        "`gangsched_api_requests_total` by resource says which requests; for `pods/eviction` look at the budgets."
        " Otherwise keep `priorityAndFairness` on, or lower `bindConcurrency`.",
    ),
    Alert(
        "GangschedQueueGrows",
        f"max {_PER_INSTALLATION} (gangsched_effects_queued) > 1000",
        "5m",
        "warning",
        "More than 1,000 writes of gangsched in {{ $labels.namespace }} wait for the API server.",
        "The API server accepts writes more slowly than gangsched decides them. Bindings go first; status and Events"
        " wait.",
        "Look at the API server's latency and at its priority level workload-high; keep `priorityAndFairness` on.",
    ),
    Alert(
        "GangschedNodesAvoided",
        f"max {_PER_INSTALLATION} (gangsched_avoided_nodes) > 0",
        "30m",
        "info",
        "{{ $value }} nodes refuse the pods that gangsched in {{ $labels.namespace }} binds there.",
        "A kubelet or the API server refuses pods on these nodes; gangsched prefers other nodes in the meantime.",
        "`kubectl get events -A --field-selector reason=BindingsRefused` names the nodes and quotes the responses."
        " Repair or drain these nodes.",
    ),
    Alert(
        "GangschedCrdOutdated",
        f"max {_PER_INSTALLATION} (gangsched_crd_fields_missing) > 0",
        "15m",
        "warning",
        "The cluster's PodGroup definition lacks {{ $value }} fields that gangsched in {{ $labels.namespace }} uses.",
        "The operator is newer than the CustomResourceDefinition, and the API server drops the fields that it does not"
        " know.",
        "Apply the current one: `kubectl apply --server-side -f crds/`, or `helm upgrade` of the release that owns it.",
    ),
)

PANELS = (
    Panel("Groups by phase", "short", {"{{phase}}": "max by (phase) (gangsched_groups)"}),
    Panel(
        "What waits",
        "short",
        {
            "complete, waits for room": "max(gangsched_waiting)",
            "waits for an event that can help": "max(gangsched_parked)",
        },
    ),
    Panel(
        "Time from complete to bound",
        "s",
        {
            "median": "histogram_quantile(0.5, sum by (le) (rate(gangsched_gang_wait_seconds_bucket[5m])))",
            "95 %": "histogram_quantile(0.95, sum by (le) (rate(gangsched_gang_wait_seconds_bucket[5m])))",
        },
    ),
    Panel(
        "Time from complete to bound by priority, 95 %",
        "s",
        {
            "{{priority}}": "histogram_quantile(0.95, sum by (priority, le)"
            " (rate(gangsched_gang_wait_seconds_bucket[5m])))"
        },
    ),
    Panel(
        "CPU that serves no running group",
        "short",
        {
            "reserved for members to come": 'max(gangsched_held_capacity{resource="cpu"})',
            "bound members of groups below their minimum": 'max(gangsched_idle_capacity{resource="cpu"})',
        },
    ),
    Panel(
        "GPUs that serve no running group",
        "short",
        {
            "reserved for members to come": 'max(gangsched_held_capacity{resource="gpu"})',
            "bound members of groups below their minimum": 'max(gangsched_idle_capacity{resource="gpu"})',
        },
    ),
    Panel(
        "Time for which quorums were bound in part",
        "s",
        {
            "median": "histogram_quantile(0.5, sum by (le) (rate(gangsched_partly_bound_seconds_bucket[5m])))",
            "99 %": "histogram_quantile(0.99, sum by (le) (rate(gangsched_partly_bound_seconds_bucket[5m])))",
        },
    ),
    Panel("Why groups wait", "cps", {"{{reason}}": "sum by (reason) (rate(gangsched_refusals_total[5m]))"}),
    Panel("Bindings", "cps", {"{{result}}": "sum by (result) (rate(gangsched_bindings_total[1m]))"}),
    Panel(
        "Duration of a binding",
        "s",
        {
            "median": "histogram_quantile(0.5, sum by (le) (rate(gangsched_binding_duration_seconds_bucket[5m])))",
            "99 %": "histogram_quantile(0.99, sum by (le) (rate(gangsched_binding_duration_seconds_bucket[5m])))",
        },
    ),
    Panel(
        "Duration of a scheduling cycle",
        "s",
        {
            "median": "histogram_quantile(0.5, sum by (le) (rate(gangsched_pass_duration_seconds_bucket[5m])))",
            "99 %": "histogram_quantile(0.99, sum by (le) (rate(gangsched_pass_duration_seconds_bucket[5m])))",
        },
    ),
    Panel(
        "Time of scheduling cycles by stage",
        "percentunit",
        {"{{stage}}": "sum by (stage) (rate(gangsched_stage_duration_seconds_sum[5m]))"},
    ),
    Panel(
        "Share of its budget that a scheduling cycle uses",
        "percentunit",
        {
            "median": "histogram_quantile(0.5, sum by (le) (rate(gangsched_pass_budget_used_bucket[5m])))",
            "99 %": "histogram_quantile(0.99, sum by (le) (rate(gangsched_pass_budget_used_bucket[5m])))",
        },
    ),
    Panel(
        "Watch of pods behind the answers to bindings",
        "s",
        {
            "median": "histogram_quantile(0.5, sum by (le) (rate(gangsched_watch_lag_seconds_bucket[5m])))",
            "95 %": "histogram_quantile(0.95, sum by (le) (rate(gangsched_watch_lag_seconds_bucket[5m])))",
        },
    ),
    Panel(
        "Delay of the event loop",
        "s",
        {"99 %": "histogram_quantile(0.99, sum by (le) (rate(gangsched_loop_lag_seconds_bucket[5m])))"},
    ),
    Panel("Writes that wait", "short", {"{{kind}}": "max by (kind) (gangsched_effects_queued)"}),
    Panel("Requests by outcome", "cps", {"{{outcome}}": "sum by (outcome) (rate(gangsched_api_requests_total[5m]))"}),
    Panel(
        "Failed requests",
        "cps",
        {
            "{{problem}} {{verb}} {{resource}}": "sum by (problem, verb, resource)"
            " (rate(gangsched_api_failures_total[5m]))"
        },
    ),
    Panel("Watch events", "cps", {"{{resource}}": "sum by (resource) (rate(gangsched_watch_events_total[5m]))"}),
    Panel("Leader", "short", {"{{pod}}": "gangsched_leader", "{{pod}} decides": "gangsched_synced"}),
    Panel("Nodes that refuse pods", "cps", {"refusals": "sum(rate(gangsched_node_refusals_total[5m]))"}),
    Panel("Timed out", "cps", {"attempts": "sum(rate(gangsched_timeouts_total[5m]))"}),
    Panel("Evictions", "cps", {"{{result}}": "sum by (result) (rate(gangsched_evictions_total[5m]))"}),
    Panel(
        "Pods and nodes known",
        "short",
        {"pods": "max(gangsched_pods)", "nodes": "max(gangsched_nodes)", "avoided": "max(gangsched_avoided_nodes)"},
    ),
    Panel(
        "Defects and rivals",
        "short",
        {
            "faults of {{step}}": "sum by (step) (increase(gangsched_group_faults_total[1h]))",
            "pods bound by others": "sum(increase(gangsched_rival_bindings_total[1h]))",
        },
    ),
)

_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 2
_GENERATED = "Generated by make docs from documentation/monitoring.py: change that, not this file."


def alerts() -> str:
    """The groups of the chart's PrometheusRule."""
    rules = [
        {
            "alert": alert.name,
            "expr": alert.expr,
            "for": alert.lasts,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "runbook": f"{RUNBOOK}#{alert.name.lower()}"},
        }
        for alert in ALERTS
    ]
    text = yaml.safe_dump({"groups": [{"name": "gangsched", "rules": rules}]}, sort_keys=False, width=1000)
    return f"# {_GENERATED}\n{text}"


def runbook() -> str:
    """The page that explains every alert."""
    intro = "This page says what each alert of the chart's PrometheusRule means, and what to do about it."
    lines = ["# Runbook", "", intro, ""]
    for alert in ALERTS:
        lines += [f"## {alert.name}", "", alert.means, "", f"**Do:** {alert.do}", ""]
        lasts = "" if alert.lasts == "0m" else f" for {alert.lasts}"
        lines += [f"Severity {alert.severity}; fires when this holds{lasts}:", "", "```promql", alert.expr, "```", ""]
    return "\n".join(lines)


def dashboard() -> str:
    """The dashboard as Grafana imports it; the data source is chosen on the page."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    panels = [_panel(number, panel, source) for number, panel in enumerate(PANELS)]
    chooser = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    page = {
        "title": "gangsched",
        "description": _GENERATED,
        "uid": "gangsched",
        "tags": ["kubernetes", "scheduling"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [chooser]},
        "panels": panels,
    }
    return json.dumps(page, indent=1) + "\n"


def _panel(number: int, panel: Panel, source: dict[str, str]) -> dict[str, Any]:
    row, column = divmod(number, _COLUMNS)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": source,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + order), "datasource": source, "expr": expr, "legendFormat": legend}
            for order, (legend, expr) in enumerate(panel.queries.items())
        ],
    }
