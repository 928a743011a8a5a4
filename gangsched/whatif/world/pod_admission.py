"""What the API server does to a pod that is created, as far as scheduling depends on it.

The order is that of the admission plug-ins, then the webhooks, then the pod's strategy. Pods that the API server has
admitted before, which only it gives a UID, are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gangsched.core.objects.priority_class import PriorityClasses
from gangsched.kube.client.resource import Resource
from gangsched.kube.workloads import template_admission
from gangsched.whatif.world import consistency, hooks, label_keys, tolerations
from gangsched.whatif.world.defaults import Spec, defaulted_pod_spec, with_pod_level
from gangsched.whatif.world.limit_ranges import LimitRanges
from gangsched.whatif.world.manifests import Manifest
from gangsched.whatif.world.priorities import Priorities
from gangsched.whatif.world.quotas import Quotas
from gangsched.whatif.world.runtime_classes import RuntimeClasses

PRIORITY_CLASS, RUNTIME_CLASS = ("scheduling.k8s.io/v1", "PriorityClass"), ("node.k8s.io/v1", "RuntimeClass")
LIMIT_RANGE, RESOURCE_QUOTA = ("v1", "LimitRange"), ("v1", "ResourceQuota")
CLUSTER_WIDE = (PRIORITY_CLASS, RUNTIME_CLASS)


class Admission:
    """The objects by which the API server admits pods; `adders` are the functions that add them, by kind.

    `of_templates` is what they add to pods that the operator knows by their templates alone.
    """

    def __init__(self, priority_classes: PriorityClasses) -> None:
        self.priorities = Priorities(priority_classes)
        self.limits = LimitRanges()
        self.quotas = Quotas()
        self._later = template_admission.Admission()
        self.of_templates = self._later.reader()
        self._runtimes = RuntimeClasses()
        self.adders: Mapping[tuple[str, str], Callable[[Manifest], None]] = {
            PRIORITY_CLASS: self.priorities.add,
            RUNTIME_CLASS: self._add_runtime_class,
            LIMIT_RANGE: self._add_limit_range,
            RESOURCE_QUOTA: self.quotas.add,
        }

    def _add_runtime_class(self, manifest: Manifest) -> None:
        self._runtimes.add(manifest)
        self._note(template_admission.RUNTIME_CLASSES, {**manifest.body, "metadata": {"name": manifest.name}})

    def _add_limit_range(self, manifest: Manifest) -> None:
        self.limits.add(manifest)
        metadata = {"namespace": manifest.namespace, "name": manifest.name}
        self._note(template_admission.LIMIT_RANGES, {**manifest.body, "metadata": metadata})

    def _note(self, resource: Resource[Any], body: Mapping[str, Any]) -> None:
        _, value = resource.read(msgspec.Raw(msgspec.json.encode(body)))
        self._later.take([resource.seen(value)])

    def spec(self, namespace: str, pod_spec: Mapping[str, Any], title: str) -> Spec:
        """The spec of a pod, or of a template, after the plug-ins; `title` names it in messages.

        Raises:
            ManifestError: it is unreadable.
            NotAdmittedError: the API server would refuse it.
        """
        written = defaulted_pod_spec(pod_spec, title)
        spec = self.limits.apply(namespace, written)
        spec = {**spec, **self.priorities.of(spec)}
        spec["tolerations"] = tolerations.with_defaults(spec["tolerations"])
        spec = with_pod_level(self._runtimes.apply(spec))
        consistency.check(spec, written, self.limits.givers(namespace))
        self.limits.check(namespace, spec)
        return spec

    @staticmethod
    def check_template(pod_spec: Mapping[str, Any], title: str) -> None:
        """Refuse a template of a workload, which nothing is added to before. Raises the same errors as `spec`."""
        written = with_pod_level(defaulted_pod_spec(pod_spec, title))
        consistency.check(written, written)

    def stored(self, pod_spec: Mapping[str, Any], title: str) -> Spec:
        """The spec of a pod that was admitted before. Raises the same errors as `spec`."""
        spec = with_pod_level(defaulted_pod_spec(pod_spec, title))
        return {
            **spec,
            **self.priorities.of(spec),
            "tolerations": tolerations.with_defaults(spec["tolerations"]),
        }

    @staticmethod
    def created(pod: Mapping[str, Any]) -> Mapping[str, Any]:
        """A pod with such a spec after the webhooks, as it is stored."""
        changed = hooks.hooked(pod)
        return {**changed, "spec": label_keys.merged(changed["spec"], changed["metadata"].get("labels") or {})}
