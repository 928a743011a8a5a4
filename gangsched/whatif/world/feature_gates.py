"""Kubernetes' feature gates that are off by default and that decide which groups pods have, in a simulated cluster.

What the files use counts as on. Without a gate the API server serves no objects of it and drops its fields from what is
created (`dropDisabledFields` of k8s.io/kubernetes/pkg/api/pod/util.go, `DropDisabledFields` of pkg/api/job/util.go and
pkg/registry/scheduling/rest at v1.37.2), and the Job controller makes no groups.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from gangsched.whatif.world.group_templates import COMPOSITES, GROUPS, WORKLOADS
from gangsched.whatif.world.manifests import Manifest, ManifestError, mapping
from gangsched.whatif.world.native_groups import DELEGATED

_GENERIC, _OF_JOBS, _CLAIMS = "GenericWorkload", "WorkloadWithJob", "DRAWorkloadResourceClaims"
KNOWN = (_GENERIC, _OF_JOBS, _CLAIMS)
"""The gates. All others need the first one."""
_VALUES = {"true": True, "false": False}
_SERVED = (*GROUPS, *COMPOSITES, *WORKLOADS)
_Field = tuple[str, str]
_FIELDS: Mapping[str, Sequence[_Field]] = {
    _GENERIC: [("schedulingGroup", "containers")],
    _OF_JOBS: [("scheduling", "template"), (DELEGATED, DELEGATED)],
    _CLAIMS: [("resourceClaims", "schedulingPolicy")],
}
"""The fields that each gate adds, each with one that stands beside it and tells it from others of its name."""


def off(text: str) -> frozenset[str]:
    """The gates that are off according to NAME=true|false,..., as Kubernetes' programs write them.

    Raises:
        ValueError: a gate is not known, has no truth value, or needs one that is off.
    """
    gates: dict[str, bool] = {}
    for entry in text.split(","):
        name, _, value = entry.strip().partition("=")
        if name not in KNOWN:
            raise ValueError(f"{name!r} is no feature gate that can be chosen here: write {', '.join(KNOWN)}")
        if value.lower() not in _VALUES:
            raise ValueError(f"{entry.strip()!r} is not clear: write {name}=true or {name}=false")
        gates[name] = _VALUES[value.lower()]
    if gates.get(_GENERIC, True):
        return frozenset(name for name, on in gates.items() if not on)
    if needing := [name for name, on in gates.items() if on]:
        raise ValueError(f"{needing[0]} needs {_GENERIC}: turn both on or both off")
    return frozenset(KNOWN)


def without(manifests: Sequence[Manifest], gates: Collection[str]) -> list[Manifest]:
    """The manifests as an API server takes them on which these gates are off. Pods that exist keep what they have.

    Raises:
        ManifestError: it would refuse some of them.
    """
    if _GENERIC in gates and (unserved := [manifest for manifest in manifests if manifest.gvk in _SERVED]):
        raise ManifestError(
            [
                f"{manifest}: the API server would refuse it, because it has no kind {manifest.kind} in "
                f"{manifest.api_version} without the feature gate {_GENERIC}: remove it, or turn the gate on"
                for manifest in unserved
            ]
        )
    return [_without(manifest, gates) for manifest in manifests]


def _without(manifest: Manifest, gates: Collection[str]) -> Manifest:
    if manifest.kind == "Pod" and manifest.metadata.get("uid"):
        return manifest
    fields = [field for gate in gates for field in _FIELDS[gate]]
    return replace(manifest, body=mapping(_kept(manifest.body, fields)))


def _kept(value: object, fields: Sequence[_Field]) -> object:
    """The value without these fields, at any depth: workloads have pod templates, and some have templates of Jobs."""
    if isinstance(value, Mapping):
        dropped = {name for name, beside in fields if beside in value}
        return {name: _kept(inner, fields) for name, inner in value.items() if name not in dropped}
    return [_kept(inner, fields) for inner in value] if isinstance(value, list) else value
