"""The pods of a simulated cluster: those in the files, and those that controllers create, as they are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from gangsched.core.objects.pod import Pod
from gangsched.kube import wire
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.reading.pod_values import decode_pod, pod_value
from gangsched.kube.workloads.workload_table import Workloads
from gangsched.whatif.world import consistency
from gangsched.whatif.world.contents import World
from gangsched.whatif.world.made import MadePod
from gangsched.whatif.world.manifests import Manifest, ManifestError, NotAdmittedError, admitted_as, mapping
from gangsched.whatif.world.offered import Offered
from gangsched.whatif.world.pod_admission import Admission
from gangsched.whatif.world.stored import Stored

Value = TypeVar("Value")


class Pods:
    """Adds pods to the world, with the claims that are created for them, as far as the API server admits them."""

    def __init__(self, world: World, kinds: Workloads, admission: Admission, stored: Stored, offered: Offered) -> None:
        self._world = world
        self._kinds = kinds
        self._admission = admission
        self._stored = stored
        self._offered = offered

    def add(self, manifest: Manifest, metadata: Mapping[str, Any]) -> None:
        """Add the pod of a manifest, with this metadata. One with a UID, which only the API server gives, was stored.

        Raises:
            ManifestError: the API server would refuse it.
        """
        body, title = {**manifest.body, "metadata": metadata}, str(manifest)
        if manifest.metadata.get("uid"):
            with admitted_as(manifest):
                spec = self._admission.stored(manifest.spec, title)
            self._world.pods.append(self._read({**body, "spec": spec}, manifest))
            return
        with admitted_as(manifest):
            consistency.check_labels(body)
            spec = self._admission.spec(manifest.namespace, manifest.spec, title)
        if why := self._admission.quotas.refusal(manifest.namespace, spec):
            self._world.refused.append(f"{manifest}: the pod is not created, because {why}")
        else:
            self._world.pods.append(self._read(self._admission.created({**body, "spec": spec}), manifest))

    def add_made(self, workload: Manifest, made_pods: Sequence[MadePod], stamp: str) -> None:
        """Add the pods that the controller of this workload creates, with this creation time.

        Raises:
            ManifestError: the API server would refuse the workload.
        """
        with admitted_as(workload):
            consistency.check_labels(workload.body)
        admitted: dict[int, tuple[Mapping[str, Any], str]] = {}
        uids: dict[str, str] = {}
        refused: dict[str, str] = {}
        for made_pod in made_pods:
            template = id(made_pod.template)
            if template not in admitted:
                admitted[template] = self._of_template(workload, made_pod.template)
            spec, why = admitted[template]
            spec = {**spec, "volumes": made_pod.volumes}
            if why := refused.get(made_pod.after) or why or self._refusal(workload, made_pod, spec):
                refused[made_pod.name] = why
                continue
            self._add_claims(workload, made_pod)
            body = {"metadata": _metadata(workload, made_pod, stamp), "spec": spec}
            pod = self._read(self._admission.created(body), workload)
            if made_pod.after in uids:
                self._world.successors.setdefault(uids[made_pod.after], []).append(pod)
                if made_pod.follows:
                    self._world.follows[pod.uid] = made_pod.follows
            else:
                self._world.pods.append(pod)
            uids[made_pod.name] = pod.uid
        if refused:
            why = next(iter(refused.values()))
            clause = f"{len(refused)} of its {len(made_pods)} pods are not created"
            self._world.refused.append(f"{workload}: {clause}, because {why}")

    def _of_template(self, workload: Manifest, template: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
        """The spec of the pods of the workload's template as it is admitted, or why it is not."""
        title = str(workload)
        with admitted_as(workload):
            self._admission.check_template(template, title)
        try:
            return self._admission.spec(workload.namespace, template, title), ""
        except NotAdmittedError as error:
            return {}, str(error)

    def _refusal(self, workload: Manifest, pod: MadePod, spec: Mapping[str, Any]) -> str:
        """Why the pod with this spec, or a claim of it, is not admitted; empty if they are, which are then counted."""
        try:
            for claim in pod.claims.values():
                self._admission.limits.check_claim(workload.namespace, mapping(claim.get("spec")))
        except NotAdmittedError as error:
            return str(error)
        return self._admission.quotas.refusal(workload.namespace, spec)

    def _add_claims(self, workload: Manifest, pod: MadePod) -> None:
        for name, claim in pod.claims.items():
            named = {**claim, "metadata": {"name": name}}
            accepted(workload, self._stored.add_claim, workload.namespace, named)

    def _read(self, body: Mapping[str, Any], manifest: Manifest) -> Pod:
        accepted(manifest, self._stored.add_claims_of, body)
        pod = decoded(decode_pod, accepted(manifest, self._offered.with_claims, body), manifest)
        if isinstance(pod, wire.UnreadablePod):
            raise ManifestError([f"{manifest}: the API server would refuse it: {pod.why}"])
        return pod_value(pod, DEFAULT, self._kinds)


def _metadata(workload: Manifest, pod: MadePod, stamp: str) -> Mapping[str, Any]:
    return {
        "name": pod.name,
        "namespace": workload.namespace,
        "uid": f"Pod/{workload.namespace}/{pod.name}",
        "creationTimestamp": stamp,
        "labels": pod.labels,
        "annotations": pod.annotations,
        "ownerReferences": [pod.owner],
    }


def accepted(manifest: Manifest, convert: Callable[..., Value], *arguments: object) -> Value:
    """What `convert` returns for these arguments.

    Raises:
        ManifestError: it cannot read them.
    """
    try:
        return convert(*arguments)
    except msgspec.MsgspecError as error:
        raise ManifestError([f"{manifest}: the API server would refuse it: {error}"]) from None


def decoded(decode: Callable[[bytes], Value], body: Mapping[str, Any], manifest: Manifest) -> Value:
    """The object that this body encodes. Raises the same error as `accepted`."""
    try:
        return decode(msgspec.json.encode(body))
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise ManifestError([f"{manifest}: the API server would refuse it: {error}"]) from None
