"""Results of effects, as events for the machine."""

from __future__ import annotations

from enum import StrEnum

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import Event
from gangsched.core.objects.prebindings import Prebinding


class Result(Event, frozen=True):
    """The result of an effect, from the API server."""


class GroupNotMade(Result, frozen=True):
    """A requested PodGroup was not created; `message` tells users why."""

    key: GroupKey
    message: str


class Refused(StrEnum):
    """Why a binding failed."""

    GONE = "Gone"
    """The pod no longer exists, is terminating, or another pod has its name."""
    CONFLICT = "Conflict"
    """The pod is bound elsewhere already, or has scheduling gates."""
    UNAVAILABLE = "Unavailable"
    """The server throttled the call, failed, did not respond, or found no permission for it: a retry may succeed."""
    FORBIDDEN = "Forbidden"
    """The server rejects this binding for good; a retry cannot succeed."""
    DENIED = "Denied"
    """The server rejects every binding of the pod, whatever the node: its namespace is being deleted."""
    WITHDRAWN = "Withdrawn"
    """It was not sent, because the machine withdrew it in time."""


class PodBound(Result, frozen=True):
    """The pod is bound to the node, as requested."""

    uid: str
    node: str


class BindRefused(Result, frozen=True):
    """A binding failed; `retry_after_s` is the delay that the server asked for, 0 if none."""

    uid: str
    node: str
    why: Refused
    message: str
    retry_after_s: float = 0.0


class PrebindRefused(Result, frozen=True):
    """A pre-binding of the pod with this UID was not written; `retry_after_s` is as in `BindRefused`."""

    uid: str
    prebinding: Prebinding
    message: str
    retry_after_s: float = 0.0


class Spared(StrEnum):
    """Why a pod was not evicted."""

    BUDGET = "Budget"
    """A PodDisruptionBudget forbids it at present."""
    UNAVAILABLE = "Unavailable"
    """The server throttled the call, failed or did not respond: a retry may succeed."""
    FORBIDDEN = "Forbidden"
    """The server rejects this eviction for good; a retry cannot succeed."""


class PodEvicted(Result, frozen=True):
    """A requested eviction was accepted, or the pod was already gone or terminating."""

    uid: str


class EvictionRefused(Result, frozen=True):
    """An eviction failed; `retry_after_s` is the delay that the server asked for, 0 if none."""

    uid: str
    why: Spared
    message: str
    retry_after_s: float = 0.0


class OwnerSeen(Result, frozen=True):
    """Whether the Job with this UID replaces an evicted pod without counting a failure.

    `why` is a sentence for users that says why not; empty if it does.
    """

    uid: str
    why: str = ""


class StatusWritten(Result, frozen=True):
    """A status patch of a PodGroup was accepted and gave it this resourceVersion.

    `reserved`: the patch contained what others rely on (`GroupStatus.is_relied_on`), which is now durable.
    """

    key: GroupKey
    resource_version: str
    reserved: bool = False


class StatusRefused(Result, frozen=True):
    """A status patch was not accepted; `stale` if the resourceVersion it was conditional on is no longer current."""

    key: GroupKey
    stale: bool
