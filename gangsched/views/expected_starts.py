"""Shows when a group will probably start."""

from __future__ import annotations

from gangsched.api.times import format_time
from gangsched.core.objects.expected_start import ExpectedStart


def as_object(starts: ExpectedStart) -> dict[str, object]:
    """The expected start as a JSON object."""
    decides = starts.decides
    return {
        "earliest": _time(starts.earliest),
        "latest": _time(starts.latest),
        "basis": starts.basis,
        "unknown": starts.why,
        "decides": None if decides is None else {"namespace": decides.namespace or None, "name": decides.name},
    }


def _time(seconds: float) -> str | None:
    return format_time(seconds, to_the_second=True) if seconds else None
