"""Storage objects and pods that use them, for the oracle: concise builders, and random objects from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.integration.judged import Json, Standing, World
from tests.integration.oracle_worlds import HOST, NAMESPACES, TOLERATES_ALL, ZONE, Dice, node, on, pod, wants

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
DRIVERS = ["a.csi.example.com", "b.csi.example.com", "pd.csi.storage.gke.io", "ebs.csi.aws.com"]
CLASSES = {"at-once": "Immediate", "later": "WaitForFirstConsumer"}
_TERMS = [
    (),
    (f"{ZONE} In a",),
    (f"{ZONE} In b", "pool Exists"),
    (f"{HOST} In n1 n2 n3",),
    ("pool DoesNotExist",),
    ("metadata.name In n1",),
    ("metadata.name NotIn n1",),
    (f"{HOST} NotIn n1", "metadata.name NotIn n2"),
]


SELECTED = "volume.kubernetes.io/selected-node"
STATIC = "kubernetes.io/no-provisioner"


def storage_class(name: str, mode: str, driver: str = DRIVERS[0], *, zones: Sequence[Sequence[str]] = ()) -> Json:
    """A storage class. `zones` restricts provisioning: each is a term, whose values are alternatives."""
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": [*values]}]} for values in zones]
    made: Json = {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": driver, "volumeBindingMode": mode}
    return made | ({"allowedTopologies": topologies} if topologies else {})


def csi_driver(name: str, *, capacity: bool | None = True, demanding: bool | None = None) -> Json:
    """A driver that publishes storage capacity, or does not, and that demands to be on a pod's node, or does not."""
    spec = {} if capacity is None else {"storageCapacity": capacity}
    spec |= {} if demanding is None else {"preventPodSchedulingIfMissing": demanding}
    return {"kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}


def capacity(name: str, storage: str, size: str | None, *selector: str, largest: str | None = None) -> Json:
    """Storage capacity for this class on nodes with these labels (`key value value`); everywhere if none are given."""
    words = [each.split() for each in selector]
    labels = [
        {"key": key, "operator": "In", "values": values} if values else {"key": key.lstrip("!"), "operator": _is(key)}
        for key, *values in words
    ]
    made: Json = {"kind": "CSIStorageCapacity", "metadata": {"name": name, "namespace": "red"}}
    made |= {"storageClassName": storage, "nodeTopology": {"matchExpressions": labels} if labels else {}}
    return made | ({"capacity": size} if size else {}) | ({"maximumVolumeSize": largest} if largest else {})


def _is(key: str) -> str:
    return "DoesNotExist" if key.startswith("!") else "Exists"


def unclaimed(name: str, *terms: Any, size: str = "1Gi", phase: str = "Available", **spec: Any) -> Json:
    """A volume that no claim is bound to."""
    source = {"csi": {"driver": DRIVERS[0], "volumeHandle": name}}
    asked = {"storageClassName": "static", "capacity": {"storage": size}, "volumeMode": "Filesystem"} | spec
    labels = asked.pop("labels", {})
    return volume(name, *terms, labels=labels, **source, **asked) | {"status": {"phase": phase}}


def waiting(
    name: str,
    *,
    namespace: str = "red",
    size: str = "1Gi",
    storage: str = "static",
    selected: str = "",
    mode: str = "ReadWriteOnce",
    **spec: Any,
) -> Json:
    """A claim that waits for its pod's node; a volume is being provisioned for the `selected` node."""
    asked = {"resources": {"requests": {"storage": size}}, "storageClassName": storage, "volumeMode": "Filesystem"}
    made = claim(name, namespace=namespace, mode=mode, **(asked | spec))
    if selected:
        made["metadata"]["annotations"] = {SELECTED: selected}
    return made


def csi_node(name: str, **limits: int | None) -> Json:
    """A CSINode with limits by the first letter of the driver; None for a driver without a limit."""
    drivers = [
        {"name": driver, "nodeID": "x"}
        | ({} if limits[driver[0]] is None else {"allocatable": {"count": limits[driver[0]]}})
        for driver in DRIVERS
        if driver[0] in limits
    ]
    return {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}}


