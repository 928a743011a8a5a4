"""The tolerations that admission plug-ins add to a pod.

The rules are the plug-in DefaultTolerationSeconds and `MergeTolerations` of
k8s.io/kubernetes/pkg/util/tolerations at v1.37.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Toleration = Mapping[str, Any]

_TOLERATED = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]
_FIELDS = ("key", "operator", "value", "effect", "tolerationSeconds")


def with_defaults(tolerations: Sequence[Toleration]) -> list[Toleration]:
    """The given tolerations, and those of every pod that they lack. Of a given one only key and effect are compared."""
    return [
        *tolerations,
        *(
            default
            for default in _TOLERATED
            if not any(
                toleration.get("key") in (None, "", default["key"])
                and toleration.get("effect") in (None, "", default["effect"])
                for toleration in tolerations
            )
        ),
    ]


def merged(first: Sequence[Toleration], second: Sequence[Toleration]) -> list[Toleration]:
    """Both, without those that another one includes; of equal ones the first is kept."""
    both = [*first, *second]
    kept: list[Toleration] = []
    for place, toleration in enumerate(both):
        later = both[place + 1 :]
        if not any(_includes(other, toleration) for other in kept) and not any(
            not _equal(other, toleration) and _includes(other, toleration) for other in later
        ):
            kept.append(toleration)
    return kept


def _includes(first: Toleration, other: Toleration) -> bool:
    """Whether the first tolerates everything that the other does."""
    if _equal(first, other):
        return True
    exists = first.get("operator") == "Exists"
    if (other.get("key") or "") != (first.get("key") or "") and (first.get("key") or not exists):
        return False
    if first.get("effect") and first.get("effect") != other.get("effect"):
        return False
    if first.get("effect") == "NoExecute" and isinstance(limit := first.get("tolerationSeconds"), int):
        seconds = other.get("tolerationSeconds")
        if not isinstance(seconds, int) or seconds > limit:
            return False
    equal = other.get("operator") == "Equal" and (other.get("value") or "") == (first.get("value") or "")
    return exists or (first.get("operator") in (None, "", "Equal") and equal)


def _equal(first: Toleration, other: Toleration) -> bool:
    return all((first.get(field) or "") == (other.get(field) or "") for field in _FIELDS)
