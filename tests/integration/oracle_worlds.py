"""Nodes and pods for the judge: concise builders, and random objects from a seed."""

from __future__ import annotations

from random import Random
from typing import Any

from gangsched.core.cluster.cache import Cluster
from tests.integration.judged import Json, Standing, World

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
GPU = "example.com/gpu"
NATIVE = "kubernetes.io/device"
HUGE = "hugepages-2Mi"
DISK = "ephemeral-storage"
NAMESPACES: dict[str, dict[str, str]] = {"red": {"team": "red"}, "blue": {"team": "blue", "old": ""}, "grey": {}}
RUNTIME_CLASSES: list[Json] = [
    {"metadata": {"name": "heavy"}, "handler": "x", "overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}}},
    {
        "metadata": {"name": "batch"},
        "handler": "x",
        "scheduling": {"nodeSelector": {"pool": "batch"}, "tolerations": [{"key": "dedicated", "operator": "Exists"}]},
    },
]
PRIORITIES = {"low": -10, "high": 10}
RESTART_ALL = "RestartAllContainersOnContainerExits"
HOST_USERS = "UserNamespacesHostNetworkSupport"
NAME = "example.com/name"
"""A label with a unique value on each node, unlike the hostname."""
TOLERATES_ALL: Json = {"tolerations": [{"operator": "Exists"}]}

_CPU = [None, None, "250m", "500m", "0.5", "1", "0.1m"]
_MEMORY = [None, None, "512Mi", "1Gi", "0.5G", "5e8"]
PORTS = ["8080", "8080/UDP", "10.0.0.1@8080", "127.0.0.1@8080", "::@8080", "9090"]
LABELS = [(ZONE, "a"), (ZONE, "b"), ("pool", "batch"), ("pool", "7"), ("gen", "9"), ("gen", "007"), ("gen", "x")]
_TAINTS = [
    "dedicated=batch:NoSchedule",
    "dedicated:NoExecute",
    "gpu=present:NoSchedule",
    "soft:PreferNoSchedule",
    "node.kubernetes.io/unschedulable:NoSchedule",
    "node.kubernetes.io/not-ready:NoExecute",
]
_SOFT_TAINTS = ["soft:PreferNoSchedule", "old=x:PreferNoSchedule", "slow:PreferNoSchedule", "gpu:NoSchedule"]
_SOFT_TOLERATIONS: list[Json] = [
    {"operator": "Exists"},
    {"key": "old", "operator": "Exists"},
    {"key": "old", "value": "x", "effect": "PreferNoSchedule"},
    {"key": "slow", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
]
_IMAGES = [(f"example.com/{name}:1", size << 20) for name, size in [("a", 90), ("b", 700), ("c", 3000), ("d", 20)]]
TOLERATIONS: list[Json] = [
    {"operator": "Exists"},
    {"operator": "Exists", "effect": "NoSchedule"},
    {"key": "dedicated", "operator": "Exists"},
    {"key": "dedicated", "value": "batch"},
    {"key": "dedicated", "operator": "Equal", "effect": "NoExecute", "tolerationSeconds": 5},
    {"key": "gpu", "value": "absent"},
    {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    {"key": "node.kubernetes.io/unschedulable", "value": ""},
]
TERMS = [
    (),
    ("pool In batch 7",),
    ("pool NotIn batch",),
    ("pool Exists", f"{ZONE} In a"),
    ("pool DoesNotExist",),
    ("gen Gt 7",),
    ("gen Lt 9",),
    ("gen Gt x",),
    ("metadata.name In n1",),
    ("metadata.name NotIn n1",),
    ("metadata.name In n2", "pool Exists"),
    ("metadata.name In n2", "metadata.name NotIn n2"),
]
_PREFERRED = [term for term in TERMS if term and "gen Gt x" not in term]
_SELECTORS: list[Json] = [
    {},
    {"matchLabels": {"app": "a"}},
    {"matchLabels": {"app": "a", "tier": "b"}},
    {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["a"]}]},
    {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": "app", "operator": "Exists"}], "matchLabels": {"tier": "a"}},
]
_NAMESPACE_SELECTORS: list[Json] = [
    {},
    {"matchLabels": {"team": "blue"}},
    {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["red"]}]},
]

