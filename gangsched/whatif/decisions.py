"""What the scheduler would decide, for Python programs: `gangsched.simulate`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from gangsched.config.settings import load, validated
from gangsched.kube.workloads.workload_table import chosen
from gangsched.views.findings import Finding
from gangsched.whatif import simulation
from gangsched.whatif.world.building import build
from gangsched.whatif.world.manifests import DEFAULT_NAMESPACE, Source, manifests_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision about one group, or about one pod without a group.

    `resource` is the kind of the object that declares the group, as kubectl writes it: `podgroup.gangsched.io`, that of
    another system such as `podgroup.scheduling.k8s.io`, `gang` if no PodGroup does, or `pod`.
    `phase` and `reason` are those of `status.phase` and of the condition Scheduled of a PodGroup; `message` is the
    sentence for people. `minimum` members must be bound together, of the `members` that exist. `placements` are the
    nodes of bound members, by pod name. `at_s` is the time of the decision, in seconds since the start.
    """

    namespace: str
    name: str
    is_group: bool
    resource: str
    phase: str
    reason: str
    message: str
    minimum: int
    members: int
    placements: Mapping[str, str]
    at_s: float

    @property
    def is_whole(self) -> bool:
        """Whether at least the minimum is bound."""
        return bool(self.placements) and len(self.placements) >= self.minimum


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """The last decision about each group and each pod without one, in scheduling order.

    `steps` are all decisions in chronological order; the placements of a step are those of the members that it bound.
    `elsewhere` are the groups that are left out because they belong to another schedulerName, by namespace and
    name, with that schedulerName. `ignored` counts the objects that do not matter to the scheduler, by kind. `refused`
    says which pods of workloads would not be created, with the reason: nothing is decided about those.
    """

    last: Sequence[Decision]
    steps: Sequence[Decision]
    elsewhere: Mapping[tuple[str, str], str]
    ignored: Mapping[str, int]
    refused: Sequence[str]

    @property
    def waiting(self) -> Sequence[Decision]:
        """The groups and pods that are not completely bound."""
        return tuple(decision for decision in self.last if not decision.is_whole)

    def of(self, name: str, namespace: str = DEFAULT_NAMESPACE) -> Decision:
        """The last decision about the group, or the pod without a group, of this name.

        Raises:
            KeyError: there is none; the error lists the existing ones.
        """
        for decision in self.last:
            if (decision.namespace, decision.name) == (namespace, name):
                return decision
        names = ", ".join(f"{decision.namespace}/{decision.name}" for decision in self.last) or "none"
        raise KeyError(f"no group and no pod without a group is called {namespace}/{name}: there are {names}")


def simulate(
    nodes: Source,
    pods: Source,
    *others: Source,
    config: Path | Mapping[str, object] | None = None,
    scheduler_names: Sequence[str] = (),
    namespace: str = DEFAULT_NAMESPACE,
) -> Decisions:
    """What gangsched would decide about these pods on these nodes, without a cluster.

    Each argument holds Kubernetes objects: as dicts, as YAML or JSON text, as the `pathlib.Path` of such a file, or as
    a list of these. They may be of any kind that `gangsched simulate` reads, in any argument: nodes, pods,
    PodGroups, workloads such as Jobs, which are expanded into their pods, claims and volumes. The same core decides as
    in the operator, on a simulated clock, until the longest maxScheduleTime has passed. Every binding succeeds.

    Args:
        nodes: The nodes.
        pods: Pods or workloads, with their PodGroups.
        *others: Any further objects.
        config: The operator's settings, as a file or by the keys of that file. Default: the operator's defaults.
        scheduler_names: The values of spec.schedulerName that are served, as with `--scheduler-name`.
        namespace: The namespace of objects without one.

    Raises:
        ManifestError: Objects are unreadable, or the API server would refuse them; `problems` has a sentence for each.
        InvalidConfig: The settings are invalid.
    """
    settings = load(config) if isinstance(config, Path) else validated(config or {}, "config")
    if scheduler_names:
        settings = settings.model_copy(update={"scheduler_names": tuple(scheduler_names)})
    sources = (
        ("nodes", nodes),
        ("pods", pods),
        *((f"argument {position}", source) for position, source in enumerate(others, start=3)),
    )
    manifests = [manifest for shown, source in sources for manifest in manifests_of(source, shown, namespace=namespace)]
    world = build(manifests, chosen(settings))
    outcome = simulation.simulate(world, settings.policy(), today=time.time())
    steps = tuple(_decision(decision.finding, decision.placed, decision.at) for decision in outcome.decisions)
    when = {(step.namespace, step.name): step.at_s for step in steps}
    last = [decision.finding for decision in outcome.decisions if decision.finding.plain] + list(outcome.groups)
    in_order = {finding.key: finding for finding in sorted(last, key=lambda finding: finding.order)}
    return Decisions(
        last=tuple(
            _decision(finding, finding.placements, when.get((key.namespace, key.name), 0.0))
            for key, finding in in_order.items()
        ),
        steps=steps,
        elsewhere=MappingProxyType({(key.namespace, key.name): name for key, name in outcome.elsewhere.items()}),
        ignored=MappingProxyType(dict(world.ignored)),
        refused=tuple(world.refused),
    )


def _decision(finding: Finding, placements: Mapping[str, str], at_s: float) -> Decision:
    return Decision(
        namespace=finding.key.namespace,
        name=finding.key.name,
        is_group=not finding.plain,
        resource=finding.resource,
        phase=finding.phase,
        reason=finding.reason,
        message=" ".join((finding.message, *finding.besides)),
        minimum=finding.minimum,
        members=finding.members,
        placements=MappingProxyType(dict(placements)),
        at_s=at_s,
    )
