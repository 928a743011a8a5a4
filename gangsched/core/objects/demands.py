"""Demand objects, which ask palantir's autoscaler for nodes."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from gangsched.core.objects.shape import Amounts


class DemandKey(NamedTuple):
    """Names a Demand object in the cluster."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class DemandUnit(Struct, frozen=True, gc=False):
    """A number of members with equal `requests`; `pods` are the names of those that exist, sorted."""

    count: int
    requests: Amounts
    pods: tuple[str, ...] = ()


class PoolDemand(Struct, frozen=True, gc=False, kw_only=True):
    """The capacity that one instance group must add: all in one zone if `single_zone`, in `zone` if not empty."""

    instance_group: str
    units: tuple[DemandUnit, ...]
    single_zone: bool = False
    zone: str = ""


class DemandObject(Struct, frozen=True, gc=False):
    """A Demand object, owned by the pod `owner` and deleted with it."""

    key: DemandKey
    owner: str
    owner_uid: str
    pool: PoolDemand


class SeenDemand(Struct, frozen=True, gc=False):
    """A Demand object of ours as it is observed in the cluster."""

    uid: str
    demand: DemandObject
