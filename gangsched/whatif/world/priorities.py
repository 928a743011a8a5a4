"""PriorityClasses of a simulated cluster, and the priority that the admission plug-in Priority gives what names one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangsched.whatif.world.manifests import Manifest, ManifestError

SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The PriorityClasses that every cluster has."""


class Priorities:
    """The PriorityClasses that every cluster has, those that are `known` beforehand, and those that are added."""

    def __init__(self, classes: Mapping[str, int]) -> None:
        self.values = {**SYSTEM_PRIORITIES, **classes}
        self._default: tuple[int, str] | None = None

    def add(self, manifest: Manifest) -> None:
        """Add a PriorityClass. Of several global defaults the API server takes the one with the lowest value.

        Raises:
            ManifestError: it has no valid value.
        """
        value = manifest.body.get("value")
        if not isinstance(value, int) or isinstance(value, bool):
            raise ManifestError([f"{manifest}: value is {value!r}: it must be a whole number"])
        self.values[manifest.name] = value
        if manifest.body.get("globalDefault") is True and (self._default is None or value < self._default[0]):
            self._default = value, manifest.name

    def of(self, spec: Mapping[str, Any], title: str) -> dict[str, Any]:
        """The fields `priority` and `priorityClassName` of the pod as it is stored; `title` names it in messages.

        Raises:
            ManifestError: the pod names an unknown PriorityClass.
        """
        name, value = spec.get("priorityClassName"), spec.get("priority")
        if name in self.values:
            return {"priority": self.values[name]}
        if isinstance(value, int):
            return {"priority": value}
        if name:
            raise _missing(name, title)
        return self._usual()

    def of_group(self, spec: Mapping[str, Any], title: str) -> dict[str, Any]:
        """The same of a PodGroup or CompositePodGroup of Kubernetes, which `title` names in messages.

        Raises:
            ManifestError: it names an unknown PriorityClass, or a priority that is not that of its PriorityClass.
        """
        name, value = spec.get("priorityClassName"), spec.get("priority")
        if name and name not in self.values:
            raise _missing(name, title)
        fields = {"priority": self.values[name], "priorityClassName": name} if name else self._usual()
        if value is not None and value != fields["priority"]:
            by = f"its PriorityClass {fields['priorityClassName']} gives" if "priorityClassName" in fields else ""
            why = f"spec.priority is {value}, and {by or 'without a PriorityClass it is'} {fields['priority']}"
            raise ManifestError([f"{title}: the API server would refuse it, because {why}: remove it"])
        return fields

    def _usual(self) -> dict[str, Any]:
        """The fields without a PriorityClass: those of the default one, if there is one."""
        if self._default is None:
            return {"priority": 0}
        return {"priority": self._default[0], "priorityClassName": self._default[1]}


def _missing(name: object, title: str) -> ManifestError:
    return ManifestError(
        [f"{title}: the API server would refuse it, because PriorityClass {name} is missing: add its manifest"]
    )
