"""Random pods with volumes, each aimed at one filter of kube-scheduler, in worlds of `oracle_volumes`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.integration.judged import Json, World
from tests.integration.oracle_volumes import VolumeDice, using
from tests.integration.oracle_worlds import NAMESPACES, TOLERATES_ALL, pod


class VolumeAims(VolumeDice):
    """Pods with volumes on which one filter decides, sometimes others as well; draw a world first."""

    _claims: Sequence[tuple[Json, Json]]

    def world(self, *, nodes: int, pods: int) -> World:
        made = self.volumes_world(nodes=nodes, pods=pods)
        by_name = {each["metadata"]["name"]: each for each in made.storage if each["kind"] == "PersistentVolume"}
        claims = [each for each in made.storage if each["kind"] == "PersistentVolumeClaim"]
        self._claims = [(each, by_name.get(each["spec"].get("volumeName", ""), {})) for each in claims]
        return made

    def disks(self) -> Json:
        """Disks that the pod names itself, and claims for one pod alone."""
        if self._chance(0.2):
            return self._using(lambda claim, _: claim["spec"]["accessModes"] == ["ReadWriteOncePod"], most=1)
        volumes = [{"name": f"disk-{at}", **self._disk()} for at in range(self._one([1, 2]))]
        return pod(namespace=self._one([*NAMESPACES]), volumes=volumes, **TOLERATES_ALL)

    def attached(self) -> Json:
        return self._using(lambda _, volume: "csi" in volume["spec"], most=3)

    def bound(self) -> Json:
        if self._chance(0.2):
            return self.user()
        return self._using(lambda _, volume: "nodeAffinity" in volume["spec"], most=1)

    def zonal(self) -> Json:
        return self._using(lambda _, volume: bool(volume["metadata"]["labels"]), most=1)

    def _using(self, wanted: Callable[[Json, Json], bool], *, most: int) -> Json:
        """A pod that uses claims of one namespace that are bound to a volume and match `wanted`, if there are any."""
        namespace = self._one([*NAMESPACES])
        found = [
            claim["metadata"]["name"]
            for claim, volume in self._claims
            if claim["metadata"]["namespace"] == namespace and volume and wanted(claim, volume)
        ]
        return using(*(self._some(found, most=most) if found else ()), namespace=namespace, **TOLERATES_ALL)


VOLUME_AIMS: dict[str, tuple[str, Callable[[VolumeAims], Json]]] = {
    "disks and claims for one pod": ("VolumeRestrictions", VolumeAims.disks),
    "numbers of attached volumes": ("NodeVolumeLimits", VolumeAims.attached),
    "node affinity of volumes, claims that are not ready": ("VolumeBinding", VolumeAims.bound),
    "zones of volumes": ("VolumeZone", VolumeAims.zonal),
}
"""Like `aims.AIMS`."""
