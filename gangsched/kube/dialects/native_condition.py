"""The condition of a native PodGroup that says whether the group was scheduled, as it is read from an object."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct, field

from gangsched.api.times import parse_time
from gangsched.core.objects.podgroup import GroupCondition, SeenCondition
from gangsched.kube import wire


class _Condition(Struct, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""

    @property
    def read(self) -> GroupCondition:
        scheduled = self.status == "True"
        since = parse_time(self.last_transition_time) if scheduled and self.last_transition_time else 0.0
        return GroupCondition(scheduled, self.reason, self.message, self.observed_generation, since)


class _NativeGroupStatus(Struct, gc=False):
    conditions: list[_Condition] | None = None


class _NativeFields(Struct, gc=False):
    spec: wire.Present | None = field(default=None, name="f:spec")


class _NativeEntry(Struct, gc=False):
    time: str = ""
    fields: _NativeFields | None = field(default=None, name="fieldsV1")

    @property
    def changed_spec_at(self) -> float:
        """When this manager last changed something, if that may have been the spec; otherwise 0.0."""
        return parse_time(self.time) if self.time and self.fields is not None and self.fields.spec is not None else 0.0


class _NativeGroupMetadata(Struct, gc=False, rename="camel"):
    generation: int = 0
    creation_timestamp: str = ""
    managed_fields: Sequence[_NativeEntry] | None = None

    @property
    def changed(self) -> bool:
        """Whether the spec was changed after the object was created, by its generation, else by its managedFields.

        These count a later change of a label as one, if the same client owns both.
        """
        if self.generation:
            return self.generation > 1
        created = parse_time(self.creation_timestamp) if self.creation_timestamp else float("inf")
        return any(entry.changed_spec_at > created for entry in self.managed_fields or ())


class _Conditioned(Struct, gc=False):
    metadata: _NativeGroupMetadata
    status: _NativeGroupStatus | None = None


_CONDITIONED = msgspec.json.Decoder(_Conditioned)


def condition_type(version: str) -> str:
    """The type of the condition in this version of the API."""
    return "PodGroupScheduled" if version == "v1alpha2" else "PodGroupInitiallyScheduled"


def read_condition(raw: Raw | bytes, version: str, *, writable: bool) -> SeenCondition | None:
    """The condition of the object, which gangsched may write or not; None if its status cannot be read."""
    try:
        group = _CONDITIONED.decode(raw)
        changed = group.metadata.changed
        conditions = (group.status.conditions if group.status is not None else None) or ()
        state = next((entry.read for entry in conditions if entry.type == condition_type(version)), None)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
    return SeenCondition(state, version, group.metadata.generation, changed, writable)
