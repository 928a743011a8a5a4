"""Converts node selector terms and their requirements, and tolerations."""

from __future__ import annotations

from collections.abc import Iterable

from gangsched.core.objects.shape import NodeTerm, Requirement, Toleration
from gangsched.kube import wire


def node_term(term: wire.NodeSelectorTerm) -> NodeTerm:
    """The term; it may be empty or malformed."""
    return NodeTerm(expressions=requirements(term.match_expressions), fields=requirements(term.match_fields))


def node_terms(selector: wire.NodeSelector | None) -> tuple[NodeTerm, ...] | None:
    """The terms of a node selector, one of which must match; None without one."""
    return None if selector is None else tuple(map(node_term, selector.node_selector_terms or ()))


def requirements(expressions: Iterable[wire.Requirement] | None) -> tuple[Requirement, ...]:
    """The requirements, in order."""
    return tuple(
        Requirement(key=expression.key, operator=expression.operator, values=tuple(expression.values or ()))
        for expression in expressions or ()
    )


def toleration(sent: wire.Toleration) -> Toleration:
    """A toleration of taints, of a node or of a device."""
    return Toleration(
        key=sent.key or "", operator=sent.operator or "", value=sent.value or "", effect=sent.effect or ""
    )
