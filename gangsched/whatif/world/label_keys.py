"""The label keys of pod affinity and topology spread, which the API server merges into the label selectors.

The rules are `mutatePodAffinity` and `mutateTopologySpreadConstraints` in
k8s.io/kubernetes/pkg/registry/core/pod/strategy.go at v1.37.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from gangsched.whatif.world.manifests import mapping, mappings

REQUIRED, PREFERRED = (f"{mode}DuringSchedulingIgnoredDuringExecution" for mode in ("required", "preferred"))
_KEYS = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))

Part = Mapping[str, Any]


def merged(spec: Part, labels: Part) -> Part:
    """The spec of a pod with these labels, with the keys in the selectors."""
    with_keys = partial(_with_keys, labels=labels)

    def of_preferred(weighted: Part) -> Part:
        return {**weighted, "podAffinityTerm": with_keys(mapping(weighted, "podAffinityTerm"))}

    result = spec
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = _with_each(mapping(result, "affinity", kind), REQUIRED, with_keys)
        terms = _with_each(terms, PREFERRED, of_preferred)
        if terms:
            result = {**result, "affinity": {**result["affinity"], kind: terms}}
    return _with_each(result, "topologySpreadConstraints", with_keys)


def _with_each(parent: Part, field: str, change: Callable[[Part], Part]) -> Part:
    """The parent, whose list of parts in that field is changed part by part."""
    return {**parent, field: [change(part) for part in mappings(parent[field])]} if parent.get(field) else parent


def _with_keys(term: Part, labels: Part) -> Part:
    """The term or constraint. Without a selector it matches no pod, whatever its keys are."""
    selector = term.get("labelSelector")
    added = list(_requirements(term, labels))
    if selector is None or not added:
        return term
    expressions = [*mappings(mapping(selector).get("matchExpressions")), *added]
    return {**term, "labelSelector": {**mapping(selector), "matchExpressions": expressions}}


def _requirements(term: Part, labels: Part) -> Iterator[Part]:
    for field, operator in _KEYS:
        for key in term.get(field) or ():
            if key in labels:
                yield {"key": key, "operator": operator, "values": [labels[key]]}
