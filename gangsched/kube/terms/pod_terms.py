"""Converts a pod's rules about other pods, required or preferred: affinity terms and topology spread constraints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gangsched.core.objects.shape import Labels, PodTerm, Requirement, Spread
from gangsched.kube import wire
from gangsched.kube.terms.node_terms import requirements

REQUIRED, PREFERRED = "DoNotSchedule", "ScheduleAnyway"


def labels(pairs: Mapping[str, str] | None) -> Labels:
    """Label pairs sorted by key."""
    return tuple(sorted(pairs.items())) if pairs else ()


def required_terms(affinity: wire.PodAffinity | None, meta: wire.Meta) -> tuple[PodTerm, ...]:
    """The required terms of affinity or of anti-affinity."""
    terms = affinity.required if affinity is not None else None
    return tuple(_pod_term(term, meta) for term in terms or ())


def preferred_terms(affinity: wire.PodAffinity | None, meta: wire.Meta) -> list[tuple[int, PodTerm]]:
    """The preferred terms with their weights, the heaviest first."""
    terms = affinity.preferred if affinity is not None else None
    weighted = [
        (term.weight, _pod_term(term.pod_affinity_term, meta))
        for term in terms or ()
        if term.weight > 0 and term.pod_affinity_term is not None
    ]
    return sorted(weighted, key=lambda term: -term[0])


def spread(constraints: Iterable[wire.SpreadConstraint], meta: wire.Meta, when: str) -> tuple[Spread, ...]:
    """The constraints with this `whenUnsatisfiable`; `matchLabelKeys` are ANDed with their values in the pod's labels.

    Any value other than ScheduleAnyway counts as DoNotSchedule, which is the default.
    """
    spreads = []
    own = meta.labels or {}
    for constraint in constraints:
        if (constraint.when_unsatisfiable == PREFERRED) != (when == PREFERRED):
            continue
        selector = selecting(constraint.label_selector)
        if selector is not None:
            keys = [key for key in constraint.match_label_keys or () if key in own]
            selector += tuple(Requirement(key=key, operator="In", values=(own[key],)) for key in keys)
        spreads.append(
            Spread(
                PodTerm(constraint.topology_key, selector, namespaces=(meta.namespace or "default",)),
                max_skew=constraint.max_skew,
                min_domains=constraint.min_domains or 1,
                honors_affinity=constraint.node_affinity_policy != "Ignore",
                honors_taints=constraint.node_taints_policy == "Honor",
            )
        )
    return tuple(spreads)


def _pod_term(term: wire.PodAffinityTerm, meta: wire.Meta) -> PodTerm:
    """The term, with the pod's own namespace if it has neither namespaces nor a namespace selector."""
    namespaces = tuple(term.namespaces or ())
    if not namespaces and term.namespace_selector is None:
        namespaces = (meta.namespace or "default",)
    return PodTerm(
        topology_key=term.topology_key,
        selector=selecting(term.label_selector),
        namespaces=namespaces,
        namespace_selector=selecting(term.namespace_selector),
    )


def selecting(selector: wire.LabelSelector | None) -> tuple[Requirement, ...] | None:
    """The requirements of a label selector; None if there is none, which selects nothing."""
    if selector is None:
        return None
    pairs = tuple(Requirement(key=key, operator="In", values=(value,)) for key, value in labels(selector.match_labels))
    return pairs + requirements(selector.match_expressions)
