"""Results of effects: what the API server has answered."""

from __future__ import annotations

from enum import StrEnum

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import Event
from gangsched.core.objects.prebindings import Prebinding


class Answer(Event, frozen=True):
    """The API server's answer to an effect."""


class GroupNotMade(Answer, frozen=True):
    """A PodGroup that was asked for was not created; `message` says why, for a person."""

    key: GroupKey
    message: str


class Refused(StrEnum):
    """Why a binding did not happen."""

    GONE = "Gone"
    """The pod no longer exists, is terminating, or another pod has its name."""
    CONFLICT = "Conflict"
    """The pod is bound elsewhere already, or has scheduling gates."""
    UNAVAILABLE = "Unavailable"
    """The server throttled the call, failed, did not answer, or knows no right to it: it may succeed later."""
    FORBIDDEN = "Forbidden"
    """The server will not accept this binding however often it is sent."""
    DENIED = "Denied"
    """Nor any other of the pod, whatever the node: its namespace is being deleted."""
    WITHDRAWN = "Withdrawn"
    """It was not sent, because the machine withdrew it in time."""


class PodBound(Answer, frozen=True):
    """A binding that was asked for stands."""

    uid: str
    node: str


class BindRefused(Answer, frozen=True):
    """A binding that was asked for did not happen; `retry_after_s` is what the server asked for, 0 without."""

    uid: str
    node: str
    why: Refused
    message: str
    retry_after_s: float = 0.0


class PrebindRefused(Answer, frozen=True):
    """A pre-binding for this pod (by UID) was not written; `retry_after_s` is what the server asked for, 0 without."""

    uid: str
    what: Prebinding
    message: str
    retry_after_s: float = 0.0


class Spared(StrEnum):
    """Why a pod was not evicted."""

    BUDGET = "Budget"
    """A PodDisruptionBudget forbids it at present."""
    UNAVAILABLE = "Unavailable"
    """The server throttled the call, failed or did not answer: the same call may succeed later."""
    FORBIDDEN = "Forbidden"
    """The server will not accept this eviction however often it is sent."""


class PodEvicted(Answer, frozen=True):
    """An eviction that was asked for was accepted, or the pod is gone or terminating already."""

    uid: str


class EvictionRefused(Answer, frozen=True):
    """An eviction that was asked for did not happen; `retry_after_s` is what the server asked for, 0 without."""

    uid: str
    why: Spared
    message: str
    retry_after_s: float = 0.0


class OwnerSeen(Answer, frozen=True):
    """What is known of a Job (by UID): whether it replaces an evicted pod without counting a failure.

    `why` says in a sentence for a person why not; empty if it does.
    """

    uid: str
    replaces: bool
    why: str = ""


class StatusWritten(Answer, frozen=True):
    """A status patch of a PodGroup was accepted and gave it this resourceVersion.

    `reserved`: the patch carried a reservation, so the places in it are durable now.
    """

    key: GroupKey
    resource_version: str
    reserved: bool = False


class StatusRefused(Answer, frozen=True):
    """A status patch was not accepted; `stale` if the resourceVersion it was conditional on is no longer current."""

    key: GroupKey
    stale: bool
