"""From which template of which Workload a missing native group would be made, and by whom: for `explain`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from gangsched.config.dialects import DIALECTS
from gangsched.core.declarations.trees import KINDS, MOST_LEVELS
from gangsched.core.objects.declaration import COMPOSITE, NATIVE
from gangsched.core.objects.wording import printable
from gangsched.kube import wire
from gangsched.kube.client.errors import UNREADABLE, KubeError
from gangsched.kube.client.paths import quoted
from gangsched.kube.client.session import ApiSession
from gangsched.kube.dialects.native import template_of

_MOST = "500"
"""Maximum number of Workloads that are read."""


class _Template(Struct, rename="camel"):
    """The template of a PodGroup, or that of a CompositePodGroup with the ones below it."""

    name: str = ""
    pod_group_templates: list[_Template] | None = None
    composite_pod_group_templates: list[_Template] | None = None


class _Controller(Struct):
    kind: str = ""
    name: str = ""


class _WorkloadSpec(Struct, rename="camel"):
    controller_ref: _Controller | None = None
    pod_group_templates: list[_Template] | None = None
    composite_pod_group_templates: list[_Template] | None = None


class _Workload(Struct):
    metadata: wire.Meta
    spec: _WorkloadSpec | None = None


class _List(Struct):
    items: list[_Workload] | None = None


_LIST = msgspec.json.Decoder(_List)


async def origins(session: ApiSession, namespace: str, group: str) -> list[str]:
    """What would help a group of this name that does not exist, according to the Workloads of the namespace."""
    for version in DIALECTS[NATIVE].resources[0].versions:
        path = f"/apis/scheduling.k8s.io/{version}/namespaces/{quoted(namespace)}/workloads"
        try:
            response = await session.request("GET", path, params={"limit": _MOST})
            workloads = _LIST.decode(response.checked().body).items or []
        except (KubeError, *UNREADABLE):
            continue
        return list(_origins(workloads, group))
    return []


def _origins(workloads: list[_Workload], group: str) -> Iterator[str]:
    for workload in workloads:
        name, spec = workload.metadata.name or "", workload.spec or _WorkloadSpec()
        kinds = dict(_kinds(spec))
        title = template_of(group, name, kinds)
        if title:
            by = spec.controller_ref
            who = printable(f"the controller of {by.kind} {by.name}") if by is not None else "its controller"
            yield (
                f"the {kinds[title]} {group}, which {who} makes from the template {printable(title)} of the Workload "
                f"{printable(name)}"
            )


def _kinds(node: _WorkloadSpec | _Template, levels: int = MOST_LEVELS) -> Iterator[tuple[str, str]]:
    """The name of each template in so many levels below this, and the kind of the group that is made from it."""
    for template in (node.composite_pod_group_templates or ()) if levels else ():
        yield template.name, KINDS[COMPOSITE]
        yield from _kinds(template, levels - 1)
    for template in node.pod_group_templates or ():
        yield template.name, KINDS[NATIVE]
