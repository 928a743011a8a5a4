"""What in the files may make a cluster decide otherwise than the simulation, because the simulation cannot apply it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from gangsched.core.objects.pod import Pod
from gangsched.whatif.world.contents import NAME_LABEL, World
from gangsched.whatif.world.manifests import Manifest, group_of, mapping, mappings
from gangsched.whatif.world.quotas import unapplied

_REGISTRATION = "admissionregistration.k8s.io"
_WEBHOOKS, _POLICY = "MutatingWebhookConfiguration", "MutatingAdmissionPolicy"
_APPLIED = ("jobset-mutating-webhook-configuration", "lws-mutating-webhook-configuration")
"""The webhooks of JobSet and LeaderWorkerSet, whose changes are applied (hooks.py)."""
_OF_NAMESPACES = {
    "scheduler.alpha.kubernetes.io/node-selector": "PodNodeSelector",
    "scheduler.alpha.kubernetes.io/defaultTolerations": "PodTolerationRestriction",
}
"""Annotations of a namespace that change its pods if that admission plug-in, which is off by default, is on."""
_SIDECARS = {"istio-injection": ("enabled",), "istio.io/rev": None, "linkerd.io/inject": ("enabled", "ingress")}
"""Labels and annotations of a namespace that have a webhook add sidecars to its pods, with their values; None: any."""
_INERT = (("v1", "PodTemplate"), ("apps/v1", "ControllerRevision"))
"""Objects with pod templates from which no pods are created."""
_RAY = "ray.io"
_RAY_LABELS = ("ray.io/gang-scheduling-enabled", "ray.io/scheduler-name", "ray.io/priority-class-name")
_JOB_SET = ("jobset.x-k8s.io", "JobSet")
_MINIMUM = "scheduling.volcano.sh/group-min-member"
_DEEPEST = 12


def doubts(
    manifests: Sequence[Manifest],
    others: Sequence[Manifest],
    world: World,
    *,
    supported: Collection[tuple[str, str]],
    creating: Collection[str],
) -> list[str]:
    """A sentence for each such thing, in the `manifests` of `supported` kinds, the `others`, and the world.

    What only changes or refuses new pods counts in the namespaces that are `creating` some.
    """
    spaces = {manifest.name for manifest in manifests if manifest.kind == "Namespace"}
    kinds = {(group_of(version), kind) for version, kind in supported}
    return [
        *(doubt for manifest in others for doubt in _of_other(manifest, kinds)),
        *(doubt for manifest in manifests if manifest.name in creating for doubt in _of_namespace(manifest)),
        *(doubt for manifest in manifests if manifest.namespace in creating for doubt in _of_quota(manifest)),
        *(doubt for manifest in manifests for doubt in _of_budget(manifest)),
        *_of_selectors(world, spaces),
    ]


def unused(manifest: Manifest) -> Iterator[str]:
    """The declarations of gangs for other operators in this object, each with the object.

    Such an operator turns them into objects of its own, such as a PodGroup, when it creates the pods. None runs here,
    and the controllers that are simulated here do not do it either.
    """
    whose = f"of {manifest.kind} {manifest.namespace}/{manifest.name}"
    if manifest.group == _RAY:
        yield from (f"the label {name} {whose}" for name in _RAY_LABELS if name in manifest.labels)
    if (manifest.group, manifest.kind) == _JOB_SET and manifest.spec.get("gangPolicy"):
        yield f"spec.gangPolicy {whose}"
    # On a pod itself it is read.
    if manifest.kind != "Pod" and _MINIMUM in manifest.annotations:
        yield f"the annotation {_MINIMUM} {whose}"


def _of_other(manifest: Manifest, kinds: Collection[tuple[str, str]]) -> Iterator[str]:
    if manifest.kind in (_WEBHOOKS, _POLICY) and manifest.group == _REGISTRATION:
        if manifest.name not in _APPLIED and _concerns_pods(manifest):
            yield f"{manifest} may change pods when they are created, which is not applied here: change their manifests"
    elif manifest.gvk not in _INERT and _has_containers(manifest.spec):
        yield f"{manifest}: the pods that its controller creates are not known here: add the manifests of its pods"
    elif (manifest.group, manifest.kind) in kinds:
        yield f"{manifest}: is not read in version {manifest.api_version}: write it in a version that the help names"


def _concerns_pods(manifest: Manifest) -> bool:
    rules = [rule for hook in mappings(manifest.body.get("webhooks")) for rule in mappings(hook.get("rules"))]
    rules += mappings(mapping(manifest.spec.get("matchConstraints")).get("resourceRules"))
    return any({"pods", "*", "*/*"} & set(map(str, rule.get("resources") or ())) for rule in rules)


def _has_containers(value: object, depth: int = 0) -> bool:
    """Whether the object describes containers anywhere, which its controller probably runs in pods."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, Mapping):
        if isinstance(value.get("image"), str) or mappings(value.get("containers")):
            return True
        return any(_has_containers(child, depth + 1) for child in value.values())
    return isinstance(value, list) and any(_has_containers(child, depth + 1) for child in value)


def _of_quota(manifest: Manifest) -> Iterator[str]:
    return unapplied(manifest) if manifest.kind == "ResourceQuota" else iter(())


def _of_budget(manifest: Manifest) -> Iterator[str]:
    if manifest.kind == "PodDisruptionBudget" and "disruptionsAllowed" not in manifest.status:
        yield (
            f"{manifest} has no status.disruptionsAllowed, so that it allows no eviction here: take it from a snapshot "
            "of the cluster, or write how many evictions it allows"
        )


def _of_namespace(manifest: Manifest) -> Iterator[str]:
    if manifest.kind != "Namespace":
        return
    for key, plugin in _OF_NAMESPACES.items():
        if key in manifest.annotations:
            yield (
                f"{manifest} has the annotation {key}, which changes its pods if the API server runs the admission "
                f"plug-in {plugin}: write the same into the pods"
            )
    marks = {**manifest.labels, **manifest.annotations}
    for key, values in _SIDECARS.items():
        if key in marks and (values is None or marks[key] in values):
            yield f"{manifest} has {key}, by which a webhook adds sidecars to its pods: write these into the pods"


def _of_selectors(world: World, spaces: Collection[str]) -> Iterator[str]:
    """Namespaces whose labels a pod's terms ask for, though the files do not say them."""
    unknown = sorted(world.namespaces.keys() - spaces)
    pods = {
        id(pod.shape): pod
        for pod in [*world.pods, *(follower for group in world.successors.values() for follower in group)]
    }
    asking = next((pod for pod in pods.values() if _asks_for_labels(pod)), None)
    if unknown and asking is not None:
        yield (
            f"pod {asking.namespace}/{asking.name} selects other pods by labels of their namespaces, and the files do "
            f"not contain the namespace {unknown[0]}: add its manifest"
        )


def _asks_for_labels(pod: Pod) -> bool:
    terms = (*pod.shape.affinity, *pod.shape.anti_affinity)
    return any(requirement.key != NAME_LABEL for term in terms for requirement in term.namespace_selector or ())
