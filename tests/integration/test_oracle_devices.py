"""kube-scheduler itself judges which nodes have the devices that a pod's claims ask for: see test_oracle.py."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.effort import seeded
from tests.integration.judged import Bench, Json, Surroundings, World, agree
from tests.integration.oracle_worlds import NAMESPACES, ZONE, node, pod
from tests.judge import Judge

DRIVER = "gpu.example.com"
API = "resource.k8s.io/v1"
MODELS = ["a100", "h100", "l4"]
EXPRESSIONS = [
    f"device.attributes['{DRIVER}'].model == 'a100'",
    f"device.attributes['{DRIVER}'].model in ['h100', 'l4']",
    f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0",
    f"device.capacity['{DRIVER}'].memory.isLessThan(quantity('41Gi'))",
    f"device.attributes['{DRIVER}'].version.isGreaterThan(semver('1.2.0'))",
    f"device.attributes['{DRIVER}'].numa < 1",
    f"has(device.attributes['{DRIVER}'].rare) && device.attributes['{DRIVER}'].rare",
    "'other.example.com' in device.attributes",
]


@pytest.fixture(scope="module")
def oracle(judge: Judge) -> Bench:
    return Bench(judge, Surroundings(NAMESPACES))


def of(kind: str, name: str, spec: Json, namespace: str = "", **fields: Any) -> Json:
    meta = {"name": name, "uid": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": API, "kind": kind, "metadata": meta, "spec": spec} | fields


class DeviceDice:
    """Random devices, claims, and pods that use them.

    kube-scheduler fails, instead of refusing, where all devices are asked for and a pool is incomplete, or some device
    breaks a constraint; so a world has either such requests or the others.
    """

    def __init__(self, seed: int, nodes: int) -> None:
        self._random = Random(seed)
        self._nodes = [f"n{at}" for at in range(nodes)]
        self._all = bool(seed % 2)
        self.claims: list[str] = []

    def world(self) -> World:
        classes = [
            of("DeviceClass", "any", {}),
            of("DeviceClass", "ours", {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}),
        ]
        slices = [each for name in self._nodes for each in self._slices(name)]
        devices = [
            (each["spec"]["pool"]["name"], device["name"]) for each in slices for device in each["spec"]["devices"]
        ]
        claims = [self._claim(f"c{at}") for at in range(40)]
        had = self._random.sample(sorted(set(devices)), 8)
        claims += [self._allocated(f"had-{at}", *device) for at, device in enumerate(had)]
        self.claims = [each["metadata"]["name"] for each in claims]
        nodes = [node(name, labels={ZONE: self._random.choice("ab")}) for name in self._nodes]
        return World(nodes=nodes, others=[*classes, *slices, *claims])

    def probe(self) -> Json:
        names = self._random.sample(self.claims, self._random.choice([1, 1, 1, 2]))
        return pod(resourceClaims=[{"name": f"r{at}", "resourceClaimName": name} for at, name in enumerate(names)])

    def _slices(self, name: str) -> list[Json]:
        chance = self._random.random()
        if chance < 0.15:
            return []
        pool = {"name": name, "generation": 2, "resourceSliceCount": 2 if chance < 0.25 and not self._all else 1}
        spec = {"driver": DRIVER, "pool": pool, "nodeName": name, "devices": self._devices(name)}
        found = [of("ResourceSlice", name, spec)]
        if chance > 0.8:
            old = {
                "driver": DRIVER,
                "pool": pool | {"generation": 1},
                "nodeName": name,
                "devices": self._devices("old"),
            }
            found.append(of("ResourceSlice", f"{name}-old", old))
        if chance > 0.9:
            term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
            shared = {"name": f"{name}-zone", "generation": 1, "resourceSliceCount": 1}
            where = {"nodeSelector": {"nodeSelectorTerms": [term]}}
            found.append(
                of(
                    "ResourceSlice",
                    f"{name}-zone",
                    {"driver": DRIVER, "pool": shared, "devices": self._devices("z")[:1]} | where,
                )
            )
        return found

    def _devices(self, name: str) -> list[Json]:
        return [self._device(f"{name}-{at}") for at in range(self._random.randint(1, 4))]

    def _device(self, name: str) -> Json:
        dice = self._random
        attributes: Json = {
            "model": {"string": dice.choice(MODELS)},
            "numa": {"int": dice.randint(0, 1)},
            "version": {"version": dice.choice(["1.1.9", "1.2.0", "1.10.0"])},
        }
        if dice.random() < 0.3:
            attributes["rare"] = {"bool": dice.random() < 0.7}
        if dice.random() < 0.2:
            attributes["other.example.com/x"] = {"int": 1}
        taints = [{"key": "sick", "value": "yes", "effect": "NoSchedule"}] if dice.random() < 0.15 else []
        memory = dice.choice(["24Gi", "40Gi", "80Gi"])
        made: Json = {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}}
        return made | ({"taints": taints} if taints else {})

    def _request(self, name: str) -> Json:
        dice = self._random
        name_of_class = "none" if dice.random() < 0.02 else dice.choice(["any", "ours"])
        everything = self._all and dice.random() < 0.3
        asked: Json = {"deviceClassName": name_of_class, "allocationMode": "All" if everything else "ExactCount"}
        if asked["allocationMode"] == "ExactCount":
            asked["count"] = dice.choice([1, 1, 2, 3])
        if dice.random() < 0.6:
            asked["selectors"] = [{"cel": {"expression": dice.choice(EXPRESSIONS)}}]
        if dice.random() < 0.3:
            asked["tolerations"] = [{"key": "sick", "operator": dice.choice(["Exists", "Equal"])}]
        return asked | ({"name": name} if name else {})

    def _claim(self, name: str) -> Json:
        dice = self._random
        requests: list[Json] = []
        for at in range(dice.choice([1, 1, 2])):
            if dice.random() < 0.25:
                requests.append({"name": f"r{at}", "firstAvailable": [self._request("x"), self._request("y")]})
            else:
                requests.append({"name": f"r{at}", "exactly": self._request("")})
        spec: Json = {"requests": requests}
        if not self._all and dice.random() < 0.4:
            attribute = dice.choice(["model", "numa", "rare"])
            spec["constraints"] = [{"matchAttribute": f"{DRIVER}/{attribute}"}]
        return of("ResourceClaim", name, {"devices": spec}, "red")

    def _allocated(self, name: str, pool: str, device: str) -> Json:
        where: Json = {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [pool]}]}]
        }
        result = {"request": "r", "driver": DRIVER, "pool": pool, "device": device}
        allocation = {"devices": {"results": [result]}, "nodeSelector": where}
        asked: Json = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}}
        reserved = [{"resource": "pods", "name": "user", "uid": "user"}]
        return of("ResourceClaim", name, asked, "red", status={"allocation": allocation, "reservedFor": reserved})


@seeded(4)
def test_a_random_world_of_devices_is_judged_alike(oracle: Bench, seed: int) -> None:
    dice = DeviceDice(seed, 12)
    with oracle.world(dice.world()):
        judged = oracle.ask([dice.probe() for _ in range(120)])
    agree(judged)
    accepted = sum(len(verdicts.kube_scheduler) for verdicts in judged) / (12 * len(judged))
    assert 0.05 < accepted < 0.95, "pods that fit everywhere or nowhere tell nothing"
