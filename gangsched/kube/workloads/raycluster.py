"""RayClusters: head and workers are one gang, whose roles are the head and the groups of workers.

The minimum is the one that KubeRay itself uses for gangs: the wanted workers, or with autoscaling their minimum number,
so that workers that the autoscaler adds are bound one by one.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from gangsched.config.workload_registry import WorkloadRow
from gangsched.kube.workloads.workload_fields import means
from gangsched.kube.workloads.workload_kind import Desired, Kind, Mark, Marks, Object

_OWNER = ("ray.io", "RayCluster")
_GROUP = "ray.io/group"
_HEAD = "headgroup"


class _Workers(Struct, gc=False, rename="camel"):
    group_name: Annotated[str, means("the role of these workers")] = ""
    replicas: Annotated[int | None, means("the minimum of the role, unless the cluster is scaled automatically")] = None
    min_replicas: Annotated[
        int | None, means("the minimum of a cluster that is scaled automatically; otherwise the least `replicas`")
    ] = None
    max_replicas: Annotated[int | None, means("the most `replicas` that count")] = None
    num_of_hosts: Annotated[int | None, means("the number of pods of each replica")] = None
    suspend: Annotated[bool | None, means("none of these workers is wanted")] = None

    def number(self, *, autoscaled: bool) -> int:
        """The number of these workers in the gang's minimum."""
        if self.suspend:
            return 0
        least = self.min_replicas or 0
        replicas = least if autoscaled else max(self.replicas or 0, least)
        if self.max_replicas is not None:
            replicas = min(replicas, self.max_replicas)
        return replicas * (1 if self.num_of_hosts is None else self.num_of_hosts)


class _RayClusterSpec(Struct, gc=False, rename="camel"):
    enable_in_tree_autoscaling: Annotated[
        bool | None, means("the minimum is `minReplicas`, and further workers are bound one by one")
    ] = None
    worker_group_specs: list[_Workers] | None = None
    suspend: Annotated[bool | None, means("no pods are wanted")] = None


class _Cluster(Object, gc=False):
    spec: _RayClusterSpec | None = None


def _mark(marks: Marks) -> Mark:
    return Mark(marks.owner.name, marks.owner.uid, role=marks.labels.get(_GROUP, ""))


def _desired(cluster: _Cluster) -> Desired:
    spec = cluster.spec or _RayClusterSpec()
    autoscaled = bool(spec.enable_in_tree_autoscaling)
    roles = {group.group_name: group.number(autoscaled=autoscaled) for group in spec.worker_group_specs or ()}
    size = 1 + sum(roles.values())
    return Desired(size=size, pods=size, roles={_HEAD: 1, **roles}, idle="is suspended" if spec.suspend else "")


def kind(row: WorkloadRow) -> Kind[_Cluster]:
    return Kind(row=row, controllers=(_OWNER,), mark=_mark, form=_Cluster, desired=_desired)
