"""What the webhooks of JobSet and LeaderWorkerSet change in pods: the rules of exclusive placement.

The sources are pkg/webhooks/pod_webhook.go of JobSet v0.12.0 and of LWS v0.9.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gangsched.whatif.world.label_keys import REQUIRED
from gangsched.whatif.world.manifests import mapping, mappings

JOB_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_SET_TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
JOB_SET_BY_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
LWS_TOPOLOGY = "leaderworkerset.sigs.k8s.io/exclusive-topology"
LWS_SUBGROUP_TOPOLOGY = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"

_JOB_SET_NAME = "jobset.sigs.k8s.io/jobset-name"
_JOB_SET_PRIORITY = "jobset.sigs.k8s.io/priority"
_JOB_KEY = "jobset.sigs.k8s.io/job-key"
_LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
_LWS_WORKER = "leaderworkerset.sigs.k8s.io/worker-index"
_LWS_GROUP, _LWS_SUBGROUP = (f"leaderworkerset.sigs.k8s.io/{part}-key" for part in ("group", "subgroup"))

Part = Mapping[str, Any]


def hooked(pod: Part) -> Part:
    """The pod, with its priority, as the webhooks change it."""
    labels, annotations = (mapping(pod["metadata"], field) for field in ("labels", "annotations"))
    if _JOB_SET_NAME in labels and JOB_SET_BY_SELECTOR not in annotations:
        return _of_job_set(pod, labels, annotations)
    if _LWS_NAME not in labels:
        return pod
    spec = pod["spec"]
    if LWS_TOPOLOGY in annotations and labels.get(_LWS_WORKER) == "0":
        spec = _alone_in_group(spec, _LWS_GROUP, labels, annotations[LWS_TOPOLOGY])
    if LWS_SUBGROUP_TOPOLOGY in annotations and _LWS_SUBGROUP in labels:
        spec = _alone_in_group(spec, _LWS_SUBGROUP, labels, annotations[LWS_SUBGROUP_TOPOLOGY])
    return {**pod, "spec": spec}


def follows_a_leader(annotations: Part) -> bool:
    """Whether each pod of such a Job but the first is created only once that one has a node, and follows it."""
    return JOB_SET_TOPOLOGY in annotations and JOB_SET_BY_SELECTOR not in annotations


def _of_job_set(pod: Part, labels: Part, annotations: Part) -> Part:
    """The pod of a JobSet. Where its Job has a domain of its own, the first one gets terms, the others a selector."""
    priority = str(pod["spec"]["priority"])
    labelled = {**pod, "metadata": {**pod["metadata"], "labels": {**labels, _JOB_SET_PRIORITY: priority}}}
    if not follows_a_leader(annotations) or annotations.get(JOB_INDEX) != "0":
        return labelled
    same = {"key": _JOB_SET_PRIORITY, "operator": "In", "values": [priority]}
    key = str(labels.get(_JOB_KEY, ""))
    spec = _alone(pod["spec"], _JOB_KEY, key, annotations[JOB_SET_TOPOLOGY], [same], {"namespaceSelector": {}})
    return {**labelled, "spec": spec}


def _alone_in_group(spec: Part, label: str, labels: Part, topology: str) -> Part:
    """As LWS does it: unless the pod has terms for that topology already."""
    both = [mapping(spec, "affinity", kind) for kind in ("podAffinity", "podAntiAffinity")]
    if all(any(term.get("topologyKey") == topology for term in mappings(side.get(REQUIRED))) for side in both):
        return spec
    return _alone(spec, label, str(labels.get(label, "")), topology)


def _alone(
    spec: Part, label: str, value: str, topology: str, of_others: Sequence[Part] = (), namespaces: Part | None = None
) -> Part:
    """The spec, that demands a domain with the pods of this label's value and without those of other values."""
    others = [{"key": label, "operator": "Exists"}, {"key": label, "operator": "NotIn", "values": [value]}, *of_others]
    terms = {
        "podAffinity": [{"key": label, "operator": "In", "values": [value]}],
        "podAntiAffinity": others,
    }
    affinity = dict(mapping(spec.get("affinity")))
    for kind, expressions in terms.items():
        own = mapping(affinity.get(kind))
        term = {"topologyKey": topology, "labelSelector": {"matchExpressions": expressions}, **(namespaces or {})}
        affinity[kind] = {**own, REQUIRED: [*mappings(own.get(REQUIRED)), term]}
    return {**spec, "affinity": affinity}
