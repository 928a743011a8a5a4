"""Random claims and worlds with devices, from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.integration.device_slices import SliceDice
from tests.integration.judged import Json, World
from tests.integration.oracle_devices import DRIVER, claim, device_class, exactly, having, using
from tests.integration.oracle_worlds import GPU, TOLERATES_ALL, ZONE, container, init, node, on, pod

OF_CLASS = "deviceclass.resource.kubernetes.io/any"
_SELECTS = [
    f"device.attributes['{DRIVER}'].model == 'a100'",
    f"device.attributes['{DRIVER}'].model in ['h100', 'l4']",
    f"device.attributes['{DRIVER}'].model.startsWith('h') || device.attributes['{DRIVER}'].model.matches('^l[0-9]$')",
    f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0",
    f"device.capacity['{DRIVER}'].memory.isLessThan(quantity('41Gi'))",
    f"device.attributes['{DRIVER}'].version.isGreaterThan(semver('1.2.0'))",
    f"device.attributes['{DRIVER}'].numa < 1",
    f"has(device.attributes['{DRIVER}'].rare) && device.attributes['{DRIVER}'].rare",
    f"device.attributes['{DRIVER}'].?rare.orValue(false)",
    f"cel.bind(d, device.attributes['{DRIVER}'], d.numa == 0 && d.model != 'l4')",
    "'other.example.com' in device.attributes",
]
_PARTITIONS = [
    f"device.attributes['{DRIVER}'].?size.orValue(0) == 1",
    f"device.attributes['{DRIVER}'].?size.orValue(0) > 1",
    f"device.attributes['{DRIVER}'].?size.orValue(0) > 0",
]
_TOLERATIONS: list[Json] = [
    {"operator": "Exists"},
    {"key": "sick", "operator": "Exists"},
    {"key": "sick", "operator": "Equal", "value": "yes"},
    {"key": "sick", "operator": "Exists", "effect": "NoExecute"},
    {"key": "slow", "operator": "Exists", "effect": "NoSchedule"},
]


class DeviceDice(SliceDice):
    """Random devices and claims. `_names` are the claims by purpose."""

    _names: dict[str, list[str]]

    def devices_world(self, *, nodes: int, pods: int) -> World:
        """Nodes with devices, some in use, and `pods` that use the allocated claims."""
        names = [f"n{at}" for at in range(nodes)]
        slices = [each for name in names for each in self._slices(name)]
        slices += self._shared_slices() + self._partitions_of_zone(names)
        everywhere = device_class("any")
        ours = device_class("ours", f"device.driver == '{DRIVER}'", extendedResourceName=GPU)
        has = {
            (each["spec"]["driver"], each["spec"]["pool"]["name"], device["name"]): device
            for each in slices
            for device in each["spec"].get("devices", ())
        }
        claims: list[Json] = []
        self._names = {}
        for kind, made in (self._asking() | self._having(has)).items():
            self._names[kind] = [each["metadata"]["name"] for each in made]
            claims += made
        users = [on(self._one(names), using(self._one(self._names["allocated"]))) for _ in range(pods)]
        there = [
            node(name, labels={ZONE: self._one(["a", "b"])}, gpu=self._one([None, None, "0"]))
            for name in [*names, "bare"]
        ]
        return World(there, users, others=[everywhere, ours, *slices, *claims])

    def _asking(self) -> dict[str, list[Json]]:
        """Unallocated claims, by what they request."""
        made = {}
        for kind, requests in self._kinds().items():
            matching = {"matched": 1.0, "all": 0.2, "alternatives": 0.5}.get(kind, 0.0)
            made[kind] = [
                claim(
                    f"{kind}-{at}",
                    *requests(),
                    match=self._some(["model", "numa", "numa", "rare"], most=2) if self._chance(matching) else (),
                    distinct=self._some(["model", "numa", "version"], most=1) if kind == "distinct" else (),
                )
                for at in range(8)
            ]
        return made

    def _kinds(self) -> dict[str, Callable[[], Sequence[Json | Sequence[Json]]]]:
        return {
            "selected": lambda: [self._request() for _ in range(self._one([1, 1, 2]))],
            "all": lambda: [self._request(everything=True), *([self._request()] if self._chance(0.3) else [])],
            "matched": lambda: [
                self._request(count=self._one([1, 2]), expressions=self._chance(0.3)),
                *([self._request(count=1)] if self._chance(0.5) else []),
            ],
            "alternatives": lambda: [self._alternatives(), *([self._request()] if self._chance(0.3) else [])],
            "tainted": lambda: [
                self._request(tolerations=self._some(_TOLERATIONS, most=3, none=0.3), expressions=self._chance(0.2))
            ],
            "partitions": lambda: [
                exactly(*self._some(_PARTITIONS, most=1, none=0.3), count=self._one([1, 1, 2, None])),
                *([self._request()] if self._chance(0.3) else []),
                *([exactly(_PARTITIONS[0], adminAccess=True)] if self._chance(0.1) else []),
            ],
            "shares": lambda: [self._share() for _ in range(self._one([1, 1, 2]))],
            "distinct": lambda: [self._request(count=self._one([1, 1, 2, 3])) for _ in range(self._one([1, 2]))],
            "conditions": lambda: [
                exactly(f"device.attributes['{DRIVER}'].?late.orValue(false)", count=self._one([1, 2]))
            ],
            "admin": lambda: [
                self._request(adminAccess=True, count=self._one([1, 2, 3, None])),
                *([self._request()] if self._chance(0.2) else []),
            ],
        }

    def _having(self, devices: dict[tuple[str, str, str], Json]) -> dict[str, list[Json]]:
        """Allocated claims, some with devices that other claims may also have, and claims that cannot be used."""
        had = self._random.sample(sorted(devices), min(14, len(devices)))
        zone = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
        allocated = [
            having(
                f"allocated-{at}",
                each,
                users=self._one([1, 1, 255]),
                where=zone if self._chance(0.3) else None,
                **self._result(devices[each]),
            )
            for at, each in enumerate(had[:12])
        ]
        allocated += [having(f"watched-{at}", each, adminAccess=True) for at, each in enumerate(had[12:])]
        leaving = claim("leaving", exactly())
        leaving["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/held"]}
        unready = [leaving, claim("no-class", exactly(device_class="none"))]
        waiting = [self._waiting(f"waiting-{at}", each) for at, each in enumerate(had[:6])]
        return {"allocated": allocated, "unready": unready, "waiting": waiting}

    def _result(self, device: Json) -> Json:
        """What the result of an allocation says of a device that claims may share."""
        if not device.get("allowMultipleAllocations"):
            return {}
        return {"shareID": f"share-{self._random.random()}", "consumedCapacity": self._taken(device)}

    def _taken(self, device: Json) -> Json:
        return {name: self._one(["10Gi", "20Gi", "4Gi"]) for name in device["capacity"]}

    def _waiting(self, name: str, device: tuple[str, str, str]) -> Json:
        """A claim whose device, for admin access, waits for its conditions, has them, or has failed."""
        fields: Json = {"adminAccess": True, "bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
        made = having(name, device, **fields)
        true = [{"type": each, "status": self._one(["True", "True", "False"])} for each in ("Attached", "Broken")]
        status = {"driver": device[0], "pool": device[1], "device": device[2], "conditions": true}
        made["status"] |= {"devices": [status]} if self._chance(0.8) else {}
        return made

    def _share(self) -> Json:
        """A request for a share of a device, or for a device that is large enough."""
        name = self._one(["memory", "memory", "memory", f"{DRIVER}/memory"])
        part: Json = {"capacity": {"requests": {name: self._one(["5Gi", "10Gi", "30Gi", "90Gi"])}}}
        selector = self._some(["device.allowMultipleAllocations"], most=1, none=0.4)
        count = self._one([1, 1, 2, None])
        return exactly(*selector, count=count, **(part if self._chance(0.8) else {}))

    def _request(self, *, everything: bool = False, expressions: bool = True, **asked: Any) -> Json:
        made = {"device_class": self._one(["any", "ours"]), "count": None if everything else self._one([1, 1, 2, 3])}
        return exactly(*([self._one(_SELECTS)] if expressions and self._chance(0.6) else []), **(made | asked))

    def _alternatives(self) -> list[Json]:
        return [self._request(everything=self._chance(0.4)) for _ in range(self._one([2, 2, 3]))]

    def _asking_for_resources(self) -> Json:
        """A pod whose containers request a class's extended resource, explicit or derived from the class's name."""

        def one(policy: str = "") -> Json:
            asked = {self._one([GPU, GPU, OF_CLASS]): str(self._one([1, 1, 2]))} if self._chance(0.7) else {}
            return container(policy=policy, limits=asked, **asked)

        before = [one(self._one(["", "Always"])) for _ in range(self._one([0, 0, 1, 2]))]
        return pod(*(one() for _ in range(self._one([1, 2]))), initContainers=init(*before), **TOLERATES_ALL)

    def _user(self, *kinds: str, **spec: Any) -> Json:
        """A pod that uses a claim of each of these kinds."""
        names = [self._one(self._names[kind]) for kind in kinds]
        return using(*dict.fromkeys(names), **TOLERATES_ALL, **spec)