_SHORT = {"gpu": GPU, "native": NATIVE, "huge": HUGE, "disk": DISK}
_LIMITED = (GPU, NATIVE, HUGE)
_ALLOCATABLE = {"cpu": "4", "memory": "8Gi", "pods": "10", "disk": "20Gi"}


def amounts(**given: Any) -> dict[str, str]:
    """Quantities by resource name; None omits one."""
    return {_SHORT.get(name, name): str(value) for name, value in given.items() if value is not None}


def node(
    name: str,
    *,
    labels: Any = None,
    taints: Any = (),
    cordoned: bool = False,
    features: Any = (),
    images: Any = (),
    **allocatable: Any,
) -> Json:
    """A node of zone a with these additional labels and amounts; None omits a label or a resource.

    `images` are its images' sizes in bytes by name.
    """
    allocatable = amounts(**(_ALLOCATABLE | allocatable))
    carried = {HOST: name, ZONE: "a"} | (labels or {})
    return {
        "metadata": {"name": name, "labels": {key: value for key, value in carried.items() if value is not None}},
        "spec": {"taints": [taint(each) for each in taints], "unschedulable": cordoned},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable | {"cpu": "64", "memory": "64Gi", "pods": "500"},
            "declaredFeatures": sorted(features),
            "images": [{"names": [image], "sizeBytes": size} for image, size in dict(images).items()],
        },
    }


def taint(text: str) -> Json:
    """`key=value:Effect` or `key:Effect`, as `kubectl taint` writes it."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "effect": effect, "value": value}


def container(name: str = "c", *, ports: Any = (), policy: str = "", limits: Any = None, **requests: Any) -> Json:
    """A container; devices and huge pages also get the limits that the API requires."""
    asked = amounts(**requests)
    limits = {resource: size for resource, size in asked.items() if resource in _LIMITED} | (limits or {})
    made = {"name": name, "image": "registry.example/x:1", "ports": [port(each) for each in ports]}
    return made | {"resources": {"requests": asked, "limits": limits}} | ({"restartPolicy": policy} if policy else {})


def restarting_all(made: Json) -> Json:
    """The container with a rule that restarts the whole pod if it exits with 42."""
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    return {"restartPolicy": "Never"} | made | {"restartPolicyRules": [rule]}


def init(*containers: Json) -> list[Json]:
    """Init containers in this order, each with a name of its own."""
    return [each | {"name": f"init-{number}"} for number, each in enumerate(containers)]


def port(text: str) -> Json:
    """`[ip@]port[/protocol]`: a host port, and the container's own of the same number."""
    rest, _, protocol = text.partition("/")
    ip, _, number = rest.rpartition("@")
    made: Json = {"containerPort": int(number), "hostPort": int(number)}
    return made | ({"protocol": protocol} if protocol else {}) | ({"hostIP": ip} if ip else {})


def pod(*containers: Json, namespace: str = "red", labels: Any = None, **spec: Any) -> Json:
    """A pod with these containers, or with one that requests nothing; it is named later."""
    named = [each | {"name": f"c-{number}"} for number, each in enumerate(containers or [container()])]
    return {"metadata": {"namespace": namespace, "labels": labels or {}}, "spec": {"containers": named} | spec}


def on(node_name: str, manifest: Json | None = None, *, status: Any = None, leaving: bool = False) -> Standing:
    """The pod on that node; with `leaving` it stays terminating."""
    manifest = manifest or pod()
    meta = manifest["metadata"] | ({"finalizers": ["example.com/held"]} if leaving else {})
    bound = {"metadata": meta, "spec": manifest["spec"] | {"nodeName": node_name}}
    return Standing(bound, status=status or {}, terminating=leaving)


