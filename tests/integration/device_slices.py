"""Random devices, from a seed: of nodes and zones, partitions with shared counters, shared and conditional ones."""

from __future__ import annotations

from tests.integration.judged import Json
from tests.integration.oracle_devices import DRIVER, OTHER_DRIVER, of, on_node, slice_of
from tests.integration.oracle_worlds import ZONE, Dice

_MODELS = ["a100", "h100", "l4"]
_SICK: list[Json] = [
    {"key": "sick", "value": "yes", "effect": "NoSchedule"},
    {"key": "sick", "effect": "NoExecute"},
    {"key": "slow", "effect": "NoSchedule"},
    {"key": "odd", "effect": "None"},
]
_POLICIES: list[Json] = [
    {"default": "10Gi"},
    {"default": "4Gi", "validValues": ["4Gi", "8Gi", "20Gi"]},
    {"default": "8Gi", "validRange": {"min": "2Gi"}},
    {"default": "8Gi", "validRange": {"min": "2Gi", "max": "22Gi", "step": "3Gi"}},
]


class SliceDice(Dice):
    """Random ResourceSlices."""

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
