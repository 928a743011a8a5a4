"""Devices, claims and pods that use them, for the oracle: concise builders, and random objects from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.integration.judged import Json, World
from tests.integration.oracle_worlds import GPU, TOLERATES_ALL, ZONE, Dice, container, init, node, on, pod

DRIVER = "gpu.example.com"
OTHER_DRIVER = "nic.example.com"
API = "resource.k8s.io/v1"
OF_CLASS = "deviceclass.resource.kubernetes.io/any"
_MODELS = ["a100", "h100", "l4"]
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
_SICK: list[Json] = [
    {"key": "sick", "value": "yes", "effect": "NoSchedule"},
    {"key": "sick", "effect": "NoExecute"},
    {"key": "slow", "effect": "NoSchedule"},
    {"key": "odd", "effect": "None"},
]
_PARTITIONS = [
    f"device.attributes['{DRIVER}'].?size.orValue(0) == 1",
    f"device.attributes['{DRIVER}'].?size.orValue(0) > 1",
    f"device.attributes['{DRIVER}'].?size.orValue(0) > 0",
]
_POLICIES: list[Json] = [
    {"default": "10Gi"},
    {"default": "4Gi", "validValues": ["4Gi", "8Gi", "20Gi"]},
    {"default": "8Gi", "validRange": {"min": "2Gi"}},
    {"default": "8Gi", "validRange": {"min": "2Gi", "max": "22Gi", "step": "3Gi"}},
]
_TOLERATIONS: list[Json] = [
    {"operator": "Exists"},
    {"key": "sick", "operator": "Exists"},
    {"key": "sick", "operator": "Equal", "value": "yes"},
    {"key": "sick", "operator": "Exists", "effect": "NoExecute"},
    {"key": "slow", "operator": "Exists", "effect": "NoSchedule"},
]


def of(kind: str, name: str, spec: Json, namespace: str = "", **fields: Any) -> Json:
    """An object of the API group resource.k8s.io; its UID is its name."""
    meta = {"name": name, "uid": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": API, "kind": kind, "metadata": meta, "spec": spec} | fields


def device_class(name: str, *expressions: str, **spec: Any) -> Json:
    """A class of the devices that match all these expressions."""
    return of("DeviceClass", name, spec | ({"selectors": list(map(_selector, expressions))} if expressions else {}))


def slice_of(name: str, *devices: Json, driver: str = DRIVER, pool: Any = None, **where: Any) -> Json:
    """A slice of a pool of the same name, complete by itself unless `pool` says otherwise, on the node of that name."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1} | (pool or {})
    return of("ResourceSlice", name, {"driver": driver, "pool": pool, "devices": [*devices]} | (where or on_node(name)))


def on_node(name: str) -> Json:
    """The location of a slice's devices: that node."""
    return {"nodeName": name}


def exactly(*expressions: str, device_class: str = "any", count: int | None = 1, **asked: Any) -> Json:
    """A request for `count` devices that match all expressions; for every one if the count is None."""
    mode = {"allocationMode": "All"} if count is None else {"allocationMode": "ExactCount", "count": count}
    selectors = {"selectors": list(map(_selector, expressions))} if expressions else {}
    return {"deviceClassName": device_class} | mode | selectors | asked


def claim(
    name: str, *requests: Json | Sequence[Json], match: Sequence[str] = (), distinct: Sequence[str] = (), **status: Any
) -> Json:
    """A claim of namespace red: requests r0, r1 and so on; a list of them holds alternatives a0, a1 and so on."""
    asked: list[Json] = []
    for at, each in enumerate(requests):
        if isinstance(each, dict):
            asked.append({"name": f"r{at}", "exactly": each})
        else:
            alternatives = [{"name": f"a{number}"} | alternative for number, alternative in enumerate(each)]
            asked.append({"name": f"r{at}", "firstAvailable": alternatives})
    spec: Json = {"requests": asked}
    if match or distinct:
        spec["constraints"] = [{"matchAttribute": f"{DRIVER}/{attribute}"} for attribute in match]
        spec["constraints"] += [{"distinctAttribute": f"{DRIVER}/{attribute}"} for attribute in distinct]
    return of("ResourceClaim", name, {"devices": spec}, "red", **({"status": status} if status else {}))


