"""RayClusters: head and workers are one gang, whose roles are the head and the groups of workers.

The minimum is the one that KubeRay itself uses for gangs: the wanted workers, or with autoscaling their minimum number,
so that workers that the autoscaler adds are bound one by one.
"""

from __future__ import annotations

from msgspec import Struct

from gangsched.config.workloads import Row
from gangsched.kube import wire
from gangsched.kube.workloads.kind import Desired, Kind, Mark, Marks

_OWNER = ("ray.io", "RayCluster")
_GROUP = "ray.io/group"
_HEAD = "headgroup"


class _Workers(Struct, gc=False, rename="camel"):
    group_name: str = ""
    replicas: int | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    num_of_hosts: int | None = None
    suspend: bool | None = None

    def number(self, *, autoscaled: bool) -> int:
        """The number of these workers in the gang's minimum."""
        if self.suspend:
            return 0
        least = self.min_replicas or 0
        wanted = least if autoscaled else max(self.replicas or 0, least)
        if self.max_replicas is not None:
            wanted = min(wanted, self.max_replicas)
        return wanted * (1 if self.num_of_hosts is None else self.num_of_hosts)


class _Spec(Struct, gc=False, rename="camel"):
    enable_in_tree_autoscaling: bool | None = None
    worker_group_specs: list[_Workers] | None = None
    suspend: bool | None = None


class _Cluster(Struct, gc=False):
    metadata: wire.Meta
    spec: _Spec | None = None


def _mark(marks: Marks) -> Mark:
    return Mark(marks.owner.name, marks.owner.uid, role=marks.labels.get(_GROUP, ""))


def _desired(found: _Cluster) -> Desired:
    spec = found.spec or _Spec()
    autoscaled = bool(spec.enable_in_tree_autoscaling)
    roles = {each.group_name: each.number(autoscaled=autoscaled) for each in spec.worker_group_specs or ()}
    size = 1 + sum(roles.values())
    return Desired(size=size, pods=size, roles={_HEAD: 1, **roles}, idle="is suspended" if spec.suspend else "")


def kind(row: Row) -> Kind[_Cluster]:
    return Kind(row=row, controllers=(_OWNER,), mark=_mark, form=_Cluster, desired=_desired)
