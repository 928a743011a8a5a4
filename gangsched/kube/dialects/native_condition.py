"""The condition of a native PodGroup that says whether the group was scheduled, as it is read from an object."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from gangsched.core.objects.podgroup import GroupCondition, SeenCondition


class _Condition(Struct, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class _NativeGroupStatus(Struct, gc=False):
    conditions: list[_Condition] | None = None


class _NativeGroupMetadata(Struct, gc=False):
    generation: int = 0


class _Conditioned(Struct, gc=False):
    metadata: _NativeGroupMetadata
    status: _NativeGroupStatus | None = None


_CONDITIONED = msgspec.json.Decoder(_Conditioned)


def condition_type(version: str) -> str:
    """The type of the condition in this version of the API."""
    return "PodGroupScheduled" if version == "v1alpha2" else "PodGroupInitiallyScheduled"


def read_condition(raw: Raw | bytes, version: str) -> SeenCondition | None:
    """The condition of the object; None if its status cannot be read."""
    try:
        item = _CONDITIONED.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    conditions = (item.status.conditions if item.status is not None else None) or ()
    state = next((entry for entry in conditions if entry.type == condition_type(version)), None)
    condition = (
        None
        if state is None
        else GroupCondition(state.status == "True", state.reason, state.message, state.observed_generation)
    )
    return SeenCondition(condition, version, item.metadata.generation)