def heir(node_name: str, manifest: Json | None = None) -> Standing:
    """The pod, unbound and nominated to that node."""
    manifest = manifest or pod()
    return Standing(manifest, nominated=node_name)


def shuns(**term: Any) -> Json:
    """`affinity` with one required anti-affinity term, of topology key hostname unless given."""
    return _required("podAntiAffinity", [{"topologyKey": HOST} | term])


def resized(*, actuated: Any, allocated: Any = None, pending: str = "", init_container: bool = False) -> Json:
    """`status` of a pod whose first (init) container runs with other requests than its spec has."""
    name = "init-0" if init_container else "c-0"
    held = {"name": name, "image": "x", "imageID": "x", "ready": True, "restartCount": 0}
    held |= {"resources": {"requests": actuated}} | ({"allocatedResources": allocated} if allocated else {})
    conditions = [{"type": "PodResizePending", "status": "True", "reason": pending}] if pending else []
    return {"initContainerStatuses" if init_container else "containerStatuses": [held], "conditions": conditions}


def wants(*terms: Any) -> Json:
    """`affinity` with required node affinity: terms of `key operator values…`, fields where the key has a dot first."""
    return _required("nodeAffinity", {"nodeSelectorTerms": [_term(term) for term in terms]})


def likes(*terms: Any) -> Json:
    """`affinity` with preferred node affinity: each term is its weight, then as in `wants`."""
    found = [{"weight": weight, "preference": _term(requirements)} for weight, *requirements in terms]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": found}}}


def _required(kind: str, value: Any) -> Json:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": value}}}


def _term(requirements: Any) -> Json:
    made: Json = {}
    for text in requirements:
        key, operator, *values = text.split()
        where = "matchFields" if key == "metadata.name" else "matchExpressions"
        made.setdefault(where, []).append({"key": key, "operator": operator} | ({"values": values} if values else {}))
    return made


def edges(cluster: Cluster) -> list[Json]:
    """For each node and resource, a pod that requests all that is free by our accounting, and one that wants 1 more.

    kube-scheduler's results show whether both account for the existing pods identically, to the last unit.
    """
    capacity = cluster.capacity
    found = []
    for resource in ("cpu", "memory", DISK, GPU, NATIVE):
        free = {capacity.free_of(row, resource) for row in capacity.rows.values()}
        for size in sorted({size + more for size in free for more in (0, 1) if size + more > 0}):
            asked = {resource: f"{size}m" if resource == "cpu" else str(size)}
            found.append(pod(container(**asked), **TOLERATES_ALL))
    return found


