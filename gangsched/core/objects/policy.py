"""The settings that the core uses; `gangsched.config` derives them from the operator's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from gangsched.core.objects.strategy import Strategy

DEFAULT_NAME = "gangsched"
"""The schedulerName of an installation that configures no other."""


class FifoRules(Struct, frozen=True):
    """The rules of strict FIFO lanes. `label` is the node label that names the instance group that a pod asks for.

    Groups whose dialect requires it wait in the FIFO lane of any instance group, all others only in those of `groups`.
    A group may be overtaken until it is `after_s` seconds old; `after_s_by_group` overrides that for an instance group.
    """

    label: str = "resource_channel"
    groups: frozenset[str] = frozenset()
    after_s: float = 0.0
    after_s_by_group: Mapping[str, float] = field(default_factory=dict)


class PriorityFrom(StrEnum):
    """The source of a group's priority: its PodGroup alone, or its PodGroup capped at the highest of its members."""

    POD_GROUP = "PodGroup"
    MEMBERS = "Members"


class NamespaceLimits(Struct, frozen=True):
    """Limits for each namespace; see `core.gang.caps` and `core.queueing.admission`.

    Its placeholders may reserve up to `held_percent` of each resource of all nodes, and number up to `held_places`; up
    to `free_places` are allowed even beyond that share. At most `waiting_groups` of its waiting groups are tried.
    """

    held_percent: int = 25
    held_places: int = 1000
    free_places: int = 10
    waiting_groups: int = 500


class OwnerGuard(StrEnum):
    """The reaction when several owners claim one group."""

    FLAG = "Flag"
    OFF = "Off"


class Preemption(Struct, frozen=True):
    """What may leave for a group of higher priority. Times are in seconds.

    A group preempts from `delay_s` after it became complete. With `all_victims` pods of other schedulers may have to
    leave too; without it only those of this installation. With `exceeds_budgets` a plan may take more pods than
    PodDisruptionBudgets allow if there is no other way. A group is spared until it has run for `min_runtime_s`, which
    doubles with each of its earlier preemptions. At most `victims_per_minute` pods are evicted a minute. With
    `spares_uncontrolled` pods are never evicted that no controller would create again, or whose Jobs count a failure.
    """

    enabled: bool = True
    delay_s: float = 0.0
    all_victims: bool = False
    exceeds_budgets: bool = False
    min_runtime_s: float = 0.0
    victims_per_minute: int = 600
    spares_uncontrolled: bool = False


class Reservations(Struct, frozen=True):
    """Which groups have places reserved for later: those that have waited for `starvation_age_s` seconds (0: none).

    With `by_promises` others may use these places until then, or are waited for, if they declare to end by then;
    without it only if a limit ends them.
    """

    starvation_age_s: float = 1800.0
    by_promises: bool = True


class Aging(Struct, frozen=True):
    """A group that is complete and waits is placed as if its priority were higher: `by` so much each `every_s` seconds.

    It is at most `most` in all. With `every_s` of 0 waiting changes nothing.
    """

    every_s: float = 0.0
    by: int = 10
    most: int = 100


class Policy(Struct, frozen=True):
    """How the machine decides. Times are in seconds.

    If `namespace` is not empty, only its pods and groups are scheduled; all pods and nodes still count. `seed` makes
    the jitter of back-offs differ between installations while every run of the core stays deterministic. `strategies`
    are those of plug-ins, beside gangsched's own; `gpu_strategy` is used for pods without a group that request a GPU.
    `fifo` says which instance groups have strict FIFO lanes. Placeholders are kept for up to `max_hold_s` at a time,
    and those for lost members for up to `restart_hold_s`; `namespace_limits` keep one namespace from blocking the
    others. A quorum's pre-bindings may take up to `pre_bind_timeout_s`. `preemption` says what leaves for a group of
    higher priority, `reservations` for whom places are kept until others have ended,
    and `aging` how waiting raises a group in the order. With `forecasts` groups are told when they will probably start.
    """

    scheduler_names: tuple[str, ...] = (DEFAULT_NAME,)
    namespace: str = ""
    default_max_schedule_time_s: float = 60.0
    max_priority: int = 1_000_000_000
    priority_from: PriorityFrom = PriorityFrom.POD_GROUP
    max_hold_s: float = 600.0
    restart_hold_s: float = 30.0
    namespace_limits: NamespaceLimits = NamespaceLimits()
    backoff_initial_s: float = 10.0
    backoff_max_s: float = 300.0
    fold_s: float = 1.0
    message_interval_s: float = 30.0
    degraded_after_s: float = 2.0
    repair_deadline_s: float = 30.0
    pre_bind_timeout_s: float = 600.0
    seed: int = 0
    strategies: Mapping[str, Strategy] = field(default_factory=dict)
    gpu_strategy: str = "BestFit"
    fifo: FifoRules = FifoRules()
    owner_guard: OwnerGuard = OwnerGuard.FLAG
    preemption: Preemption = Preemption()
    reservations: Reservations = Reservations()
    aging: Aging = Aging()
    forecasts: bool = True

    @property
    def kept_as(self) -> str:
        """The value of `GroupStatus.scheduler` in a status that this installation writes."""
        return "" if DEFAULT_NAME in self.scheduler_names else self.scheduler_names[0]
