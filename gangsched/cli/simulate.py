"""`gangsched simulate`: the scheduler's decisions about manifests, without a cluster."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import textwrap
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gangsched.cli.cluster_access import WRONG_USAGE, add_cluster, fail, note, run
from gangsched.cli.output import JSON, NARROWEST, WIDEST, YAML, add_output, shown, structured
from gangsched.cli.progress import Progress
from gangsched.core.objects.wording import first_named, number_of

if TYPE_CHECKING:
    from gangsched.cli import Commands
    from gangsched.config.settings import Settings
    from gangsched.views.findings import Finding
    from gangsched.whatif.departures import Leaving
    from gangsched.whatif.simulation import Decision, Outcome
    from gangsched.whatif.world.contents import World

INCOMPLETE = 1
UNKNOWN = 3
_INDENT = " " * 8
_NAMED = 5
_HEADS = ("TIME", "GROUP", "VERDICT", "REASON", "NODES")


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "simulate",
        help="show the scheduler's decisions about manifests, without a cluster",
        description="Read nodes, pods, PodGroups, Workloads, namespaces, PriorityClasses, LimitRanges, RuntimeClasses, "
        "ResourceQuotas, PodDisruptionBudgets (as their status says), PersistentVolumeClaims, PersistentVolumes, "
        "StorageClasses, CSINodes, CSIDrivers, "
        "CSIStorageCapacities, VolumeAttachments, ResourceSlices, DeviceClasses, ResourceClaims and "
        "ResourceClaimTemplates from YAML or JSON, and expand StatefulSets, Deployments, ReplicaSets, "
        "ReplicationControllers, Jobs, CronJobs (one Job), JobSets, LeaderWorkerSets, DisaggregatedSets, RayClusters, "
        "RayJobs, RayServices, TrainJobs (with their runtimes), MPIJobs and the jobs of Kubeflow's training-operator "
        "into their pods, with the claims of these and of ephemeral volumes, and with Kubernetes' own PodGroups: that "
        "of a Job with spec.scheduling, and those that pods name and a Workload has a template for. What the API "
        "server and the controllers add to "
        "pods is added here too: defaults, limits, overhead, priorities, tolerations, merged label keys, and the "
        "containers, labels and terms of the controllers. Pods of workloads that name no group are gangs where the "
        "namespace in the files has the label gangsched.io/gang: auto, or the workload that annotation. Run the "
        "scheduler on a simulated clock until the longest maxScheduleTime has passed, and print its decisions in "
        "order, with who leaves for groups of higher priority: evicted pods use their whole grace periods, "
        "PodDisruptionBudgets are applied as the API server does, and nothing creates pods again. All objects "
        "exist from the start. Objects are ordered by age as in the files, unless creationTimestamps say otherwise. "
        "An object with only a generateName is named by it and a number. The settings are those of the operator that "
        "leads in the current context's cluster, if it answers within 3 seconds; nothing else is read there.",
        epilog="Exit status: 0 for success, 1 with --fail-on-waiting if a group, or a pod without one, is not "
        "completely bound, 2 for wrong usage or for files that are unreadable or that the API server would refuse, 3 "
        "if the files contain nothing to decide, or something that may change the answer and cannot be applied, which "
        "a sentence on standard error names.",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="manifests; - is standard input")
    parser.add_argument(
        "-n", "--namespace", metavar="NS", default="default", help="namespace of objects without one (default: default)"
    )
    add_cluster(parser)
    add_output(parser, JSON, YAML)
    parser.add_argument(
        "--feature-gates",
        metavar="NAME=BOOL,...",
        type=_gates_off,
        default=frozenset(),
        help="feature gates of the cluster: GenericWorkload, WorkloadWithJob and DRAWorkloadResourceClaims, which "
        "Kubernetes has off by default; what the files use counts as on, and with =false the API server drops it or "
        "refuses it",
    )
    parser.add_argument(
        "--fail-on-waiting",
        action="store_true",
        help="end with status 1 if a group, or a pod without one, is not completely bound",
    )
    parser.set_defaults(execute=_execute)


def _gates_off(text: str) -> frozenset[str]:
    from gangsched.whatif.world import feature_gates  # noqa: PLC0415 - see the package

    try:
        return feature_gates.off(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _execute(arguments: argparse.Namespace) -> int:
    return run(arguments, partial(_decide, arguments))


def _decide(arguments: argparse.Namespace) -> int:
    from gangsched.cli.deciding_settings import rules_for_manifests  # noqa: PLC0415 - see the package

    decided = asyncio.run(rules_for_manifests(arguments))
    for sentence in decided.notes:
        note(arguments, sentence)
    # Outside the event loop, so that Ctrl-C ends it at once.
    return _simulate(arguments, decided.settings)


def _simulate(arguments: argparse.Namespace, settings: Settings) -> int:
    from gangsched.kube.workloads.workload_table import chosen  # noqa: PLC0415
    from gangsched.whatif.simulation import simulate  # noqa: PLC0415
    from gangsched.whatif.world.building import build  # noqa: PLC0415
    from gangsched.whatif.world.feature_gates import without  # noqa: PLC0415
    from gangsched.whatif.world.manifests import ManifestError, read  # noqa: PLC0415 - see the package

    policy = settings.policy()
    try:
        manifests = read(arguments.files, namespace=arguments.namespace)
        world = build(without(manifests, arguments.feature_gates), chosen(settings))
    except ManifestError as error:
        for problem in error.problems:
            fail(arguments, problem)
        return WRONG_USAGE
    for remark in _remarks(world):
        note(arguments, remark)
    with Progress("simulating"):
        outcome = simulate(world, policy, today=time.time())
    for sentence in outcome.told:
        note(arguments, sentence)
    for doubt in world.doubts:
        note(arguments, f"this answer may not hold: {doubt}")
    if not outcome.decisions and not outcome.elsewhere:
        note(arguments, _nothing(world, policy.scheduler_names))
    for key, scheduler in outcome.elsewhere.items():
        note(
            arguments,
            f"group {key} is left out, because it belongs to the schedulerName {scheduler}: correct "
            f"spec.schedulerName of its pods, or ask with --scheduler-name {scheduler}",
        )
    if arguments.output is not None:
        print(structured(arguments.output, _as_object(outcome)))
    else:
        width = min(max(shutil.get_terminal_size((100, 24)).columns, NARROWEST), WIDEST)
        for line in text_of(outcome, width):
            print(shown(line))
    if world.doubts or not outcome.decisions:
        return UNKNOWN
    incomplete = _split(outcome)[1] or outcome.waiting_pods or world.refused
    return INCOMPLETE if arguments.fail_on_waiting and incomplete else 0


def _nothing(world: World, names: Sequence[str]) -> str:
    """The sentence that nothing was decided, with what the files lack."""
    others = Counter(pod.scheduler for pod in world.pods)
    if not others and (world.refused or world.idle):
        return "nothing to decide: the files contain no pod, and none is created, as said above"
    if not others:
        return "nothing to decide: the files contain no group and no pod, and no workload in them makes pods: add some"
    [(most, _)] = others.most_common(1)
    return (
        f"nothing to decide: the files contain no group, and no pod of the schedulerName {' or '.join(names)}, but "
        f"{others.total()} of others, such as {most}: correct spec.schedulerName, or ask with --scheduler-name {most}"
    )


def _remarks(world: World) -> Iterator[str]:
    yield from world.refused
    yield from world.idle
    if world.ignored:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(world.ignored.items()))
        yield f"ignored objects, which create no pods here: {kinds}; if they should, add the manifests of their pods"
    if world.unused:
        yield (
            "not used, because gangsched does not read it and no operator that does runs here: "
            f"{first_named(world.unused, _NAMED)}; declare the gang as docs/gangs.md says, or add the PodGroup that "
            "the operator would create"
        )
    bare = [node.name for node in world.nodes if not {"cpu", "pods"} <= dict(node.allocatable).keys()]
    if bare:
        yield (
            "nodes without cpu or pods in status.allocatable, on which pods that request them do not fit: "
            f"{first_named(bare, _NAMED)}"
        )


def text_of(outcome: Outcome, width: int) -> Iterator[str]:
    """The lines that a person reads."""
    rows = [_HEADS, *map(_row, outcome.decisions)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS) - 1)]
    for row, decision in zip(rows, (None, *outcome.decisions), strict=True):
        cells = [row[0].rjust(widths[0]), *(cell.ljust(size) for cell, size in zip(row[1:-1], widths[1:], strict=True))]
        yield "  ".join([*cells, row[-1]]).rstrip()
        if decision is not None:
            for sentence in _sentences(decision):
                yield from textwrap.wrap(
                    sentence, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
                )
    yield ""
    yield from textwrap.wrap(_summary(outcome), width, break_on_hyphens=False)


def _sentences(decision: Decision) -> Iterator[str]:
    yield from (decision.finding.message, *decision.finding.besides)
    if decision.victims:
        yield f"For it leave: {', '.join(victim.described for victim in decision.victims)}."


def _row(decision: Decision) -> tuple[str, ...]:
    from gangsched.core.objects.duration import format_duration  # noqa: PLC0415
    from gangsched.views.resource_names import GANG, OWN, POD  # noqa: PLC0415

    finding = decision.finding
    return (
        format_duration(round(decision.at)),
        f"{finding.key} ({finding.resource})" if finding.resource not in (OWN, GANG, POD) else str(finding.key),
        finding.phase,
        finding.reason,
        ", ".join(f"{node} ({number})" for node, number in decision.nodes.items()) or "-",
    )


def _summary(outcome: Outcome) -> str:
    groups, pods = outcome.groups, outcome.waiting_pods
    if not (groups or pods or outcome.elsewhere):
        return "No group in the files, and no pod without one waits."
    complete, waiting = _split(outcome)
    sentence = f"Completely bound: {len(complete)} of {number_of(len(groups), 'group')}" if groups else "No group"
    if waiting:
        sentence += f"; not bound: {', '.join(map(_waiting, waiting))}"
    if pods:
        names = first_named([str(pod.key) for pod in pods], _NAMED)
        sentence += f"; {number_of(len(pods), 'pod')} without a group not bound: {names}"
    if outcome.elsewhere:
        sentence += f"; left out, of another schedulerName: {first_named(list(map(str, outcome.elsewhere)), _NAMED)}"
    return f"{sentence}."


def _split(outcome: Outcome) -> tuple[list[Finding], list[Finding]]:
    """The groups that are completely bound, or have succeeded, and the others."""
    from gangsched.core.objects.record import Phase  # noqa: PLC0415 - see the package

    # Members that are done count, and of a group that nobody declares any more no minimum is known.
    complete = [group for group in outcome.groups if group.phase in (Phase.SCHEDULED, Phase.RUNNING, Phase.SUCCEEDED)]
    return complete, [group for group in outcome.groups if group not in complete]


def _waiting(group: Finding) -> str:
    number = max(group.minimum, group.members)
    members = "1 member has" if number == 1 else f"{number} members have"
    return f"{group.key} ({len(group.placements)} of {members} a node)"


def _as_object(outcome: Outcome) -> dict[str, object]:
    pods = [{"namespace": pod.key.namespace, "name": pod.key.name} for pod in outcome.waiting_pods]
    return {"groups": _groups_json(outcome.groups), "waitingPods": pods, "events": _events_json(outcome.decisions)}


def _groups_json(groups: Iterable[Finding]) -> list[dict[str, object]]:
    return [
        {
            "namespace": group.key.namespace,
            "name": group.key.name,
            "phase": group.phase,
            "reason": group.reason,
            "message": group.message,
            "bound": len(group.placements),
            "placements": dict(group.placements),
        }
        for group in groups
    ]


def _events_json(decisions: Sequence[Decision]) -> list[dict[str, object]]:
    return [
        {
            "time": round(decision.at, 3),
            "kind": "Pod" if decision.finding.plain else "PodGroup",
            "resource": decision.finding.resource,
            "namespace": decision.finding.key.namespace,
            "name": decision.finding.key.name,
            "verdict": decision.finding.phase,
            "reason": decision.finding.reason,
            "message": " ".join(_sentences(decision)),
            "nodes": decision.nodes,
            "placements": dict(decision.placed),
            "preemptedBy": _holder_json(decision.leaving),
            "leaving": dict(decision.leaving.pods) if decision.leaving is not None else {},
        }
        for decision in decisions
    ]


def _holder_json(leaving: Leaving | None) -> dict[str, object] | None:
    if leaving is None:
        return None
    key, priority = leaving.holder
    return {"namespace": key.namespace, "name": key.name, "priority": priority}
