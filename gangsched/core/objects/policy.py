"""The settings that the core decides by; `gangsched.config` makes one from the operator's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from gangsched.core.objects.strategy import Strategy


class TurnRules(Struct, frozen=True):
    """Strict FIFO. `label` names the instance group that a pod asks for.

    Groups whose dialect says so take turns in every instance group, all others only in `groups`. A group may be
    overtaken until it is `after_s` old, or what `after_s_by_group` says of its instance group.
    """

    label: str = "resource_channel"
    groups: frozenset[str] = frozenset()
    after_s: float = 0.0
    after_s_by_group: Mapping[str, float] = field(default_factory=dict)


NO_TURNS = TurnRules()


class PriorityFrom(StrEnum):
    """Whose word on a group's priority counts: its PodGroup's alone, or at most the highest of its members'."""

    POD_GROUP = "PodGroup"
    MEMBERS = "Members"


class NamespaceLimits(Struct, frozen=True):
    """What one namespace may have; see `core.gang.caps` and `core.queueing.admission`.

    Of each resource `held_percent` of what all nodes have may be held for members to come, and `held_places` places in
    all; up to `free_places` may be held though they are more than that share. `waiting_groups` of it are tried.
    """

    held_percent: int = 25
    held_places: int = 1000
    free_places: int = 10
    waiting_groups: int = 500


NAMESPACE_LIMITS = NamespaceLimits()


class OwnerGuard(StrEnum):
    """What follows when several owners claim one group."""

    FLAG = "Flag"
    REFUSE = "Refuse"
    OFF = "Off"


class Policy(Struct, frozen=True):
    """How the machine decides. Times are in seconds.

    `namespace` not empty: only its pods and groups are scheduled, all pods and nodes still count. `seed` makes the
    jitter of back-offs differ between installations while every run of the core stays deterministic. `strategies` are
    those of plug-ins, which may be named beside gangsched's own; `gpu_strategy` is that of pods without a group that
    ask for a GPU. `turns` says in which instance groups nobody is overtaken.
    `owner_guard` says what follows when several owners claim one group. Places for members to come are held for
    `max_hold_s` at a time; `namespace_limits` keep one namespace from stopping the others.
    """

    scheduler_names: tuple[str, ...] = ("gangsched",)
    namespace: str = ""
    default_max_schedule_time_s: float = 60.0
    max_priority: int = 1_000_000_000
    priority_from: PriorityFrom = PriorityFrom.POD_GROUP
    max_hold_s: float = 600.0
    namespace_limits: NamespaceLimits = NAMESPACE_LIMITS
    backoff_initial_s: float = 10.0
    backoff_max_s: float = 300.0
    fold_s: float = 1.0
    message_interval_s: float = 30.0
    degraded_after_s: float = 2.0
    repair_deadline_s: float = 30.0
    seed: int = 0
    strategies: Mapping[str, Strategy] = field(default_factory=dict)
    gpu_strategy: str = "BestFit"
    turns: TurnRules = NO_TURNS
    owner_guard: OwnerGuard = OwnerGuard.FLAG