def having(name: str, *devices: tuple[str, str, str], users: int = 1, where: Json | None = None, **result: Any) -> Json:
    """A claim with these allocated devices (driver, pool and name), reserved for `users` other pods.

    It can be used on the node of its first device's pool, or where the node selector `where` matches.
    """
    results = [
        {"request": "r0", "driver": driver, "pool": pool, "device": device} | result for driver, pool, device in devices
    ]
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [devices[0][1]]}]}
    allocation = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [where or here]}}
    reserved = [{"resource": "pods", "name": f"{name}-{at}", "uid": f"{name}-{at}"} for at in range(users)]
    return claim(name, exactly(count=len(devices)), allocation=allocation, reservedFor=reserved)


def using(*claims: str, made: bool = False, **spec: Any) -> Json:
    """A pod that uses these claims of namespace red; `made`: from a template, as each claim's owner shows."""
    if not made:
        asked = [{"name": f"c{at}", "resourceClaimName": name} for at, name in enumerate(claims)]
        return pod(resourceClaims=asked, **spec)
    asked = [{"name": f"c{at}", "resourceClaimTemplateName": "t"} for at in range(len(claims))]
    status = [{"name": f"c{at}", "resourceClaimName": name} for at, name in enumerate(claims)]
    return pod(resourceClaims=asked, **spec) | {"status": {"resourceClaimStatuses": status}}


def _selector(expression: str) -> Json:
    return {"cel": {"expression": expression}}


