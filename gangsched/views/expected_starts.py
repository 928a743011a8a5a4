"""Shows when a group will probably start."""

from __future__ import annotations

from gangsched.api.times import format_if_set
from gangsched.core.objects.expected_start import ExpectedStart


def as_object(starts: ExpectedStart) -> dict[str, object]:
    """The expected start as a JSON object."""
    decides = starts.decides
    return {
        "earliest": format_if_set(starts.earliest),
        "latest": format_if_set(starts.latest),
        "basis": starts.basis,
        "unknown": starts.why,
        "decides": None if decides is None else {"namespace": decides.namespace or None, "name": decides.name},
    }