class Dice:
    """Random nodes and pods, the same for the same seed; amounts are coarse, so that many fit exactly."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def world(self, *, nodes: int, pods: int) -> World:
        """Nodes of all kinds with pods on them; some pods have ended, are terminating or are being resized.

        Other pods are nominated to some of the nodes. kube-scheduler respects their anti-affinity only for a pod that
        the anti-affinity of an existing pod excludes from some node, so one more node has a pod that shuns all others.
        """
        names = [f"n{number}" for number in range(nodes)]
        standing = [self._standing(names) for _ in range(pods)]
        standing += [self._heir(names) for _ in range(nodes // 4)]
        alone = on("alone", pod(**shuns(labelSelector={}, namespaceSelector={})))
        return World([*map(self._node, names), node("alone")], [*standing, alone])

    def probe(self) -> Json:
        """A pod with any random constraints except those that gangsched refuses by name."""
        wishes = self._pod()
        affinity: Json = {}
        if self._chance(0.3):
            affinity = wants(*self._some(TERMS, most=3))
        if self._chance(0.2) and "runtimeClassName" not in wishes["spec"]:
            wishes["spec"]["nodeSelector"] = dict([self._one(LABELS)])
        others = self._of_pods() if self._chance(0.6) else {}
        if "affinity" in affinity and "affinity" in others:
            others["affinity"] |= affinity["affinity"]
        wishes["spec"] |= affinity | others | {"tolerations": self._some(TOLERATIONS, most=4)}
        if self._chance(0.1):
            wishes["spec"]["containers"][0] = restarting_all(wishes["spec"]["containers"][0])
        if self._chance(0.2):
            wishes["spec"]["hostUsers"] = False
        return wishes

    def scored_node(self, name: str) -> Json:
        """A node with room for every pod, which differs from others in what pods prefer."""
        return node(
            name,
            labels=dict(self._some(LABELS, most=4)),
            taints={text.partition(":")[0]: text for text in self._some(_SOFT_TAINTS, most=3, none=0.3)}.values(),
            images=dict(self._some(_IMAGES, most=3, none=0.2)),
            cpu="64",
            memory="64Gi",
            pods="500",
        )

    def choosy_probe(self) -> Json:
        """A pod that prefers some of the nodes, each time in another way."""
        containers = [container() | {"image": self._one(_IMAGES)[0]} for _ in range(self._random.randint(1, 2))]
        terms = [(self._random.randint(1, 100), *term) for term in self._some(_PREFERRED, most=3, none=0.2)]
        tolerations = self._some(_SOFT_TOLERATIONS, most=2, none=0.4)
        return pod(*containers, **likes(*terms) if terms else {}, tolerations=tolerations)

    def _of_pods(self) -> Json:
        """Required pod affinity, anti-affinity and topology spread."""
        found: Json = {}
        for kind in ("podAffinity", "podAntiAffinity"):
            if self._chance(0.4):
                found.setdefault("affinity", {}).update(self._of_kind(kind)["affinity"])
        if self._chance(0.5):
            found["topologySpreadConstraints"] = self._spread()
        return found

    def _of_kind(self, kind: str) -> Json:
        """`affinity` of one kind towards other pods."""
        terms = [self._term_of_probe() for _ in range(self._one([1, 1, 2]))]
        return _required(kind, terms)

    def _term_of_probe(self) -> Json:
        term = self._anti_affinity_term()
        if self._chance(0.3) and "tier" not in str(term.get("labelSelector", "tier")):
            term[self._one(["matchLabelKeys", "mismatchLabelKeys"])] = ["tier"]
        return term

    def _spread(self) -> list[Json]:
        found = []
        for key in self._some([HOST, ZONE, "pool"], most=2):
            spread: Json = {"topologyKey": key, "maxSkew": self._one([1, 1, 2]), "whenUnsatisfiable": "DoNotSchedule"}
            if self._chance(0.9):
                spread["labelSelector"] = self._one(_SELECTORS)
            if self._chance(0.3):
                spread["minDomains"] = self._one([1, 2, 5])
            if self._chance(0.3):
                spread["nodeAffinityPolicy"] = self._one(["Honor", "Ignore"])
            if self._chance(0.5):
                spread["nodeTaintsPolicy"] = self._one(["Honor", "Ignore"])
            if self._chance(0.3) and "tier" not in str(spread.get("labelSelector", "tier")):
                spread["matchLabelKeys"] = ["tier"]
            found.append(spread)
        return found

    def _node(self, name: str) -> Json:
        labels = dict(self._some(LABELS, most=4)) | {HOST: self._one([name, name, name, None, "twin"]), NAME: name}
        return node(
            name,
            labels=labels,
            taints={text.partition(":")[0]: text for text in self._some(_TAINTS, most=2, none=0.7)}.values(),
            cordoned=self._chance(0.1),
            cpu=self._one(["2", "3500m", "4", "0.5"]),
            memory=self._one(["2Gi", "4G", "8Gi", "3000000000500m"]),
            pods=self._one(["3", *["10"] * 8, None]),
            disk=self._one(["10Gi", "20Gi", None]),
            gpu=self._one([None, "2", "4"]),
            native=self._one([None, "3"]),
            huge=self._one([None, "64Mi"]),
            features=self._some([RESTART_ALL, HOST_USERS, "SomeOther"], most=3),
        )

    def _standing(self, names: list[str]) -> Standing:
        made = self._pod()
        if self._chance(0.2):
            made["spec"] |= shuns(**self._anti_affinity_term())
        status: Json = {"phase": self._one(["Pending", "Running", "Running", "Running", "Succeeded", "Failed"])}
        if self._chance(0.2):
            status |= self._resize()
        return on(self._one([*names, "ghost"]), made, status=status, leaving=self._chance(0.2))

    def _heir(self, names: list[str]) -> Standing:
        """A nominated pod that shuns others only on its node, the only one for which kube-scheduler considers it."""
        made = self._pod()
        if self._chance(0.5):
            made["spec"] |= shuns(**self._anti_affinity_term() | {"topologyKey": NAME})
        if self._chance(0.5):
            made["spec"]["priorityClassName"] = self._one([*PRIORITIES])
        return heir(self._one([*names, "ghost"]), made)

    def _resize(self) -> Json:
        reason = self._one(["Infeasible", "Deferred", ""])
        return resized(
            actuated=amounts(cpu=self._one(_CPU), memory=self._one(_MEMORY)),
            allocated=amounts(cpu=self._one(_CPU)),
            pending=reason,
        )

    def _pod(self) -> Json:
        spec: Json = {"hostNetwork": True} if self._chance(0.1) else {}
        if self._chance(0.3):
            spec["initContainers"] = init(
                *(self._container(policy=self._one(["", "Always"])) for _ in range(self._random.randint(1, 3)))
            )
        if self._chance(0.1):
            spec["runtimeClassName"] = self._one(["heavy", "batch"])
        containers = [self._container() for _ in range(self._one([1, 1, 2]))]
        # A pod may not name one port twice.
        ports = self._some(PORTS, most=2, none=0.75)
        for text in ports:
            self._one([*containers, *spec.get("initContainers", ())])["ports"].append(port(text))
        made = pod(*containers, namespace=self._one([*NAMESPACES]), labels=self._labels(), **spec)
        if self._chance(0.1):
            made["spec"]["resources"] = {"requests": amounts(cpu="2", memory=self._one([None, "2Gi"]))}
            # The API server requires pod-level requests to be no less than the sum of the containers'.
            for each in (*containers, *spec.get("initContainers", ())):
                each["resources"]["requests"] |= {"cpu": "250m", "memory": "100Mi"}
        return made

    def _container(self, *, policy: str = "") -> Json:
        asked = {"cpu": self._one(_CPU), "memory": self._one(_MEMORY), "disk": self._one([None, None, None, "5Gi"])}
        rarely = {"gpu": "1", "native": "1", "huge": "32Mi"}
        asked |= {resource: size for resource, size in rarely.items() if self._chance(0.06)}
        if "huge" in asked:
            asked["cpu"] = asked["cpu"] or "1"
        return container(policy=policy, **asked)

    def _labels(self) -> dict[str, str]:
        return {key: self._one(["a", "b"]) for key in ("app", "tier") if self._chance(0.6)}

    def _anti_affinity_term(self) -> Json:
        term: Json = {"topologyKey": self._one([HOST, HOST, HOST, ZONE, "pool"])}
        if self._chance(0.9):
            term["labelSelector"] = self._one(_SELECTORS)
        if self._chance(0.3):
            term["namespaces"] = self._some([*NAMESPACES], most=2)
        if self._chance(0.3):
            term["namespaceSelector"] = self._one(_NAMESPACE_SELECTORS)
        return term

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _one(self, choices: Any) -> Any:
        return self._random.choice(choices)

    def _some(self, choices: Any, *, most: int, none: float = 0.0) -> list[Any]:
        if self._chance(none):
            return []
        return self._random.sample(choices, self._random.randint(1, min(most, len(choices))))
