"""Converts `roles[].template` of a PodGroup to the shape that the core plans with, and back for created PodGroups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gangsched.api import template as wanted
from gangsched.core.objects.quantity import amount
from gangsched.core.objects.shape import Amounts, NodeTerm, Requirement, Shape, Toleration

_OPERATORS = ("", "Equal", "Exists")


def shape_from_template(read: wanted.MemberTemplate) -> Shape:
    """The shape of a pod with the template's requests and constraints. Preferences have no effect and are ignored."""
    affinity = read.affinity.node_affinity if read.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    found = ((resource, amount(resource, quantity)) for resource, quantity in sorted(read.requests.items()))
    return Shape(
        requests=tuple((resource, value) for resource, value in found if value),
        node_selector=tuple(sorted(read.node_selector.items())),
        node_affinity=None if required is None else tuple(map(_term, required.node_selector_terms)),
        tolerations=tuple(
            Toleration(key=each.key or "", operator=each.operator, value=each.value or "", effect=each.effect or "")
            for each in read.tolerations
        ),
    )


def template_to_object(shape: Shape) -> dict[str, Any]:
    """The template with this shape's requests, selectors and tolerations."""
    found: dict[str, Any] = {"requests": requests_to_object(shape.requests)}
    if shape.node_selector:
        found["nodeSelector"] = dict(shape.node_selector)
    if shape.node_affinity is not None:
        terms = [
            {"matchExpressions": _conditions(term.expressions), "matchFields": _conditions(term.fields)}
            for term in shape.node_affinity
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        found["affinity"] = {"nodeAffinity": required}
    if shape.tolerations:
        found["tolerations"] = [_toleration(each) for each in shape.tolerations if each.operator in _OPERATORS]
    return found


def requests_to_object(requests: Amounts) -> dict[str, str]:
    """The amounts as quantities."""
    return {name: f"{value}m" if name == "cpu" else str(value) for name, value in requests}


def _term(term: wanted.NodeSelectorTerm) -> NodeTerm:
    return NodeTerm(expressions=_requirements(term.match_expressions), fields=_requirements(term.match_fields))


def _requirements(found: Iterable[wanted.NodeSelectorRequirement]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key=each.key, operator=each.operator, values=tuple(each.values)) for each in found)


def _conditions(found: Iterable[Requirement]) -> list[dict[str, Any]]:
    return [{"key": each.key, "operator": each.operator, "values": list(each.values)} for each in found]


def _toleration(each: Toleration) -> dict[str, str]:
    said = {"key": each.key, "operator": each.operator or "Equal", "value": each.value, "effect": each.effect}
    return {name: text for name, text in said.items() if text}
