"""What a gang asks for, from everything that declares it: the PodGroup, the pods' annotations, the PriorityClass.

Nothing is guessed: what cannot be read, contradicts itself or is not supported becomes a `Hindrance`, a reason with a
sentence for a person, and no further member is bound until it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from gangsched.core.gang import Gang, role_of
from gangsched.core.model import GroupSpec, Pod
from gangsched.core.policy import Policy
from gangsched.core.reasons import Reason
from gangsched.core.strategies import GPU_SUFFIX, PACK, Strategy

VALUES_SHOWN = 5
"""So many values are named of which only one may be: an API object has room for so much, and a reader patience."""


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why a gang is not tried at all."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The gang's declaration as it applies: `created` orders by age, `source` names the dialect.

    `strategy` is the one that the spec names, Pack where it is not known.
    """

    spec: GroupSpec
    priority: int
    created: float
    max_schedule_time_s: float
    source: str
    strategy: Strategy = PACK


NO_TERMS = Terms(spec=GroupSpec(min_member=1), priority=0, created=0.0, max_schedule_time_s=float("inf"), source="")


def resolve(
    gang: Gang, members: Sequence[Pod], *, policy: Policy, priority_classes: Mapping[str, int]
) -> tuple[Terms, Hindrance | None]:
    """The terms under which the gang is tried, and what keeps it from being tried, if anything does."""
    oldest = min((pod.created for pod in members), default=0.0)
    own_priority = max((pod.priority for pod in members), default=0)
    if gang.plain:
        terms = Terms(
            spec=GroupSpec(min_member=1),
            priority=min(own_priority, policy.max_priority),
            created=oldest,
            max_schedule_time_s=float("inf"),
            source="",
            strategy=policy.strategies[policy.gpu_strategy] if any(map(_wants_gpu, members)) else PACK,
        )
        return terms, _unsupported(members)
    spec, source, hindrance = _declared(gang, members)
    priority, missing = _priority(spec, own_priority, priority_classes)
    time_s = spec.max_schedule_time_s
    terms = Terms(
        spec=spec,
        priority=min(priority, policy.max_priority),
        created=gang.group.created if gang.group else oldest,
        max_schedule_time_s=policy.default_max_schedule_time_s if time_s is None else time_s,
        source=source,
        strategy=policy.strategies.get(spec.strategy, PACK),
    )
    if hindrance is None:
        hindrance = (
            missing or _refused_fields(spec, policy) or _unknown_role(gang, spec, members) or _unsupported(members)
        )
    return terms, hindrance


def _declared(gang: Gang, members: Sequence[Pod]) -> tuple[GroupSpec, str, Hindrance | None]:
    says = [pod.declaration for pod in members if pod.declaration]
    unreadable = next(((pod, pod.declaration) for pod in members if pod.declaration and pod.declaration.error), None)
    minima = sorted({say.min_member for say in says if say.min_member is not None})
    times = sorted({say.max_schedule_time_s for say in says if say.max_schedule_time_s is not None})
    source = says[0].source if says else ""
    spec = gang.group.spec if gang.group else None
    hindrance: Hindrance | None = None
    if gang.group is not None and gang.group.error:
        hindrance = Hindrance(Reason.INVALID_DECLARATION, gang.group.error)
    elif unreadable is not None:
        pod, declaration = unreadable
        hindrance = Hindrance(Reason.INVALID_DECLARATION, f"Pod {pod.name}: {declaration.error}")
    elif len(minima) > 1 or len(times) > 1:
        which, values = ("min-member", minima) if len(minima) > 1 else ("max-schedule-time (seconds)", times)
        said = ", ".join(f"{value:.10g}" for value in values[:VALUES_SHOWN])
        said += ", …" if len(values) > VALUES_SHOWN else ""
        hindrance = Hindrance(
            Reason.CONTRADICTION,
            f"Members disagree on the annotation gangsched.io/{which}: {said}; give all members the same value.",
        )
    elif spec is not None:
        hindrance = _differs(spec, minima, times)
    elif gang.group is None and not minima:
        hindrance = Hindrance(
            Reason.POD_GROUP_NOT_FOUND,
            f"There is no PodGroup {gang.key.name} in namespace {gang.key.namespace}: create it, or annotate the pods "
            "with gangsched.io/min-member.",
        )
    if spec is None:
        return (
            GroupSpec(
                min_member=minima[0] if len(minima) == 1 else 1,
                max_schedule_time_s=times[0] if len(times) == 1 else None,
            ),
            f"{source} annotations" if minima else source,
            hindrance,
        )
    if spec.max_schedule_time_s is None and times:
        spec = replace(spec, max_schedule_time_s=times[0])
    return spec, f"{source or 'gangsched'} PodGroup", hindrance


