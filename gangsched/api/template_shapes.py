"""Converts `roles[].template` of a PodGroup to the core's values for planning, and back for created PodGroups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gangsched.api import role_template as wanted
from gangsched.core.objects.quantity import amount
from gangsched.core.objects.shape import Amounts, NodeTerm, Requirement, Shape, Toleration
from gangsched.core.objects.soft import Soft

_OPERATORS = ("", "Equal", "Exists")


def shape_from_template(read: wanted.MemberTemplate) -> Shape:
    """The shape of a pod with the template's requests and constraints."""
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


def soft_from_template(read: wanted.MemberTemplate) -> Soft | None:
    """The preferences of a pod of this template; None if there are none. A term without requirements is left out."""
    affinity = read.affinity.node_affinity if read.affinity is not None else None
    preferred = affinity.preferred_during_scheduling_ignored_during_execution if affinity is not None else []
    found = [(each.weight, _term(each.preference)) for each in preferred]
    terms = tuple((weight, term) for weight, term in found if term.expressions or term.fields)
    return Soft(terms) if terms else None


def template_to_object(shape: Shape, soft: Soft | None = None) -> dict[str, Any]:
    """The template with the requests, selectors and tolerations of this shape, and with the preferences."""
    found: dict[str, Any] = {"requests": requests_to_object(shape.requests)}
    if shape.node_selector:
        found["nodeSelector"] = dict(shape.node_selector)
    affinity: dict[str, Any] = {}
    if shape.node_affinity is not None:
        terms = list(map(_term_to_object, shape.node_affinity))
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if soft is not None and soft.node_terms:
        preferred = [{"weight": weight, "preference": _term_to_object(term)} for weight, term in soft.node_terms]
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    if affinity:
        found["affinity"] = {"nodeAffinity": affinity}
    if shape.tolerations:
        found["tolerations"] = [_toleration(each) for each in shape.tolerations if each.operator in _OPERATORS]
    return found


def requests_to_object(requests: Amounts) -> dict[str, str]:
    """The amounts as quantities."""
    return {name: f"{value}m" if name == "cpu" else str(value) for name, value in requests}


def _term(term: wanted.NodeSelectorTerm) -> NodeTerm:
    return NodeTerm(expressions=_requirements(term.match_expressions), fields=_requirements(term.match_fields))


def _term_to_object(term: NodeTerm) -> dict[str, Any]:
    return {"matchExpressions": _conditions(term.expressions), "matchFields": _conditions(term.fields)}


def _requirements(found: Iterable[wanted.NodeSelectorRequirement]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key=each.key, operator=each.operator, values=tuple(each.values)) for each in found)


def _conditions(found: Iterable[Requirement]) -> list[dict[str, Any]]:
    return [{"key": each.key, "operator": each.operator, "values": list(each.values)} for each in found]


def _toleration(each: Toleration) -> dict[str, str]:
    said = {"key": each.key, "operator": each.operator or "Equal", "value": each.value, "effect": each.effect}
    return {name: text for name, text in said.items() if text}
