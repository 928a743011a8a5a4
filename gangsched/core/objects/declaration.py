"""The declaration of a group, by its PodGroup or its pods, and how it is to be placed."""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec import Struct

from gangsched.core.objects.shape import Labels, Shape, Soft


class GroupKey(NamedTuple):
    """Names a group in the cluster; `pod_uid` is set for a plain pod, which is ordered and placed as a group of one."""

    namespace: str
    name: str
    pod_uid: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
"""Matches the names that a PodGroup may have."""
NAMESPACE = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
"""The pattern of the names that a namespace may have."""
OWN_DIALECT = "gangsched"
"""The name of gangsched's own dialect. No other system uses it, so a pod that does is meant for gangsched."""
NATIVE = "native"
"""The dialect of Kubernetes' own groups, which controllers such as that of Jobs also create unasked."""
COMPOSITE = "native-composite"
"""The dialect of pods whose native group is a part of a tree: its inner nodes are objects of a kind of their own."""

OBJECT = "{} PodGroup"
"""What declares a group, by the dialect of its object."""
TREE = f"{NATIVE} CompositePodGroup"
"""What declares a tree of native groups."""


class Preference(Struct, frozen=True, gc=False, cache_hash=True):
    """A preference for nodes by a label: by the `order` of its values, or by a list of `values`, most preferred first.

    `order` is Ascending or Descending, and empty if `values` are given.
    """

    key: str
    order: str = ""
    values: tuple[str, ...] = ()


class Topology(Struct, frozen=True, gc=False, cache_hash=True):
    """All members go to one domain of this node label; unless `required`, to several if none has room for all."""

    key: str
    required: bool = True


class Level(Struct, frozen=True, gc=False, cache_hash=True):
    """All members of these roles go to one domain of this node label."""

    key: str
    roles: tuple[str, ...]


class Placing(Struct, frozen=True, gc=False, cache_hash=True):
    """How nodes are chosen among those that accept a member: by strategy, by preferences, within a domain."""

    strategy: str = "Pack"
    prefer: tuple[Preference, ...] = ()
    topology: Topology | None = None


PACKED = Placing()


class Beside(Struct, frozen=True, gc=False, cache_hash=True):
    """Members go to the domain of the node label `topology` in which the first member of the `role` is.

    The pod label `label` distinguishes that member from all others.
    """

    role: str
    label: str
    topology: str


class Role(Struct, frozen=True, gc=False, cache_hash=True):
    """A named part of a group with a minimum of its own.

    `template` is the shape of members that do not exist yet, for which placeholders are reserved; None reserves none.
    `like_declarer`: the template takes its selectors, including preferred ones, and its tolerations from the pod that
    declares it. `derived`: the template comes from the object of the members' controller, which creates them only once
    others are ready; an existing member is a better pattern. `led`: there is no other pattern, so no placeholder exists
    before the first member, its leader. `beside`: there is none before the first member of that role. `labels` are the
    labels that the members will have. `prefer` are preferences for nodes that precede the group's, and `soft` are the
    soft constraints of the members.
    """

    name: str
    min_member: int = 0
    max_member: int | None = None
    template: Shape | None = None
    like_declarer: bool = False
    derived: bool = False
    led: bool = False
    beside: Beside | None = None
    labels: Labels = ()
    prefer: tuple[Preference, ...] = ()
    soft: Soft | None = None


class Keys(Struct, frozen=True, gc=False, cache_hash=True):
    """How messages name the fields of a dialect; empty for a field that the dialect does not have.

    `kind` is the kind of object that declares a group if its pods do not, `create` what to do if there is none; `noun`
    stands before the group's name.
    """

    noun: str = "Group"
    group: str = "the label gangsched.io/pod-group"
    minimum: str = "the annotation gangsched.io/min-member"
    time: str = "the annotation gangsched.io/max-schedule-time"
    role: str = "the label gangsched.io/role"
    kind: str = "PodGroup"
    create: str = "create it"


OWN_KEYS = Keys()


class Declaration(Struct, frozen=True, gc=False, cache_hash=True):
    """A pod's declaration of its group, by labels and annotations, and in which dialect it is (`source`, `keys`).

    `min_member` and `max_schedule_time_s` are None if the pod does not set them. With `roles`, the minimum is the sum
    of theirs, plus one for each member that lists roles and has none itself. Each time-out lasts up to `jitter_s`
    longer; `default_time_s` is its length if nothing else sets one, None for the operator's default. `leading` is the
    role whose member's success is the group's; empty if all of the minimum must succeed. `placement` applies unless a
    PodGroup says otherwise. `fifo`: groups of one instance group wait in a strict FIFO lane. `error` is a sentence
    for users if something is unreadable (the numbers are then None), `contradiction` one if two dialects on the pod
    differ. `objects` names the dialects whose own objects of the group's name declare it; with `open_roles`, a role
    that the group does not list is no mistake. `object_name` is the name of that object if it is not the group's: it is
    then the workload whose pods are the members. `made_with` is how many its controller has made this gang of, None if
    the pod cannot tell. `passed_over` is a group of Kubernetes' own that the pod also names and that is ignored.
    `ignored` are keys, in words, that the pod also sets and that are not honoured. `own` is what the pod itself says,
    if the group that it names is a part of this one.
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
    fifo: bool = False
    objects: tuple[str, ...] = ()
    open_roles: bool = False
    object_name: str = ""
    made_with: int | None = None
    passed_over: str = ""
    ignored: tuple[str, ...] = ()
    own: Declaration | None = None

    @property
    def complete(self) -> bool:
        """Whether it states the group's terms, or names the object that does."""
        return bool(self.roles or self.min_member or self.objects)

    @property
    def native_group(self) -> str:
        """The group of Kubernetes' own that the pod names, whether or not it is the one declared; empty if none."""
        own = self.own or self
        return own.group if NATIVE in own.objects else self.passed_over
