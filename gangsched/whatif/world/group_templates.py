"""Kubernetes' own groups that controllers make from the templates of Workloads, in a simulated cluster.

Which groups a controller makes from its Workload is not known, but its pods name them. A name is that of a template,
alone or after the name of the Workload, to which component-helpers' workloadbuilder adds a hash. What is copied from a
template is what `newPodGroup` and `newCompositePodGroup` copy there (podgroup.go at v1.37.2).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gangsched.config.dialects import DIALECTS
from gangsched.core.objects.declaration import COMPOSITE, NATIVE
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.dialects.native import template_of
from gangsched.whatif.world.manifests import Manifest, mappings

POD_GROUP, WORKLOAD = "PodGroup", "Workload"
_POD_GROUPS, _COMPOSITES = DIALECTS[NATIVE].resources
GROUPS = tuple((version, POD_GROUP) for version in _POD_GROUPS.served_in)
COMPOSITES = tuple((version, DEFAULT.kinds[COMPOSITE].title) for version in _COMPOSITES.served_in)
WORKLOADS = tuple((version, WORKLOAD) for version in _POD_GROUPS.served_in)
"""The kinds, by apiVersion and kind."""

_COPIED = ("schedulingPolicy", "schedulingConstraints", "disruptionMode", "priorityClassName", "priority")

Object = Mapping[str, Any]


class _Leaf(NamedTuple):
    """The template of a PodGroup, and those of the CompositePodGroups above it, the topmost first."""

    template: Object
    above: tuple[Object, ...]


class TemplateGroup(NamedTuple):
    """A group, and the Workload in the files that has its template."""

    group: Manifest
    workload: Manifest


@dataclass(frozen=True, slots=True)
class _Origin:
    """The template of a Workload that fits the name of a group; `fits` is the length of the part that it explains."""

    workload: Manifest
    leaf: _Leaf
    fits: int


def templates(workload: Manifest) -> Sequence[Object]:
    """The templates of the PodGroups that are below no CompositePodGroup."""
    return mappings(workload.spec.get("podGroupTemplates"))


def group(
    made_for: Manifest,
    gvk: tuple[str, str],
    name: str,
    template: Object,
    *,
    origin: tuple[str, str],
    owners: Sequence[Object] = (),
    parent: str = "",
) -> Manifest:
    """The PodGroup or CompositePodGroup of that template; `origin` are the names of its Workload and its template.

    `made_for` is the object in the files because of which it is made.
    """
    copied = (*_COPIED, "resourceClaims") if gvk in GROUPS else _COPIED
    workload, title = origin
    spec: dict[str, Any] = {
        "workloadRef": {"workloadName": workload, "templateName": title},
        **{key: template[key] for key in copied if template.get(key) is not None},
        **({"parentCompositePodGroupName": parent} if parent else {}),
    }
    metadata = {"name": name, "namespace": made_for.namespace, "ownerReferences": [*owners]}
    version, kind = gvk
    return replace(made_for, api_version=version, kind=kind, body={"metadata": metadata, "spec": spec})


def from_templates(
    workloads: Sequence[Manifest], names: Collection[str], composites: Collection[tuple[str, str]]
) -> tuple[list[TemplateGroup], list[str]]:
    """The groups of these names that come from templates of these Workloads, with the groups above them, and doubts.

    Pods name them, and they are not in the files. `composites` are the CompositePodGroups that are, by namespace and
    name. If templates of several Workloads fit a name, the one counts whose name says most of it, else the first.
    """
    groups: dict[tuple[tuple[str, str], str], TemplateGroup] = {}
    doubts: list[str] = []
    below: dict[tuple[str, str], list[str]] = {}
    for name in names:
        origins = _origins(name, workloads)
        if not origins:
            continue
        workload, leaf = origins[0].workload, origins[0].leaf
        doubts += [
            f"{origin.workload} has a template of the PodGroup {name}, as has Workload {workload.name}, which counts: "
            "add the manifest of the PodGroup"
            for origin in origins[1:]
        ]
        for manifest in _with_those_above(workload, name, leaf):
            if manifest.gvk not in COMPOSITES or (manifest.namespace, manifest.name) not in composites:
                groups.setdefault((manifest.gvk, manifest.name), TemplateGroup(manifest, workload))
        if leaf.above:
            title = str(leaf.template["name"])
            below.setdefault((str(workload), title), []).append(name)
    for (workload_title, title), parts in below.items():
        if len(parts) > 1:
            doubts.append(
                f"{workload_title}: PodGroups {' and '.join(parts)} come from its template {title}, which is below a "
                "composite one, and are taken to be parts of one CompositePodGroup: add the manifests of the PodGroups"
            )
    return list(groups.values()), doubts


def _with_those_above(workload: Manifest, name: str, leaf: _Leaf) -> Iterator[Manifest]:
    parent = ""
    for template in leaf.above:
        title = str(template.get("name"))
        above = f"{workload.name}-{title}"
        yield group(workload, COMPOSITES[0], above, template, origin=(workload.name, title), parent=parent)
        parent = above
    title = str(leaf.template["name"])
    yield group(workload, GROUPS[0], name, leaf.template, origin=(workload.name, title), parent=parent)


def _origins(name: str, workloads: Sequence[Manifest]) -> list[_Origin]:
    """The templates that fit the name best, one of each Workload, in the order of the files."""
    origins: list[_Origin] = []
    for workload in workloads:
        leaves: dict[str, _Leaf] = {}
        for leaf in _leaves(workload.spec):
            leaves.setdefault(str(leaf.template.get("name") or ""), leaf)
        title = template_of(name, workload.name, leaves)
        if title:
            full_name = f"{workload.name}-{title}"
            origins.append(_Origin(workload, leaves[title], len(name if name in (title, full_name) else full_name)))
    best = max((origin.fits for origin in origins), default=0)
    return [origin for origin in origins if origin.fits == best]


def _leaves(node: Object, above: tuple[Object, ...] = ()) -> Iterator[_Leaf]:
    for template in mappings(node.get("podGroupTemplates")):
        yield _Leaf(template, above)
    for template in mappings(node.get("compositePodGroupTemplates")):
        yield from _leaves(template, (*above, template))
