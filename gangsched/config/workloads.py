"""The registry of workloads: one row for each kind of controller whose pods can be gangs though they declare nothing.

The names in the configuration, the chart's values, their schema and its rights, the manifests and the table of
docs/gangs.md (`make docs`) are generated from these rows. The file in gangsched/kube/workloads with a row's `file` says
how its pods are recognised and what is read of its object. A new kind needs a row here and, unless it is like another,
a file there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gangsched.config.dialects import CustomResource


@dataclass(frozen=True, kw_only=True)
class Row:
    """One kind. `name` is its name in the configuration, `kind` in Kubernetes. `size` says, for the docs, what is the
    size of a gang; `resource` is what is listed and watched. `like` is the kind whose file reads it; empty: its own.
    `makes` is the name of the kind that it makes objects of, whose pods and size count; empty for one that makes pods.
    """

    name: str
    kind: str
    resource: CustomResource
    size: str
    like: str = ""
    makes: str = ""

    @property
    def file(self) -> str:
        """The module that reads it."""
        return self.like or self.name


def _kubeflow(name: str, kind: str) -> Row:
    return Row(
        name=name,
        kind=kind,
        resource=CustomResource(group="kubeflow.org", versions=("v1",), plural=f"{name}s"),
        size="the replicas of all types, which are its roles",
        like="kubeflow",
    )


WORKLOADS = {
    row.name: row
    for row in (
        Row(
            name="lws",
            kind="LeaderWorkerSet",
            resource=CustomResource(group="leaderworkerset.x-k8s.io", versions=("v1",), plural="leaderworkersets"),
            size="`leaderWorkerTemplate.size`; each replica is a gang",
        ),
        Row(
            name="jobset",
            kind="JobSet",
            resource=CustomResource(group="jobset.x-k8s.io", versions=("v1alpha2",), plural="jobsets"),
            size="the pods of all its Jobs; the replicated Jobs are its roles",
        ),
        Row(
            name="mpijob",
            kind="MPIJob",
            resource=CustomResource(group="kubeflow.org", versions=("v2beta1", "v1"), plural="mpijobs"),
            size="launcher and workers, which are its roles",
        ),
        _kubeflow("pytorchjob", "PyTorchJob"),
        _kubeflow("tfjob", "TFJob"),
        _kubeflow("xgboostjob", "XGBoostJob"),
        _kubeflow("paddlejob", "PaddleJob"),
        _kubeflow("jaxjob", "JAXJob"),
        Row(
            name="raycluster",
            kind="RayCluster",
            resource=CustomResource(group="ray.io", versions=("v1",), plural="rayclusters"),
            size="head and workers, whose groups are its roles; with autoscaling the least number of workers",
        ),
        Row(
            name="job",
            kind="Job",
            resource=CustomResource(group="batch", versions=("v1",), plural="jobs"),
            size="`parallelism`, at most `completions`",
        ),
        Row(
            name="statefulset",
            kind="StatefulSet",
            resource=CustomResource(group="apps", versions=("v1",), plural="statefulsets"),
            size="`replicas`",
        ),
        Row(
            name="trainjob",
            kind="TrainJob",
            resource=CustomResource(group="trainer.kubeflow.org", versions=("v1alpha1",), plural="trainjobs"),
            size="that of its JobSet",
            makes="jobset",
        ),
        Row(
            name="rayjob",
            kind="RayJob",
            resource=CustomResource(group="ray.io", versions=("v1",), plural="rayjobs"),
            size="that of its RayCluster; the pod that submits the job is on its own",
            like="trainjob",
            makes="raycluster",
        ),
        Row(
            name="cronjob",
            kind="CronJob",
            resource=CustomResource(group="batch", versions=("v1",), plural="cronjobs"),
            size="that of each of its Jobs, which are gangs of their own",
            makes="job",
        ),
    )
}
"""All kinds by name. Of those that a pod could belong to, the first counts."""

NAMES = tuple(WORKLOADS)

if TYPE_CHECKING:
    WorkloadName = str
else:
    # Literal[tuple] equals a Literal of the names. Only type checkers require them to be written out.
    WorkloadName = Literal[NAMES]
"""The type of a name in the configuration."""
