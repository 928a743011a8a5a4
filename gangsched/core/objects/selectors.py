"""Label selectors and node selector terms, as k8s.io/apimachinery and k8s.io/component-helpers match them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from gangsched.core.objects.shape import Requirement

_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
_INT64 = 2**63


def is_label_value(text: str) -> bool:
    """Whether a label can have this value."""
    return _LABEL_VALUE.fullmatch(text) is not None


def matches(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether all requirements hold. An empty selector matches everything.

    NotIn and DoesNotExist hold where the key is missing. A malformed requirement (unknown operator, wrong number of
    values, a value that no label can have) makes the whole selector match nothing.
    """
    return all(well_formed(requirement) and holds(requirement, labels) for requirement in requirements)


def may_hold(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether all of them may hold once labels are added to these, none of which changes or goes."""
    return all(
        well_formed(requirement) and (requirement.key not in labels or holds(requirement, labels))
        for requirement in requirements
    )


def field_holds(field: Requirement, name: str) -> bool:
    """Whether a requirement on fields holds for the node of this name."""
    by_name = field.key == "metadata.name" and len(field.values) == 1 and field.operator in ("In", "NotIn")
    return by_name and holds(field, {"metadata.name": name})


def holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether a well-formed requirement holds for these labels."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return _compares(requirement.operator, value, requirement.values[0])


def _compares(operator: str, text: str | None, bound_text: str) -> bool:
    value = None if text is None else _int64(text)
    bound = _int64(bound_text)
    if value is None or bound is None:
        return False
    return value > bound if operator == "Gt" else value < bound


def _int64(text: str) -> int | None:
    """The decimal integer in the text; None if it contains none, or one beyond 64 bits."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    value = int("".join(match.groups()))
    return value if -_INT64 <= value < _INT64 else None


@lru_cache(maxsize=1024)
def well_formed(requirement: Requirement) -> bool:
    """Whether the requirement can hold at all: a known operator, its number of values, values that labels can have."""
    match requirement.operator:
        case "In" | "NotIn":
            counts = bool(requirement.values)
        case "Exists" | "DoesNotExist":
            counts = not requirement.values
        case "Gt" | "Lt":
            counts = len(requirement.values) == 1 and _int64(requirement.values[0]) is not None
        case _:
            counts = False
    return counts and all(map(is_label_value, requirement.values))
