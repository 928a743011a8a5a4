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


def with_defaults(given: Sequence[Toleration]) -> list[Toleration]:
    """The given tolerations, and those of every pod that they lack. Of a given one only key and effect are compared."""
    return [
        *given,
        *(
            default
            for default in _TOLERATED
            if not any(
                each.get("key") in (None, "", default["key"]) and each.get("effect") in (None, "", default["effect"])
                for each in given
            )
        ),
    ]


def merged(first: Sequence[Toleration], second: Sequence[Toleration]) -> list[Toleration]:
    """Both, without those that another one includes; of equal ones the first is kept."""
    everything = [*first, *second]
    kept: list[Toleration] = []
    for place, each in enumerate(everything):
        later = everything[place + 1 :]
        if not any(_includes(other, each) for other in kept) and not any(
            not _equal(other, each) and _includes(other, each) for other in later
        ):
            kept.append(each)
    return kept


def _includes(one: Toleration, other: Toleration) -> bool:
    """Whether the first tolerates everything that the other does."""
    if _equal(one, other):
        return True
    exists = one.get("operator") == "Exists"
    if (other.get("key") or "") != (one.get("key") or "") and (one.get("key") or not exists):
        return False
    if one.get("effect") and one.get("effect") != other.get("effect"):
        return False
    if one.get("effect") == "NoExecute" and isinstance(limit := one.get("tolerationSeconds"), int):
        seconds = other.get("tolerationSeconds")
        if not isinstance(seconds, int) or seconds > limit:
            return False
    equal = other.get("operator") == "Equal" and (other.get("value") or "") == (one.get("value") or "")
    return exists or (one.get("operator") in (None, "", "Equal") and equal)


def _equal(one: Toleration, other: Toleration) -> bool:
    return all((one.get(field) or "") == (other.get(field) or "") for field in _FIELDS)
