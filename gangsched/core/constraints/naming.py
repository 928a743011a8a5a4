"""Formats the subjects of refusals in a few words: labels, affinity terms, taints, ports and disks."""

from __future__ import annotations

from collections.abc import Sequence

from gangsched.core.objects.node import Taint
from gangsched.core.objects.offered_devices import DeviceTaint
from gangsched.core.objects.shape import Disk, HostPort, NodeTerm, PodTerm, Requirement
from gangsched.core.objects.wording import first_named

NAMED = 3
"""Limit for the number of things of one kind that a sentence names."""


def listed(names: Sequence[str], number: int = 0) -> str:
    """The first NAMED names and how many more there are, `number` in all if it is larger: `a, b, c and 2 more`."""
    return first_named(names, NAMED, number)


def requirement(asked: Requirement) -> str:
    """One requirement on a label: `zone in (a, b)`, or `zone=a` for a single value."""
    values = listed(asked.values)
    match asked.operator:
        case "In":
            return f"{asked.key}={values}" if len(asked.values) == 1 else f"{asked.key} in ({values})"
        case "NotIn":
            return f"{asked.key} not in ({values})"
        case "Exists":
            return f"with {asked.key}"
        case "DoesNotExist":
            return f"without {asked.key}"
    return f"{asked.key} {asked.operator} {values}"


def node_terms(terms: Sequence[NodeTerm]) -> str:
    """The nodes that match one of the terms: `zone=a and disk=ssd or zone=b`."""
    return _some([_all([*term.expressions, *term.fields]) for term in terms], "or")


def pod_terms(terms: Sequence[PodTerm]) -> str:
    """The pods that the terms match, in whichever namespace: `app=web`."""
    return _some(list(dict.fromkeys(_all(term.selector or ()) or "any pod" for term in terms)), "and")


def taint(taint: Taint | DeviceTaint) -> str:
    """The taint as `kubectl taint` writes it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def port(asked: HostPort) -> str:
    """The host port, `8080/TCP`, preceded by its address unless it is for all addresses."""
    number = f"{asked.port}/{asked.protocol}"
    return number if asked.ip == HostPort(port=0).ip else f"{asked.ip}:{number}"


def disk(disk: Disk) -> str:
    """The disk's kind, which is the field of the manifest, and its first name."""
    return f"the {disk.kind} disk {disk.names[0]}"


def _all(asked: Sequence[Requirement]) -> str:
    return _some(list(map(requirement, asked)), "and")


def _some(parts: Sequence[str], between: str) -> str:
    more = [f"{len(parts) - NAMED} more"] if len(parts) > NAMED else []
    return f" {between} ".join([*parts[:NAMED], *more])