def volume(name: str, *terms: Any, labels: Any = None, **source: Any) -> Json:
    """A volume with these terms of node affinity; on a CSI driver unless another source is given."""
    if not source:
        source = {"csi": {"driver": DRIVERS[0], "volumeHandle": name}}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]} | source
    if terms:
        required = wants(*terms)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        spec["nodeAffinity"] = {"required": required}
    return {"kind": "PersistentVolume", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def attachment(name: str, node: str, volume: str, driver: str = DRIVERS[0]) -> Json:
    spec = {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}}
    return {"kind": "VolumeAttachment", "metadata": {"name": name}, "spec": spec}


def claim(
    name: str,
    volume: str = "",
    *,
    namespace: str = "red",
    bound: bool = True,
    phase: str = "",
    leaving: bool = False,
    mode: str = "ReadWriteOnce",
    **spec: Any,
) -> Json:
    """A claim that is bound to the volume, if one is named; with `leaving` it stays terminating."""
    meta: Json = {"name": name, "namespace": namespace}
    if volume and bound:
        meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    asked = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""} | spec
    made = {
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": asked | ({"volumeName": volume} if volume else {}),
    }
    return made | ({"status": {"phase": phase}} if phase else {}) | ({"leaving": True} if leaving else {})


def using(*claims: str, **spec: Any) -> Json:
    """A pod that uses these claims, and nothing else."""
    return pod(volumes=[_use(name) for name in claims], **spec)


def naming(kind: str, **source: Any) -> Json:
    """A pod with an inline volume of this kind."""
    return pod(volumes=[{"name": "v", kind: source}])


def _use(claim: str) -> Json:
    return {"name": f"v-{claim}", "persistentVolumeClaim": {"claimName": claim}}


