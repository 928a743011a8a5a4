"""Shows when a group will probably start, or why nobody knows."""

from __future__ import annotations

from gangsched.api.times import format_if_set
from gangsched.core.objects.expected_start import ExpectedStart, Unknown

_UNKNOWN = {
    Unknown.ENDLESS: "{who} is a service, which does not end by itself",
    Unknown.UNKNOWN: "{who} has neither activeDeadlineSeconds nor expectedRunTime",
    Unknown.OVERDUE: "{who} should have ended by now, and nobody knows when it does",
    Unknown.AHEAD: "it depends on {who} ahead of it",
    Unknown.OTHERS: "other groups that wait may take the room before, and nobody knows when these end",
    Unknown.LINE: "more than 1,000 groups are ahead of it",
    Unknown.DEPENDS: "more than free amounts decides it: other pods, ports, devices, or room kept for others",
    Unknown.TIME_OUT: "its maxScheduleTime is over before, and it fails then",
    Unknown.HORIZON: "it is more than 7 days away",
    Unknown.NEVER: "it would not fit even once everything has ended",
}
"""Why an expected start is not known, because of whom."""


def why_unknown(starts: ExpectedStart, namespace: str) -> str:
    """Why the expected start of a group of this namespace is not known, as a clause; empty if it is."""
    if starts.why is None:
        return ""
    if starts.why is Unknown.UNKNOWN and starts.earliest:
        # What it has declared, or how long it took before, says nothing about the latest start.
        sentence = "{who} has no activeDeadlineSeconds"
    else:
        sentence = _UNKNOWN[starts.why]
    who, decides = "a group", starts.decides
    if decides is not None:
        who = decides.name if decides.namespace in ("", namespace) else "what runs in another namespace"
    return sentence.format(who=who)


def as_object(starts: ExpectedStart | None, namespace: str) -> dict[str, object] | None:
    """The expected start of a group of this namespace as a JSON object; None if there is none."""
    if starts is None:
        return None
    decides = starts.decides
    return {
        "earliest": format_if_set(starts.earliest),
        "latest": format_if_set(starts.latest),
        "basis": starts.basis,
        "unknown": starts.why,
        "why": why_unknown(starts, namespace) or None,
        "decides": None if decides is None else {"namespace": decides.namespace or None, "name": decides.name},
    }