def _differs(spec: GroupSpec, minima: list[int], times: list[float]) -> Hindrance | None:
    if minima and minima[0] != spec.min_member:
        return Hindrance(
            Reason.CONTRADICTION,
            f"The PodGroup says minMember {spec.min_member}, the pods' annotation gangsched.io/min-member says "
            f"{minima[0]}: make them equal or remove the annotation.",
        )
    if times and spec.max_schedule_time_s is not None and times[0] != spec.max_schedule_time_s:
        return Hindrance(
            Reason.CONTRADICTION,
            f"The PodGroup says maxScheduleTime {spec.max_schedule_time_s:g}s, the pods' annotation "
            f"gangsched.io/max-schedule-time says {times[0]:g}s: make them equal or remove the annotation.",
        )
    return None


def _priority(spec: GroupSpec, own_priority: int, priority_classes: Mapping[str, int]) -> tuple[int, Hindrance | None]:
    if spec.priority is not None:
        return spec.priority, None
    if not spec.priority_class:
        return own_priority, None
    value = priority_classes.get(spec.priority_class)
    if value is None:
        return own_priority, Hindrance(
            Reason.PRIORITY_CLASS_NOT_FOUND,
            f"spec.priorityClassName names the PriorityClass {spec.priority_class}, which does not exist: create it or "
            "name another.",
        )
    return value, None


def _refused_fields(spec: GroupSpec, policy: Policy) -> Hindrance | None:
    if spec.not_built:
        return Hindrance(
            Reason.NOT_SUPPORTED,
            f"This version of gangsched does not support {', '.join(spec.not_built)} yet: remove it to have the group "
            "scheduled without.",
        )
    if spec.strategy not in policy.strategies:
        return Hindrance(
            Reason.STRATEGY_UNKNOWN,
            f"The placement strategy {spec.strategy} is not installed: install the plug-in that provides it, or use "
            f"one of {', '.join(policy.strategies)}.",
        )
    return None


def _unknown_role(gang: Gang, spec: GroupSpec, members: Sequence[Pod]) -> Hindrance | None:
    known = {role.name for role in spec.roles}
    for pod in members:
        role = role_of(pod)
        if role and role not in known:
            has = f"has only {', '.join(sorted(known))}" if known else "has no roles"
            return Hindrance(
                Reason.ROLE_UNKNOWN,
                f"Pod {pod.name} names the role {role}, but the group {gang.key.name} {has}: correct the label "
                "gangsched.io/role or add the role to the PodGroup.",
            )
    return None


def _wants_gpu(pod: Pod) -> bool:
    """Whether the pod asks for GPUs."""
    return any(resource.endswith(GPU_SUFFIX) for resource, _ in pod.shape.requests)


def _unsupported(members: Sequence[Pod]) -> Hindrance | None:
    for pod in members:
        if pod.shape.unsupported and not pod.node:
            return Hindrance(
                Reason.NOT_SUPPORTED,
                f"Pod {pod.name} uses {', '.join(pod.shape.unsupported)}, which this version of gangsched cannot "
                "honour: remove it, or let another scheduler place the pod.",
            )
    return None