class VolumeDice(Dice):
    """Random nodes, volumes and pods that use them, without fields that only other filters read."""

    def volumes_world(self, *, nodes: int, pods: int) -> World:
        names = [f"n{number}" for number in range(nodes)]
        limits = [self._limits(name) for name in names if self._chance(0.8)]
        volumes = [self._volume(number) for number in range(20)]
        claims = [
            self._claim(f"c{number}", namespace, [each["metadata"]["name"] for each in volumes])
            for namespace in NAMESPACES
            for number in range(8)
        ]
        handles = [each["metadata"]["name"] for each in volumes]
        attached = [
            attachment(f"va{number}", self._one([*names, "ghost"]), self._one([*handles, "none"]), self._one(DRIVERS))
            for number in range(self._one([0, 4, 8]))
        ]
        classes = [storage_class(name, mode, self._one(DRIVERS)) for name, mode in CLASSES.items()]
        classes.append(storage_class("static", CLASSES["later"], STATIC))
        classes.append(storage_class("zonal", CLASSES["later"], zones=[["a"], ["c", "b"]][: self._one([1, 2])]))
        volumes += [self._unclaimed(number) for number in range(8)]
        standing = [self._user_on(self._one([*names, *names, "ghost"])) for _ in range(pods)]
        made = [self._labelled(name) for name in names]
        told = [
            csi_driver(
                name, capacity=self._one([True, True, False, None]), demanding=self._one([None, None, False, True])
            )
            for name in DRIVERS[:3]
        ]
        told += [self._capacity(number) for number in range(self._one([2, 4, 6]))]
        return World(made, standing, [*classes, *limits, *volumes, *claims, *attached, *told])

    def _capacity(self, number: int) -> Json:
        where = self._one([f"{ZONE} a", f"{ZONE} b c", "pool", "!pool", f"{HOST} n1 n2", ""])
        size, largest = self._one(["512Mi", "700Mi", "1Gi", "9Gi", None]), self._one([None, None, "1Gi", "2Gi"])
        storage = self._one(["zonal", "zonal", "later", "static"])
        made = capacity(f"left{number}", storage, size, *filter(None, [where]), largest=largest)
        if self._chance(0.1):
            del made["nodeTopology"]
        return made

    def user(self) -> Json:
        """A pod that uses up to three claims and names up to two disks."""
        volumes = [_use(name) for name in self._some([f"c{number}" for number in range(9)], most=3, none=0.3)]
        volumes += [
            {"name": f"disk-{at}", **self._disk()} for at in range(self._one([0, 0, 0, 1, 2]) if volumes else 1)
        ]
        return pod(namespace=self._one([*NAMESPACES]), volumes=volumes, **TOLERATES_ALL)

    def _user_on(self, name: str) -> Standing:
        status = {"phase": self._one(["Running", "Running", "Running", "Pending", "Succeeded"])}
        return on(name, self.user(), status=status, leaving=self._chance(0.1))

    def _labelled(self, name: str) -> Json:
        where = self._one(["a", "b", "b", None])
        labels = {ZONE: where, BETA_ZONE: self._one([None, None, None, where, "b"]), REGION: self._one([None, "r"])}
        return node(name, labels=labels | {"pool": self._one([None, "x"])}, pods="50")

    def _limits(self, name: str) -> Json:
        return csi_node(name, **{letter: self._one([None, 0, 1, 2, 3, 3, 9]) for letter in self._some("abpe", most=4)})

    def _volume(self, number: int) -> Json:
        handle = self._one([f"h{number}", f"h{number}", "shared"])
        sources: Sequence[Json] = [
            *[{"csi": {"driver": self._one(DRIVERS), "volumeHandle": handle}}] * 5,
            {"nfs": {"server": "s", "path": "/"}},
        ]
        labels = {}
        if self._chance(0.3):
            labels = {self._one([ZONE, BETA_ZONE, REGION]): self._one(["a", "b", "a__b", "b____a", "r"])}
        terms = self._some(_TERMS, most=2, none=0.5)
        return volume(f"pv{number}", *terms, labels=labels, **self._one(sources))

    def _claim(self, name: str, namespace: str, volumes: list[str]) -> Json:
        mode = self._one(["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"])
        if self._chance(0.75):
            return claim(
                name, self._one(volumes), namespace=namespace, mode=mode, storageClassName=self._one(["", "later"])
            )
        odd: list[Json] = [
            {"volume": self._one(volumes), "bound": False},
            {"volume": self._one(volumes), "phase": "Lost"},
            {"volume": self._one(volumes), "leaving": True},
            {"volume": "none"},
            {"storageClassName": "at-once"},
            {"storageClassName": "unheard-of"},
            {},
        ]
        if self._chance(0.7):
            return self._waiting(name, namespace)
        return claim(name, namespace=namespace, mode=mode, **self._one(odd))

    def _unclaimed(self, number: int) -> Json:
        spec: Json = {
            "storageClassName": self._one(["static", "static", "zonal"]),
            "volumeMode": self._one(["Filesystem", "Filesystem", "Block"]),
            "accessModes": self._some(["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"], most=3),
            "labels": {"tier": self._one(["x", "y"])},
        }
        # Of several that name one claim kube-scheduler takes any: test_oracle_volumes.py.
        if self._chance(0.3):
            spec["claimRef"] = {"namespace": self._one([*NAMESPACES]), "name": f"c{number}"}
        if self._chance(0.1):
            spec["volumeAttributesClassName"] = "gold"
        terms = self._some(_TERMS, most=2, none=0.4)
        size, phase = self._one(["1Gi", "2Gi", "512Mi"]), self._one(["Available", "Available", "Available", "Released"])
        return unclaimed(f"free{number}", *terms, size=size, phase=phase, **spec)

    def _waiting(self, name: str, namespace: str) -> Json:
        spec: Json = {"volumeMode": "Block"} if self._chance(0.2) else {}
        if self._chance(0.3):
            spec["selector"] = {"matchLabels": {"tier": self._one(["x", "y"])}}
        if self._chance(0.1):
            spec["volumeAttributesClassName"] = "gold"
        return waiting(
            name,
            namespace=namespace,
            size=self._one(["1Gi", "2Gi", "600Mi"]),
            storage=self._one(["static", "static", "zonal", "later"]),
            selected=self._one(["", "", "", "n1", "n2", "gone"]),
            mode=self._one(["ReadWriteOnce", "ReadWriteMany"]),
            **spec,
        )

    def _disk(self) -> Json:
        read_only = {"readOnly": self._chance(0.5)}
        portal = {"targetPortal": "10.0.0.1", "lun": 0}
        found: Json = self._one(
            [
                {"gcePersistentDisk": {"pdName": self._one(["d", "e"])} | read_only},
                {"awsElasticBlockStore": {"volumeID": self._one(["vol-12345678", "aws://a/vol-12345678"])} | read_only},
                {"iscsi": portal | {"iqn": f"iqn.2001-04.com.x:{self._one('ab')}"} | read_only},
                {"rbd": {"monitors": self._some(["m", "n", "o"], most=2), "image": self._one(["i", "j"])} | read_only},
                {"emptyDir": {}},
            ]
        )
        return found