class DeviceDice(Dice):
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
        kinds: dict[str, Callable[[], Sequence[Json | Sequence[Json]]]] = {
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
            # One device for each request: kube-scheduler 1.36 forgets values if a request has several.
            "distinct": lambda: [self._request(count=1) for _ in range(self._one([1, 2, 3]))],
            "conditions": lambda: [
                exactly(f"device.attributes['{DRIVER}'].?late.orValue(false)", count=self._one([1, 2]))
            ],
            "admin": lambda: [
                self._request(adminAccess=True, count=self._one([1, 2, 3, None])),
                *([self._request()] if self._chance(0.2) else []),
            ],
        }
        made = {}
        for kind, requests in kinds.items():
            matching = {"matched": 1.0, "all": 0.2, "alternatives": 0.3}.get(kind, 0.0)
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
        return [self._request(everything=self._chance(0.2)) for _ in range(self._one([2, 2, 3]))]

    def _slices(self, name: str) -> list[Json]:
        """None, or a complete or incomplete pool on the node, its old slices, sometimes a pool of another driver."""
        if self._chance(0.1):
            return []
        parts = self._one([1, 1, 1, 2])
        pool = {"name": name, "generation": 2, "resourceSliceCount": parts + self._chance(0.1)}
        here = on_node(name)
        found = [slice_of(f"{name}-{at}", *self._devices(f"{name}-{at}"), pool=pool, **here) for at in range(parts)]
        if self._chance(0.1):
            twin = self._device(found[0]["spec"]["devices"][0]["name"])
            found.append(slice_of(f"{name}-twin", twin, pool=pool, **here))
            pool["resourceSliceCount"] += 1
            for each in found:
                each["spec"]["pool"] = pool
        if self._chance(0.2):
            old = self._devices(f"{name}-old")
            found.append(slice_of(f"{name}-old", *old, pool=pool | {"generation": 1}, **here))
        if self._chance(0.3):
            more = [self._device(f"{name}-nic-{at}", domain=f"{DRIVER}/") for at in range(self._one([1, 2]))]
            found.append(slice_of(f"{name}-nic", *more, driver=OTHER_DRIVER, **here))
        return found + (self._partitions(f"{name}-parts", here) if self._chance(0.5) else [])

    def _partitions(self, name: str, *places: Json) -> list[Json]:
        """A pool of devices with shared counters: those in one slice, devices in others, one for each place."""
        wrong = self._chance(0.1)
        pool = {"name": name, "generation": 1, "resourceSliceCount": len(places) + 1 + (wrong and self._chance(0.5))}
        sets = [
            {"name": f"set-{at}", "counters": {"memory": {"value": "80Gi"}, "slices": {"value": self._one(["4", "7"])}}}
            for at in range(self._one([1, 2]))
        ]
        where = places[0] if len(places) == 1 else {"allNodes": True}
        made = [
            of("ResourceSlice", f"{name}-counters", {"driver": DRIVER, "pool": pool, "sharedCounters": sets} | where)
        ]
        for at, place in enumerate(places):
            devices = [self._partition(f"{name}-{at}-{number}", sets) for number in range(self._random.randint(1, 5))]
            if wrong and self._chance(0.5):
                devices[0]["consumesCounters"][0]["counterSet"] = "none"
            if "perDeviceNodeSelection" in place:
                devices = [each | self._one([{"allNodes": True}, *places[1:]]) for each in devices]
            made.append(slice_of(f"{name}-{at}", *devices, pool=pool, **place))
        return made

    def _partition(self, name: str, sets: list[Json]) -> Json:
        size = self._one([1, 1, 2, 4])
        counters = {"memory": {"value": f"{size * 20}Gi"}, "slices": {"value": str(size)}}
        if self._chance(0.2):
            del counters["memory"]
        consumed = [{"counterSet": each["name"], "counters": counters} for each in self._some(sets, most=2)]
        made = self._device(name)
        made["attributes"] |= {"size": {"int": size}}
        return made | {"consumesCounters": consumed}

    def _partitions_of_zone(self, names: list[str]) -> list[Json]:
        """Often, a pool with shared counters and devices on several nodes, some of which say themselves where."""
        if self._chance(0.4):
            return []
        places = [{"perDeviceNodeSelection": True}, *({"nodeName": name} for name in self._some(names, most=3))]
        return self._partitions("far", *places)

    def _shared_slices(self) -> list[Json]:
        """Devices that all nodes, or all nodes of a zone, can use."""
        terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]}
        found = []
        if self._chance(0.3):
            found.append(slice_of("zonal", *self._devices("zonal")[:1], nodeSelector=terms))
        if self._chance(0.2):
            found.append(slice_of("everywhere", *self._devices("everywhere")[:1], allNodes=True))
        return found

    def _devices(self, name: str) -> list[Json]:
        return [self._device(f"{name}-{at}") for at in range(self._random.randint(1, 3))]

    def _device(self, name: str, domain: str = "") -> Json:
        """A device. `domain` qualifies the names of its attributes; without one the driver's domain applies."""
        attributes: Json = {
            f"{domain}model": {"string": self._one(_MODELS)},
            f"{domain}numa": {"int": self._random.randint(0, 1)},
            f"{domain}version": {"version": self._one(["1.1.9", "1.2.0", "1.10.0"])},
        }
        if self._chance(0.3):
            attributes[f"{domain}rare"] = {"bool": self._chance(0.7)}
        if self._chance(0.2):
            attributes["other.example.com/x"] = {"int": 1}
        taints = {"taints": [self._one(_SICK)]} if self._chance(0.2) else {}
        memory: Json = {"value": self._one(["24Gi", "40Gi", "80Gi"])}
        more: Json = {}
        if self._chance(0.25):
            more["allowMultipleAllocations"] = True
        if more or self._chance(0.2):
            memory |= self._one([{}, *({"requestPolicy": each} for each in _POLICIES)])
        if self._chance(0.15):
            attributes[f"{domain}late"] = {"bool": True}
            more |= {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
            more |= {"bindsToNode": True} if self._chance(0.5) else {}
        return {"name": name, "attributes": attributes, "capacity": {f"{domain}memory": memory}} | taints | more

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
