"""Random pods with ResourceClaims, aimed at the filter DynamicResources, in worlds of `device_dice`."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.device_dice import DeviceDice
from tests.integration.judged import Json, World
from tests.integration.oracle_devices import using
from tests.integration.oracle_worlds import TOLERATES_ALL


class DeviceAims(DeviceDice):
    """Pods that use claims; draw a world first. Several pods use one claim, so that it is shared."""

    def world(self, *, nodes: int, pods: int) -> World:
        return self.devices_world(nodes=nodes, pods=pods)

    def selected(self) -> Json:
        return self._user("selected", *(["selected"] if self._chance(0.3) else []))

    def everything(self) -> Json:
        return self._user("all")

    def matched(self) -> Json:
        return self._user("matched")

    def alternatives(self) -> Json:
        return self._user("alternatives")

    def tainted(self) -> Json:
        return self._user("tainted")

    def partitions(self) -> Json:
        return self._user("partitions", *self._some(["partitions", "selected"], most=1, none=0.6))

    def shares(self) -> Json:
        return self._user("shares", *self._some(["shares", "partitions"], most=1, none=0.6))

    def distinct(self) -> Json:
        return self._user("distinct")

    def conditions(self) -> Json:
        """Devices that wait for conditions, or claims that have such devices already."""
        return self._user(self._one(["conditions", "waiting"]))

    def admin(self) -> Json:
        return self._user("admin", *self._some(["selected", "admin"], most=1, none=0.5))

    def resources(self) -> Json:
        """Extended resources that no node lists; sometimes a claim as well."""
        made = self._asking_for_resources()
        if self._chance(0.2):
            made["spec"] |= self._user("selected")["spec"] | {"containers": made["spec"]["containers"]}
        return made

    def allocated(self) -> Json:
        """An allocated claim, sometimes with others beside it; or one that cannot be used at all."""
        if self._chance(0.25):
            unready = [*self._names["unready"], "missing"]
            made = self._chance(0.3)
            return using(self._one(self._names["selected"] if made else unready), made=made, **TOLERATES_ALL)
        return self._user("allocated", *self._some(["allocated", "selected"], most=1, none=0.6))


DEVICE_AIMS: dict[str, tuple[str, Callable[[DeviceAims], Json]]] = {
    "device selectors and counts": ("DynamicResources", DeviceAims.selected),
    "all devices that match": ("DynamicResources", DeviceAims.everything),
    "devices with one value of an attribute": ("DynamicResources", DeviceAims.matched),
    "alternative devices": ("DynamicResources", DeviceAims.alternatives),
    "partitions of devices": ("DynamicResources", DeviceAims.partitions),
    "shares of devices": ("DynamicResources", DeviceAims.shares),
    "devices with distinct values of an attribute": ("DynamicResources", DeviceAims.distinct),
    "devices that wait for conditions": ("DynamicResources", DeviceAims.conditions),
    "taints of devices": ("DynamicResources", DeviceAims.tainted),
    "devices for admin access": ("DynamicResources", DeviceAims.admin),
    "resources of DeviceClasses": ("DynamicResources", DeviceAims.resources),
    "claims that have devices, claims that are not ready": ("DynamicResources", DeviceAims.allocated),
}
"""Like `aims.AIMS`."""
