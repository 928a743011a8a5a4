"""Converts the preferences of pods and the images of nodes.

All images that a node names are kept, because a pod may use any of them. Nodes with the same images share the names and
sizes: 5,000 nodes with 50 images of two names each take 10 MB.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from gangsched.core.objects.shape import Images, NodeTerm, Soft
from gangsched.kube import wire
from gangsched.kube.terms.node_terms import node_term
from gangsched.kube.terms.pod_terms import PREFERRED, preferred_terms, spread
from gangsched.kube.terms.sharing import sharing
from gangsched.kube.terms.unsupported import MOST_TERMS

_KEPT = 1024
_shared, _shared_image = sharing(), sharing(1 << 13)
"""The members of a gang prefer the same, and many nodes have the same images."""


def soft(spec: wire.PodSpec, meta: wire.Meta) -> Soft | None:
    """The pod's preferences; None if it has none. Terms without weight or requirements are left out.

    Of affinity, anti-affinity and topology spread, only the first `MOST_TERMS` each count; affinity terms are sorted by
    weight.
    """
    containers = spec.containers or ()
    if spec.init_containers:
        containers = [*spec.init_containers, *containers]
    images = [container.image for container in containers]
    if spec.volumes:
        images += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    if spec.affinity is None and not spec.topology_spread_constraints:
        return _of_images(tuple(images), len(images))
    affinity = spec.affinity or wire.Affinity()
    near = preferred_terms(affinity.pod_affinity, meta)[:MOST_TERMS]
    far = preferred_terms(affinity.pod_anti_affinity, meta)[:MOST_TERMS]
    nodes = affinity.node_affinity.preferred if affinity.node_affinity is not None else None
    constraints = spec.topology_spread_constraints
    value = Soft(
        node_terms=tuple(_terms(nodes or ())),
        images=_complete(images),
        containers=len(images),
        pod_terms=(*near, *((-weight, term) for weight, term in far)),
        spread=spread(constraints, meta, PREFERRED)[:MOST_TERMS] if constraints else (),
    )
    return _shared(value) if value.node_terms or value.images or value.pod_terms or value.spread else None


def images(node_images: Iterable[wire.NodeImage]) -> Images:
    """The images of a node by each of their names."""
    sizes = {name: image.size for image in node_images for name in image.names or ()}
    return tuple(_shared_image((name, sizes[name])) for name in sorted(sizes))


def complete(image: str) -> str:
    """The image's name as the kubelet reports it: with the tag latest if it has neither tag nor digest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


@lru_cache(maxsize=_KEPT)
def _of_images(images: tuple[str | None, ...], containers: int) -> Soft | None:
    """The preferences of a pod that prefers only nodes with its images, as most pods do; None if it names no image."""
    complete_ones = _complete(images)
    return _shared(Soft(images=complete_ones, containers=containers)) if complete_ones else None


def _complete(images: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted(complete(image) for image in images if image))


def _terms(terms: Iterable[wire.PreferredTerm]) -> Iterable[tuple[int, NodeTerm]]:
    for preferred in terms:
        term = node_term(preferred.preference or wire.NodeSelectorTerm())
        if preferred.weight > 0 and (term.expressions or term.fields):
            yield preferred.weight, term
