"""RuntimeClasses of a simulated cluster: the overhead, node selector and tolerations that they give pods.

The rules are the admission plug-in RuntimeClass at v1.37.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangsched.kube.terms.pod_defaults import is_other_overhead, other_value
from gangsched.whatif.world import tolerations
from gangsched.whatif.world.defaults import Spec, check_quantities
from gangsched.whatif.world.manifests import Manifest, NotAdmittedError, mapping


class RuntimeClasses:
    """The RuntimeClasses by name."""

    def __init__(self) -> None:
        self._classes: dict[str, Manifest] = {}

    def add(self, manifest: Manifest) -> None:
        """Add a RuntimeClass.

        Raises:
            ManifestError: its overhead is unreadable.
        """
        check_quantities(_overhead(manifest), f"{manifest}: overhead.podFixed")
        self._classes[manifest.name] = manifest

    def apply(self, spec: Spec) -> Spec:
        """The spec with what its RuntimeClass adds.

        Raises:
            NotAdmittedError: the class is missing, or contradicts the pod.
        """
        name = spec.get("runtimeClassName")
        runtime_class = self._classes.get(str(name)) if name else None
        if name and runtime_class is None:
            raise NotAdmittedError([f"RuntimeClass {name} is missing: add its manifest"])
        overhead = _overhead(runtime_class) if runtime_class is not None else None
        if is_other_overhead(mapping(overhead), mapping(spec.get("overhead"))):
            raise NotAdmittedError(["its overhead is not that of its RuntimeClass: remove spec.overhead"])
        if runtime_class is None:
            return spec
        result = {**spec, "overhead": overhead} if overhead else spec
        scheduling = mapping(runtime_class.body.get("scheduling"))
        selector, own = mapping(scheduling.get("nodeSelector")), mapping(spec.get("nodeSelector"))
        if other := other_value(selector, own):
            raise NotAdmittedError([f"RuntimeClass {name} requires another value of {other}: change spec.nodeSelector"])
        if scheduling:
            result = {
                **result,
                "nodeSelector": {**own, **selector},
                "tolerations": tolerations.merged(spec["tolerations"], scheduling.get("tolerations") or ()),
            }
        return result


def _overhead(manifest: Manifest) -> Mapping[str, Any]:
    return mapping(manifest.body, "overhead", "podFixed")
