"""PriorityClasses of a simulated cluster, and the priority that the admission plug-in Priority gives what names one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangsched.core.objects.priority_class import PriorityClass, PriorityClasses
from gangsched.whatif.world.manifests import Manifest, ManifestError, NotAdmittedError

SYSTEM_CLASSES = {
    "system-cluster-critical": PriorityClass(2_000_000_000),
    "system-node-critical": PriorityClass(2_000_001_000),
}
"""The PriorityClasses that every cluster has."""


class Priorities:
    """The PriorityClasses that every cluster has, those that are `known` beforehand, and those that are added."""

    def __init__(self, known: PriorityClasses) -> None:
        self.classes = {**SYSTEM_CLASSES, **known}
        self._default: str | None = None

    def add(self, manifest: Manifest) -> None:
        """Add a PriorityClass. Of several global defaults the API server takes the one with the lowest value.

        Raises:
            ManifestError: it has no valid value.
        """
        value = manifest.body.get("value")
        if not isinstance(value, int) or isinstance(value, bool):
            raise ManifestError([f"{manifest}: value is {value!r}: it must be a whole number"])
        self.classes[manifest.name] = PriorityClass(value, preempts=manifest.body.get("preemptionPolicy") != "Never")
        default = self.classes[self._default].value if self._default is not None else None
        if manifest.body.get("globalDefault") is True and (default is None or value < default):
            self._default = manifest.name

    def of(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the pod's priority and preemption as they are stored.

        Raises:
            NotAdmittedError: the pod names an unknown PriorityClass.
        """
        name, value = spec.get("priorityClassName"), spec.get("priority")
        if name not in self.classes:
            if isinstance(value, int):
                return {"priority": value}
            if name:
                raise _missing(name)
            name = self._default
        fields = self._given(name)
        if name is None:
            return fields
        return {**fields, "preemptionPolicy": "PreemptLowerPriority" if self.classes[name].preempts else "Never"}

    def of_group(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the priority of a PodGroup or CompositePodGroup of Kubernetes.

        Raises:
            NotAdmittedError: it names an unknown PriorityClass, or a priority that is not that of its PriorityClass.
        """
        name, value = spec.get("priorityClassName"), spec.get("priority")
        if name and name not in self.classes:
            raise _missing(name)
        fields = self._given(name or self._default)
        if value is not None and value != fields["priority"]:
            by = f"its PriorityClass {fields['priorityClassName']} gives" if "priorityClassName" in fields else ""
            why = f"spec.priority is {value}, and {by or 'without a PriorityClass it is'} {fields['priority']}"
            raise NotAdmittedError([f"{why}: remove it"])
        return fields

    def _given(self, name: str | None) -> dict[str, Any]:
        """The fields of a priority by this PriorityClass; None: by none."""
        if name is None:
            return {"priority": 0}
        return {"priority": self.classes[name].value, "priorityClassName": name}


def _missing(name: object) -> NotAdmittedError:
    return NotAdmittedError([f"PriorityClass {name} is missing: add its manifest"])
