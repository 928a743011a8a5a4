"""The registry of workloads: one row for each kind of controller whose pods can be gangs without declaring a group.

The names in the configuration, the chart's values, their schema and its rights, the manifests and the table of
docs/gangs.md (`make docs`) are generated from these rows. The module in gangsched/kube/workloads that a row's `file`
names recognises the kind's pods and reads its objects. A new kind needs a row here and, unless it is like another, a
module there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gangsched.config.dialects import CustomResource


@dataclass(frozen=True, kw_only=True)
class WorkloadRow:
    """One kind: `name` is its name in the configuration, `kind` in Kubernetes; `resource` is listed and watched.

    `size` describes the size of a gang, for the docs. `like` is the kind whose module reads it; empty if it has its
    own. `makes` is the kind of the objects that it creates, whose pods and size count; empty for a kind that creates
    pods.
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


def _kubeflow(name: str, kind: str) -> WorkloadRow:
    return WorkloadRow(
        name=name,
        kind=kind,
        resource=CustomResource(group="kubeflow.org", versions=("v1",), plural=f"{name}s"),
        size="the replicas of all types, which are its roles",
        like="kubeflow",
    )


WORKLOADS = {
    row.name: row
    for row in (
        WorkloadRow(
            name="lws",
            kind="LeaderWorkerSet",
            resource=CustomResource(group="leaderworkerset.x-k8s.io", versions=("v1",), plural="leaderworkersets"),
            size="`leaderWorkerTemplate.size`; each replica is a gang",
        ),
        WorkloadRow(
            name="jobset",
            kind="JobSet",
            resource=CustomResource(group="jobset.x-k8s.io", versions=("v1alpha2",), plural="jobsets"),
            size="the pods of all its Jobs; the replicated Jobs are its roles",
        ),
        WorkloadRow(
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
        WorkloadRow(
            name="raycluster",
            kind="RayCluster",
            resource=CustomResource(group="ray.io", versions=("v1",), plural="rayclusters"),
            size="head and workers, whose groups are its roles; with autoscaling the least number of workers",
        ),
        WorkloadRow(
            name="job",
            kind="Job",
            resource=CustomResource(group="batch", versions=("v1",), plural="jobs"),
            size="`parallelism`, at most `completions`",
        ),
        WorkloadRow(
            name="statefulset",
            kind="StatefulSet",
            resource=CustomResource(group="apps", versions=("v1",), plural="statefulsets"),
            size="`replicas`",
        ),
        WorkloadRow(
            name="trainjob",
            kind="TrainJob",
            resource=CustomResource(group="trainer.kubeflow.org", versions=("v1alpha1",), plural="trainjobs"),
            size="that of its JobSet",
            makes="jobset",
        ),
        WorkloadRow(
            name="rayjob",
            kind="RayJob",
            resource=CustomResource(group="ray.io", versions=("v1",), plural="rayjobs"),
            size="that of its RayCluster; the pod that submits the job is on its own",
            like="trainjob",
            makes="raycluster",
        ),
        WorkloadRow(
            name="rayservice",
            kind="RayService",
            resource=CustomResource(group="ray.io", versions=("v1",), plural="rayservices"),
            size="that of each of its RayClusters, which are gangs of their own",
            like="cronjob",
            makes="raycluster",
        ),
        WorkloadRow(
            name="disaggregatedset",
            kind="DisaggregatedSet",
            resource=CustomResource(group="disaggregatedset.x-k8s.io", versions=("v1",), plural="disaggregatedsets"),
            size="that of its LeaderWorkerSets: each replica of each role is a gang",
            like="cronjob",
            makes="lws",
        ),
        WorkloadRow(
            name="cronjob",
            kind="CronJob",
            resource=CustomResource(group="batch", versions=("v1",), plural="cronjobs"),
            size="that of each of its Jobs, which are gangs of their own",
            makes="job",
        ),
    )
}
"""All kinds by name. If a pod could belong to several, the first one counts."""

NAMES = tuple(WORKLOADS)

if TYPE_CHECKING:
    WorkloadName = str
else:
    # Literal[tuple] equals a Literal of the names. Only type checkers require them to be written out.
    WorkloadName = Literal[NAMES]
"""The type of a name in the configuration."""
