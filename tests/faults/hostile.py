"""A seeded stream of odd pods, nodes and PodGroups as JSON manifests: legal, but never sensible.

Each object is a plain one with up to three quirks. The quirks are named, so that a slow or fatal one can be identified.
Nearly all objects pass an API server's validation; it rejects the others, which does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from testbed.nodes import node
from testbed.workloads import member, pod_group

Json = dict[str, Any]
Quirk = Callable[[Random, Json], None]

NAMESPACES = tuple(f"odd-{number}" for number in range(8))
MOST = 2**31 - 1
_QUANTITIES = (
    *("9223372036854775807", "8Ei", "1e18", "999999999999999999999", "1E", "1e3", "100Ki", "5.", "+5", "0"),
    *("1e0", "00012", "12E+1", "-0", "2.0e1"),
)
_WRONG_QUANTITIES = ("-1", "-8Ei", "12e", "1n", "1.0000000000000000001", "one", "", "1 Gi", "0x10", "9" * 5000)
_WORDS = (
    "nul\x7f",
    "zwölf",
    "٣",
    "\uff11\uff12",
    "∞",
    "🦄" * 9,
    "\u202eoops",
    "a\u0000b",
    "line\nbreak",
    "-1",
    "1e3",
    "",
    "  ",
)
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_OPERATORS, "Gt", "Lt")
_WRONG_OPERATORS = (*_NODE_OPERATORS, "in", "")
_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule", "")
_SHARED = tuple(f"shared-{number}" for number in range(6))


class Odd(NamedTuple):
    """An object and what is odd about it."""

    kind: str
    quirks: tuple[str, ...]
    manifest: Json

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


class Hostility:
    """Makes odd objects, the same ones for the same seed; names are unique within a kind and namespace.

    With `served` they go to a real API server; without, they also carry fields that only the server and the kubelet
    write: strange phases, conditions, statuses and times.
    """

    def __init__(self, seed: int, *, served: bool) -> None:
        self._random = Random(seed)
        self._served = served
        self._number = 0
        self._nodes = 0

    def any(self) -> Odd:
        """Most are pods, some PodGroups, few nodes."""
        return self._random.choices((self.pod, self.group, self.node), (60, 30, 10))[0]()

    def pod(self) -> Odd:
        """A pod, usually a member of some group, rarely of one that exists."""
        group = self._random.choice(("", "", self._random.choice(_SHARED), f"own-{self._number}"))
        scheduler = "gangsched" if self._random.random() < 0.9 else f"other-{self._number}"
        requests = {"cpu": self._random.choice(("1", "10m", "0", "3"))}
        alone = {"gangsched.io/min-member": "1"} if group.startswith("own") else {}
        made = member(self._name(), group, requests=requests, scheduler=scheduler, annotations=alone)
        return self._odd("Pod", made, POD_QUIRKS)

    def node(self) -> Odd:
        """A node."""
        self._nodes += 1
        return self._odd("Node", node(f"odd-node-{self._nodes}", ready=True), NODE_QUIRKS)

    def group(self) -> Odd:
        """A PodGroup; several namespaces have groups of the same names."""
        name = self._random.choice(_SHARED) if self._random.random() < 0.1 else self._name()
        least = self._random.choice((1, 2, 3, MOST))
        made = pod_group(name, min_member=least)
        return self._odd("PodGroup", made, GROUP_QUIRKS)

    def _name(self) -> str:
        self._number += 1
        return f"odd-{self._number}"

    def _odd(self, kind: str, manifest: Json, quirks: Mapping[str, tuple[int, Quirk]]) -> Odd:
        usable = {name: each for name, each in quirks.items() if not (self._served and name.startswith("server's"))}
        names = self._random.choices(list(usable), [weight for weight, _ in usable.values()], k=3)
        chosen = tuple(dict.fromkeys(names))[: self._random.randint(1, 3)]
        if kind != "Node":
            manifest["metadata"]["namespace"] = self._random.choice(NAMESPACES)
        for name in chosen:
            quirks[name][1](self._random, manifest)
        return Odd(kind, chosen, manifest)


# Building blocks of quirks


def _some(random: Random, *, most: int) -> int:
    return random.choice((1, 2, 3, 5, 8, 13, most // 10 + 1, most))


def _label_key(random: Random) -> str:
    return random.choice(("kubernetes.io/hostname", "zone", "app", f"k{random.randrange(40)}.example/{'x' * 60}"))


def _mostly(random: Random, right: Sequence[str], wrong: Sequence[str]) -> Sequence[str]:
    """Entries for a list, mostly right ones, because one wrong entry makes the API server reject the whole object."""
    return right if random.random() < 0.85 else wrong


def _quantities(random: Random) -> Sequence[str]:
    return _mostly(random, _QUANTITIES, (*_QUANTITIES, *_WRONG_QUANTITIES))


def _requirement(random: Random, number: int, operators: Sequence[str]) -> Json:
    operator = random.choice(operators)
    bound = random.choice(("5", "-5", "9" * 60))
    values = {"Exists": [], "DoesNotExist": [], "Gt": [bound], "Lt": [bound]}.get(operator, [f"v{number}", "zone-1"])
    return {"key": _label_key(random), "operator": operator, "values": values}


def _selector(random: Random, operators: Sequence[str]) -> Json | None:
    expressions = [_requirement(random, number, operators) for number in range(random.randint(0, 2))]
    return random.choice((None, {}, {"matchLabels": {"app": "x"}, "matchExpressions": expressions}))


def _pod_terms(random: Random) -> list[Json]:
    terms = []
    operators = _mostly(random, _OPERATORS, _WRONG_OPERATORS)
    for number in range(_some(random, most=300)):
        term: Json = {"topologyKey": _label_key(random), "labelSelector": _selector(random, operators)}
        if number % 3 == 0:
            term["namespaces"] = list(NAMESPACES[: random.randint(0, len(NAMESPACES))])
        if number % 5 == 0:
            term["namespaceSelector"] = _selector(random, operators)
        terms.append(term)
    return terms


def _affinity(manifest: Json, kind: str, required: object) -> None:
    affinity = manifest["spec"].setdefault("affinity", {})
    affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": required}


def _resources(manifest: Json) -> Json:
    resources: Json = manifest["spec"]["containers"][0]["resources"]
    return resources


# Anything


def _many_labels(random: Random, manifest: Json) -> None:
    labels = {f"l{number}.example/{'n' * 50}": "v" * (number % 64) for number in range(_some(random, most=1500))}
    manifest["metadata"]["labels"] = labels | manifest["metadata"].get("labels", {})


def _strange_annotations(random: Random, manifest: Json) -> None:
    annotations = manifest["metadata"].setdefault("annotations", {})
    annotations |= {f"a{number}.example/x": random.choice(_WORDS) * 9 for number in range(_some(random, most=300))}
    annotations["gangsched.io/unheard-of"] = "ü" * _some(random, most=60_000)


def _longest_name(random: Random, manifest: Json) -> None:
    longest = 253 if manifest["kind"] != "PodGroup" else 63
    name = manifest["metadata"]["name"]
    manifest["metadata"]["name"] = name + random.choice("xyz") * (longest - len(name))


# Pods


def _says(random: Random, manifest: Json) -> None:
    words = (*_WORDS, "1", "2", "3", str(MOST), str(MOST + 1))
    manifest["metadata"]["annotations"]["gangsched.io/min-member"] = random.choice(words)
    if random.random() < 0.5:
        times = (*_WORDS, "1s", "60s", "168h", "168h1s", "1s1h", "999999h")
        manifest["metadata"]["annotations"]["gangsched.io/max-schedule-time"] = random.choice(times)


def _says_otherwise_than_all(random: Random, manifest: Json) -> None:
    manifest["metadata"]["labels"]["gangsched.io/pod-group"] = "quarrel"
    manifest["metadata"]["annotations"]["gangsched.io/min-member"] = str(random.randrange(1, MOST))


def _strange_role(random: Random, manifest: Json) -> None:
    manifest["metadata"]["labels"]["gangsched.io/role"] = random.choice(("", "boss", "r1", "R" * 63))


def _strange_requests(random: Random, manifest: Json) -> None:
    quantities = _quantities(random)
    amounts = {name: random.choice(quantities) for name in ("cpu", "memory", "ephemeral-storage")}
    _resources(manifest)["requests"] = amounts


def _many_resources(random: Random, manifest: Json) -> None:
    first = random.randrange(400)
    amounts = {f"x{number}.example/dev": "1" for number in range(first, first + _some(random, most=300))}
    manifest["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}


def _many_containers(random: Random, manifest: Json) -> None:
    image, cpu = "registry.invalid/sleep", {"requests": {"cpu": "1m"}}
    containers = manifest["spec"]["containers"]
    containers += [
        {"name": f"c{number}", "image": image, "resources": cpu} for number in range(_some(random, most=400))
    ]


def _many_tolerations(random: Random, manifest: Json) -> None:
    manifest["spec"]["tolerations"] = [
        {"key": f"t{number}", "operator": "Equal", "value": f"v{number}", "effect": random.choice(_EFFECTS)}
        for number in range(_some(random, most=2000))
    ]


def _tolerates_all(random: Random, manifest: Json) -> None:
    manifest["spec"]["tolerations"] = [{"operator": _mostly(random, ("Exists",), ("Equal", "Lt", ""))[0]}]


def _own_selector(random: Random, manifest: Json) -> None:
    manifest["spec"]["nodeSelector"] = {"app": f"v{random.randrange(10**9)}", "zone": random.choice(("", "zone-1"))}


def _many_terms(random: Random, manifest: Json) -> None:
    operators = _mostly(random, _NODE_OPERATORS, _WRONG_OPERATORS)
    terms = [
        {
            "matchExpressions": [_requirement(random, number, operators) for number in range(random.randint(0, 3))],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"odd-node-{number}"]}],
        }
        for number in range(_some(random, most=1500))
    ]
    _affinity(manifest, "nodeAffinity", {"nodeSelectorTerms": terms})


def _many_values(random: Random, manifest: Json) -> None:
    values = [f"v{random.randrange(10**9)}" for _ in range(_some(random, most=5000))]
    expression = {"key": _label_key(random), "operator": random.choice(("In", "NotIn")), "values": values}
    _affinity(manifest, "nodeAffinity", {"nodeSelectorTerms": [{"matchExpressions": [expression]}]})


def _endless_number(random: Random, manifest: Json) -> None:
    expression = {"key": "zone", "operator": random.choice(("Gt", "Lt")), "values": ["9" * 5000]}
    _affinity(manifest, "nodeAffinity", {"nodeSelectorTerms": [{"matchExpressions": [expression]}]})


def _anti_affinity(random: Random, manifest: Json) -> None:
    _affinity(manifest, "podAntiAffinity", _pod_terms(random))


def _bound_anti_affinity(random: Random, manifest: Json) -> None:
    _anti_affinity(random, manifest)
    manifest["spec"]["nodeName"] = f"odd-node-{random.randrange(1000)}"


def _pod_affinity(random: Random, manifest: Json) -> None:
    _affinity(manifest, "podAffinity", _pod_terms(random))


def _ports(random: Random, manifest: Json) -> None:
    many = random.sample(range(1, 65536), _some(random, most=500))
    hosts = ("", "0.0.0.0", "127.0.0.1", "::", "::1")
    manifest["spec"]["containers"][0]["ports"] = [
        {
            "containerPort": 1,
            "hostPort": port,
            "hostIP": random.choice(hosts),
            "protocol": random.choice(("TCP", "UDP", "SCTP")),
        }
        for port in many
    ]


def _same_port(_random: Random, manifest: Json) -> None:
    manifest["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]


def _node_name(random: Random, manifest: Json) -> None:
    manifest["spec"]["nodeName"] = random.choice((f"odd-node-{random.randrange(1000)}", "absent", "x" * 253))


def _owners(_random: Random, manifest: Json) -> None:
    manifest["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "nobody", "uid": f"u{number}", "controller": number == 0}
        for number in range(50)
    ]


def _gates(_random: Random, manifest: Json) -> None:
    manifest["spec"]["schedulingGates"] = [{"name": f"gate.example/g{number}"} for number in range(300)]


def _priority(random: Random, manifest: Json) -> None:
    manifest["spec"]["priority"] = random.choice((MOST, -MOST - 1, 0))


def _strange_scheduler(random: Random, manifest: Json) -> None:
    manifest["spec"]["schedulerName"] = random.choice(("s" * 253, "GANGSCHED", "gangsched.", "default-scheduler"))


def _pod_status(random: Random, manifest: Json) -> None:
    condition = {
        "type": random.choice(("PodScheduled", "Odd/Type", "PodResizePending")),
        "status": random.choice(("True", "False", "Unknown", "Maybe", "")),
        "reason": random.choice(("Unschedulable", "Infeasible", "x" * 1024, None)),
        "message": random.choice(("", "m" * 30_000, "🦄")),
    }
    manifest["status"] = {
        "phase": random.choice(("Pending", "Running", "Succeeded", "Failed", "Unknown", "Evicted", "", None)),
        "conditions": [condition] * random.choice((1, 2, 200)),
        "nominatedNodeName": random.choice(("", "absent", "odd-node-1")),
        "resources": {"requests": {"cpu": random.choice(_WRONG_QUANTITIES)}},
        "containerStatuses": [
            {"name": "main", "resources": {"requests": {"cpu": random.choice(_QUANTITIES)}}},
            {"name": "nobody", "allocatedResources": {"cpu": "x"}},
        ],
    }


def _pod_times(random: Random, manifest: Json) -> None:
    manifest["metadata"]["creationTimestamp"] = random.choice(("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", None))
    if random.random() < 0.3:
        manifest["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:00Z"


# Nodes


def _strange_allocatable(random: Random, manifest: Json) -> None:
    names = ("cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "x1.example/dev")
    quantities = _quantities(random)
    manifest["status"]["allocatable"] = {name: random.choice(quantities) for name in names}


def _no_allocatable(random: Random, manifest: Json) -> None:
    manifest["status"] = random.choice(({}, {"allocatable": {}}, {"allocatable": None}))


def _many_kinds(random: Random, manifest: Json) -> None:
    own = random.randrange(10**6)
    count = _some(random, most=300)
    kinds = {f"u{own}-{number}.example/dev": "1" for number in range(count)}
    kinds |= {f"x{number}.example/dev": "9" for number in range(count)}
    manifest["status"]["allocatable"] = kinds | (manifest["status"].get("allocatable") or {})


def _many_taints(random: Random, manifest: Json) -> None:
    manifest["spec"]["taints"] = [
        {"key": f"t{number}", "value": f"v{number}", "effect": random.choice(_EFFECTS[:3])}
        for number in range(_some(random, most=600))
    ]


def _colliding_labels(random: Random, manifest: Json) -> None:
    manifest["metadata"]["labels"] |= {"kubernetes.io/hostname": "same", "zone": random.choice(("zone-1", "", "7"))}


def _cordoned(_random: Random, manifest: Json) -> None:
    manifest["spec"]["unschedulable"] = True


# PodGroups


def _roles(random: Random, manifest: Json) -> None:
    manifest["spec"]["roles"] = [
        {"name": f"r{number}", "minMember": random.choice((0, 1, MOST))} for number in range(random.randint(1, 64))
    ]


def _maxima(random: Random, manifest: Json) -> None:
    manifest["spec"]["maxMember"] = random.choice((manifest["spec"]["minMember"], MOST))


def _group_priority(random: Random, manifest: Json) -> None:
    manifest["spec"] |= random.choice(({"priority": -MOST - 1}, {"priority": 10**9}, {"priorityClassName": "p" * 253}))


def _clock(random: Random, manifest: Json) -> None:
    manifest["spec"]["maxScheduleTime"] = random.choice(("1s", "168h", "0h0m1s", "167h59m60s", "000001s"))
    manifest["spec"]["timeoutPolicy"] = random.choice(("Retry", "Fail"))


def _strategy(random: Random, manifest: Json) -> None:
    names = ("Spread", "BestFit", "MostUsed", "MinimalFragmentation", "/", "a/" + "b" * 251, "🦄/ü", "é/\u202e")
    manifest["spec"]["placement"] = {"strategy": random.choice(names)}


def _template(random: Random, manifest: Json) -> None:
    requests = {f"x{number}.example/dev": "9223372036854775807" for number in range(_some(random, most=64))}
    tolerations = [{"key": f"t{number}", "operator": "Exists"} for number in range(_some(random, most=100))]
    template = {"requests": requests, "tolerations": tolerations}
    manifest["spec"]["roles"] = [{"name": f"r{number}", "minMember": 1, "template": template} for number in range(4)]


def _group_status(random: Random, manifest: Json) -> None:
    times = (
        *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59"),
        *("2026-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "never"),
    )
    numbers = ("members", "bound", "running", "succeeded", "failed", "minimum", "attempts")
    condition = {
        "type": random.choice(("Scheduled", "Degraded", "t" * 316)),
        "status": random.choice(("True", "False", "Unknown")),
        "reason": random.choice(("Scheduled", "Odd", "x" * 1024)),
        "message": "m" * random.choice((0, 32_768)),
        "lastTransitionTime": random.choice(times),
        "observedGeneration": random.choice((0, 2**63 - 1)),
    }
    places = [{"node": "absent", "count": MOST, "pods": ["p"] * 10, "requests": {"cpu": "8Ei"}}] * 20
    phases = ("Pending", "Queued", "Reserved", "Binding", "Scheduled", "Running", "Degraded", "Succeeded", "Failed")
    manifest["status"] = {
        "phase": random.choice(phases),
        "conditions": [condition],
        "reservation": {"expires": random.choice(times), "placements": places},
        "scheduleStartTime": random.choice(times),
        "scheduledTime": random.choice((*times, None)),
        "source": "s" * 253,
    } | {name: random.choice((0, 1, 3, 200, MOST)) for name in numbers}


POD_QUIRKS: Mapping[str, tuple[int, Quirk]] = {
    "many labels": (2, _many_labels),
    "strange annotations": (2, _strange_annotations),
    "longest name": (10, _longest_name),
    "says": (10, _says),
    "says otherwise than all": (4, _says_otherwise_than_all),
    "strange role": (10, _strange_role),
    "strange requests": (15, _strange_requests),
    "many resources": (5, _many_resources),
    "many containers": (3, _many_containers),
    "many tolerations": (4, _many_tolerations),
    "tolerates all": (10, _tolerates_all),
    "own selector": (10, _own_selector),
    "many terms": (3, _many_terms),
    "many values": (1, _many_values),
    "endless number": (1, _endless_number),
    "anti-affinity": (4, _anti_affinity),
    "bound anti-affinity": (6, _bound_anti_affinity),
    "pod affinity": (3, _pod_affinity),
    "ports": (3, _ports),
    "same port": (8, _same_port),
    "node name": (8, _node_name),
    "owners": (5, _owners),
    "gates": (4, _gates),
    "priority": (1, _priority),
    "strange scheduler": (5, _strange_scheduler),
    "server's status": (8, _pod_status),
    "server's times": (8, _pod_times),
}
NODE_QUIRKS: Mapping[str, tuple[int, Quirk]] = {
    "many labels": (3, _many_labels),
    "strange annotations": (2, _strange_annotations),
    "longest name": (8, _longest_name),
    "strange allocatable": (20, _strange_allocatable),
    "no allocatable": (8, _no_allocatable),
    "many kinds": (5, _many_kinds),
    "many taints": (8, _many_taints),
    "colliding labels": (15, _colliding_labels),
    "cordoned": (6, _cordoned),
}
GROUP_QUIRKS: Mapping[str, tuple[int, Quirk]] = {
    "many labels": (2, _many_labels),
    "strange annotations": (2, _strange_annotations),
    "longest name": (8, _longest_name),
    "roles": (15, _roles),
    "maxima": (10, _maxima),
    "priority": (10, _group_priority),
    "clock": (10, _clock),
    "strategy": (10, _strategy),
    "template": (3, _template),
    "server's PodGroup status": (15, _group_status),
}
