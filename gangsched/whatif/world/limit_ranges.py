"""LimitRanges of a simulated cluster: the defaults that they give containers, and the pods that they refuse.

The rules of refusals are those of the admission plug-in LimitRanger at v1.37.2; the defaults are in
gangsched/kube/terms/pod_defaults.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gangsched.core.objects import quantity
from gangsched.core.objects.quantity import Exact
from gangsched.kube.terms.pod_defaults import CONTAINER, NO_DEFAULTS, ContainerDefaults, filled
from gangsched.whatif.world import pod_amounts
from gangsched.whatif.world.defaults import Spec, check_quantities
from gangsched.whatif.world.manifests import Manifest, NotAdmittedError, mapping

_FIELDS = ("default", "defaultRequest", "max", "min", "maxLimitRequestRatio")
_LISTS = ("containers", "initContainers")
_POD, _CLAIM = "Pod", "PersistentVolumeClaim"


@dataclass(frozen=True, slots=True)
class _Item:
    """One item of `spec.limits`: what it demands of each object of its type."""

    title: str
    type: str
    least: Mapping[str, Exact]
    most: Mapping[str, Exact]
    ratio: Mapping[str, Exact]

    def refusals(self, requests: Mapping[str, Exact], limits: Mapping[str, Exact]) -> Iterator[str]:
        """The reasons, each a clause, why these requests and limits are refused."""
        for name, least in self.least.items():
            if name not in requests or min(requests[name], limits.get(name, least)) < least:
                yield f"{name} is below the minimum of {self.title} for a {self.type}"
        for name, most in self.most.items():
            if name not in limits or max(limits[name], requests.get(name, 0)) > most:
                yield f"{name} has no limit, or is above the maximum of {self.title} for a {self.type}"
        for name, ratio in self.ratio.items():
            request, limit = requests.get(name, 0), limits.get(name, 0)
            if not request or not limit or limit > request * ratio:
                yield f"{name} has a limit that is too large for its request by {self.title} for a {self.type}"


class LimitRanges:
    """The LimitRanges by namespace."""

    def __init__(self) -> None:
        self._items: defaultdict[str, list[_Item]] = defaultdict(list)
        self._defaults: defaultdict[str, dict[str, ContainerDefaults]] = defaultdict(dict)

    def add(self, manifest: Manifest) -> None:
        """Add a LimitRange.

        Raises:
            ManifestError: it is unreadable.
        """
        defaults = NO_DEFAULTS
        for item in map(mapping, manifest.spec.get("limits") or ()):
            for field in _FIELDS:
                check_quantities(item.get(field), f"{manifest}: spec.limits.{field}")
            default, request, most, least, ratio = (mapping(item.get(field)) for field in _FIELDS)
            if item.get("type") == CONTAINER:
                defaults = defaults.with_item(default=default, default_request=request, most=most, least=least)
            self._items[manifest.namespace].append(
                _Item(
                    title=f"LimitRange {manifest.name}",
                    type=str(item.get("type") or ""),
                    least=pod_amounts.exact(least),
                    most=pod_amounts.exact(most),
                    ratio={name: quantity.exact(text) for name, text in ratio.items()},
                )
            )
        if defaults.requests:
            self._defaults[manifest.namespace][manifest.name] = defaults

    def givers(self, namespace: str) -> list[str]:
        """The names of the LimitRanges that have defaults."""
        return list(self._defaults.get(namespace, ()))

    def apply(self, namespace: str, spec: Spec) -> Spec:
        """The spec, whose containers get the default requests and limits that they lack."""
        defaults = list(self._defaults.get(namespace, {}).values())
        if not defaults:
            return spec
        return {
            **spec,
            **{field: [_filled(container, defaults) for container in spec.get(field) or ()] for field in _LISTS},
        }

    def check(self, namespace: str, spec: Mapping[str, Any]) -> None:
        """Refuse a pod that breaks a limit.

        Raises:
            NotAdmittedError: the API server would refuse it.
        """
        for item in self._items.get(namespace, ()):
            parts = [_of_pod(spec)] if item.type == _POD else _of_containers(spec) if item.type == CONTAINER else ()
            for requests, limits in parts:
                _refuse(item.refusals(requests, limits))

    def check_claim(self, namespace: str, spec: Mapping[str, Any]) -> None:
        """Refuse a PersistentVolumeClaim that breaks a limit; as `check`."""
        requests = pod_amounts.of_container(spec, "requests")
        for item in self._items.get(namespace, ()):
            if item.type == _CLAIM:
                _refuse(item.refusals(requests, requests))


def _refuse(reasons: Iterable[str]) -> None:
    if refusals := [f"{why}: change the amount" for why in reasons]:
        raise NotAdmittedError(refusals)


def _filled(container: Mapping[str, Any], defaults: Sequence[ContainerDefaults]) -> Spec:
    """The container with the requests and limits that it lacks."""
    resources = mapping(container.get("resources"))
    requests = filled(mapping(resources.get("requests")), (amounts.requests for amounts in defaults))
    limits = filled(mapping(resources.get("limits")), (amounts.limits for amounts in defaults))
    return {**container, "resources": {**resources, "requests": requests, "limits": limits}}


def _of_containers(spec: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Exact], Mapping[str, Exact]]]:
    for field in _LISTS:
        for container in spec.get(field) or ():
            yield pod_amounts.of_container(container, "requests"), pod_amounts.of_container(container, "limits")


def _of_pod(spec: Mapping[str, Any]) -> tuple[Mapping[str, Exact], Mapping[str, Exact]]:
    return (
        pod_amounts.of_pod(spec, "requests", overhead=False),
        pod_amounts.of_pod(spec, "limits", overhead=False),
    )
