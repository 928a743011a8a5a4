"""How a group is declared and placed, as its PodGroup or its pods say it."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from gangsched.core.objects.shape import Labels, Shape
from gangsched.core.objects.soft import Soft


class GroupKey(NamedTuple):
    """Names a group in the cluster; `pod_uid` is set for a plain pod, which is ordered and placed as a group of one."""

    namespace: str
    name: str
    pod_uid: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


OWN_DIALECT = "gangsched"
"""gangsched's own dialect, which no other system uses: a pod that uses it addresses gangsched."""


class Preference(Struct, frozen=True, gc=False, cache_hash=True):
    """A preference for nodes by a label: by `order` of its values, or by a list of `values`, the most preferred first.

    `order` is Ascending or Descending, and empty where there are `values`.
    """

    key: str
    order: str = ""
    values: tuple[str, ...] = ()


class Topology(Struct, frozen=True, gc=False, cache_hash=True):
    """All members go to one domain of this node label; if not `required`, to several where none has room for all."""

    key: str
    required: bool = True


class Placing(Struct, frozen=True, gc=False, cache_hash=True):
    """How nodes are chosen among those that accept a member: by strategy, by preferences, within a domain."""

    strategy: str = "Pack"
    prefer: tuple[Preference, ...] = ()
    topology: Topology | None = None


PACKED = Placing()


class Role(Struct, frozen=True, gc=False, cache_hash=True):
    """A named part of a group with a minimum of its own.

    `template` is the shape of members that do not exist yet, for which placeholders are reserved; None: for none.
    `like_declarer`: the template takes selectors, preferred ones too, and tolerations from the pod that declares it.
    `derived`: the template is read from the object of the members' controller, which creates them only once others are
    ready; a member that exists is a better pattern. `led`: there is no other pattern, so no placeholders exist until
    the first member, its leader, exists. `labels` are those that the members will have. `prefer` are preferences for
    nodes that come before the group's, and `soft` is what those members themselves prefer.
    """

    name: str
    min_member: int = 0
    max_member: int | None = None
    template: Shape | None = None
    like_declarer: bool = False
    derived: bool = False
    led: bool = False
    labels: Labels = ()
    prefer: tuple[Preference, ...] = ()
    soft: Soft | None = None


class Keys(Struct, frozen=True, gc=False, cache_hash=True):
    """The names of a dialect's fields in messages; empty for what the dialect cannot express.

    `kind` is the kind of object that declares a group where its pods do not.
    """

    group: str = "the label gangsched.io/pod-group"
    minimum: str = "the annotation gangsched.io/min-member"
    time: str = "the annotation gangsched.io/max-schedule-time"
    role: str = "the label gangsched.io/role"
    kind: str = "PodGroup"


OWN_KEYS = Keys()


class Declaration(Struct, frozen=True, gc=False, cache_hash=True):
    """What a pod says about its group by labels and annotations, and in which dialect (`source`, `keys`).

    `min_member` and `max_schedule_time_s` are None where the pod does not say them. With `roles` the minimum is their
    sum, and one more for each member that lists roles and has none itself. Each time-out lasts up to `jitter_s` longer;
    `default_time_s` is how long it lasts where nothing else is said, None for the operator's default.
    `leading` is the role whose member's success is the group's; empty if all of the minimum must succeed. `placement`
    applies unless a PodGroup says otherwise. `in_turn`: groups of one instance group wait in a strict FIFO lane.
    `error` is a sentence for a person where something is unreadable (the numbers are None then), `contradiction` one
    where two dialects on the pod differ. `objects` names the dialects whose own objects of the group's name declare it;
    with `open_roles` a role that the group does not list is no mistake. `object_name` is the name of that object where
    it is not the group's: the workload's whose pods are the group's members. `passed_over` is a group of Kubernetes'
    own that the pod names too, and that does not count.
    """

    group: str
    role: str = ""
    min_member: int | None = None
    max_schedule_time_s: float | None = None
    error: str = ""
    source: str = OWN_DIALECT
    roles: tuple[Role, ...] = ()
    jitter_s: float = 0.0
    default_time_s: float | None = None
    contradiction: str = ""
    keys: Keys = OWN_KEYS
    leading: str = ""
    placement: Placing = PACKED
    in_turn: bool = False
    objects: tuple[str, ...] = ()
    open_roles: bool = False
    object_name: str = ""
    passed_over: str = ""

    @property
    def complete(self) -> bool:
        """Whether it says the group's terms, or which object does."""
        return bool(self.roles or self.min_member or self.objects)
