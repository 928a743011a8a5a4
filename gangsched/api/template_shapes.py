"""Converts `roles[].template` of a PodGroup to the core's values for planning, and back for created PodGroups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gangsched.api import role_template
from gangsched.core.objects.quantity import amount
from gangsched.core.objects.shape import Amounts, NodeTerm, Requirement, Shape, Soft, Toleration

_OPERATORS = ("", "Equal", "Exists")


def shape_from_template(template: role_template.MemberTemplate) -> Shape:
    """The shape of a pod with the template's requests and constraints."""
    affinity = template.affinity.node_affinity if template.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return Shape(
        requests=requests_from_object(template.requests),
        node_selector=tuple(sorted(template.node_selector.items())),
        node_affinity=None if required is None else tuple(map(_term, required.node_selector_terms)),
        tolerations=tuple(
            Toleration(
                key=toleration.key or "",
                operator=toleration.operator,
                value=toleration.value or "",
                effect=toleration.effect or "",
            )
            for toleration in template.tolerations
        ),
    )


def soft_from_template(template: role_template.MemberTemplate) -> Soft | None:
    """The preferences of a pod of this template; None if there are none. A term without requirements is left out."""
    affinity = template.affinity.node_affinity if template.affinity is not None else None
    preferred = affinity.preferred_during_scheduling_ignored_during_execution if affinity is not None else []
    weighted = [(entry.weight, _term(entry.preference)) for entry in preferred]
    terms = tuple((weight, term) for weight, term in weighted if term.expressions or term.fields)
    return Soft(terms) if terms else None


def template_to_object(shape: Shape, soft: Soft | None = None) -> dict[str, Any]:
    """The template with the requests, selectors and tolerations of this shape, and with the preferences."""
    template: dict[str, Any] = {"requests": requests_to_object(shape.requests)}
    if shape.node_selector:
        template["nodeSelector"] = dict(shape.node_selector)
    affinity: dict[str, Any] = {}
    if shape.node_affinity is not None:
        terms = list(map(_term_to_object, shape.node_affinity))
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if soft is not None and soft.node_terms:
        preferred = [{"weight": weight, "preference": _term_to_object(term)} for weight, term in soft.node_terms]
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    if affinity:
        template["affinity"] = {"nodeAffinity": affinity}
    if shape.tolerations:
        template["tolerations"] = [
            _toleration(toleration) for toleration in shape.tolerations if toleration.operator in _OPERATORS
        ]
    return template


def requests_to_object(requests: Amounts) -> dict[str, str]:
    """The amounts as quantities."""
    return {name: f"{value}m" if name == "cpu" else str(value) for name, value in requests}


def requests_from_object(requests: Mapping[str, int | str]) -> Amounts:
    """The quantities as amounts, by name; without those of 0."""
    amounts = ((name, amount(name, quantity)) for name, quantity in sorted(requests.items()))
    return tuple((name, value) for name, value in amounts if value)


def _term(term: role_template.NodeSelectorTerm) -> NodeTerm:
    return NodeTerm(expressions=_requirements(term.match_expressions), fields=_requirements(term.match_fields))


def _term_to_object(term: NodeTerm) -> dict[str, Any]:
    return {"matchExpressions": _conditions(term.expressions), "matchFields": _conditions(term.fields)}


def _requirements(requirements: Iterable[role_template.NodeSelectorRequirement]) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(key=requirement.key, operator=requirement.operator, values=tuple(requirement.values))
        for requirement in requirements
    )


def _conditions(requirements: Iterable[Requirement]) -> list[dict[str, Any]]:
    return [
        {"key": requirement.key, "operator": requirement.operator, "values": list(requirement.values)}
        for requirement in requirements
    ]


def _toleration(toleration: Toleration) -> dict[str, str]:
    fields = {
        "key": toleration.key,
        "operator": toleration.operator or "Equal",
        "value": toleration.value,
        "effect": toleration.effect,
    }
    return {name: text for name, text in fields.items() if text}
