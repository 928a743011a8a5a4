"""docs/fidelity.md: gangsched's code for each filter of kube-scheduler's default profile, and how often both agree."""

from __future__ import annotations

import inspect
from pathlib import Path

import msgspec

from documentation import figures
from gangsched.core.constraints.constraint import Constraint
from gangsched.core.constraints.registry import CONSTRAINTS

FIGURES = Path("docs/fidelity.jsonl")
_RENAMED = {
    "NodeResources": "NodeResourcesFit",
    "TopologySpread": "PodTopologySpread",
    "CsiDrivers": "NodeVolumeLimits",
}

FILTERS = {
    "NodeName": "nothing to decide: a pod that names its node is already bound",
    "NodeUnschedulable": "",
    "TaintToleration": "",
    "NodeAffinity": "",
    "NodePorts": "",
    "NodeResourcesFit": (
        "where some nodes list an extended resource that a DeviceClass provides, only they take the pod, and the "
        "refusal of others names the class: devices stand for a resource only if no node lists it"
    ),
    "VolumeRestrictions": "",
    "NodeVolumeLimits": "",
    "VolumeBinding": (
        "a pod whose volume is of a kind that CSI drivers have replaced is refused (`NotSupported`); storage that "
        "gangsched has reserved for other members and gangs is deducted from a CSIStorageCapacity until it is "
        "provisioned, whereas kube-scheduler offers all of it to each pod; of several volumes that name one claim in "
        "`claimRef` kube-scheduler takes any, gangsched the first by name; while a claim that several nodes' pods may "
        "use is being bound, the other members that use it get nodes and are bound after it, whereas kube-scheduler "
        "refuses them until then"
    ),
    "VolumeZone": "",
    "PodTopologySpread": "",
    "InterPodAffinity": (
        "anti-affinity of a nominated pod excludes its whole domain, whereas kube-scheduler excludes at most its node; "
        "a pod with more than 8 terms of affinity and spread is refused by name (`NotSupported`); before 1.37, "
        "kube-scheduler takes a pod's own `namespaceSelector` with NotIn or DoesNotExist to match every namespace"
    ),
    "DynamicResources": (
        "gangsched goes by the feature gates that are on by default in Kubernetes 1.37, and of the others only by "
        "DRAWorkloadResourceClaims: attributes that are lists, derived attributes, compatibility groups and devices "
        "that provide CPU or memory are not known; members of one gang choose their devices again together if the "
        "first choices leave none for another, whereas kube-scheduler keeps the first; a claim of another scheduler "
        "whose binding conditions take too long is waited for like our own; "
        "expressions with transformMap, transformMapEntry, the functions for URLs and named formats, string() of an "
        "address, or format of anything but texts, whole numbers, truth values and %f refuse the pod, because the CEL "
        "library lacks them and they are of no use for devices, and so do a pattern of find that could take long, "
        "lists.range of more than 100 or of something that is not a constant, more than 32 levels of nesting, and "
        "a cel.bind, optMap or sortBy after a loop that may end early and does not contain it, which version 0.1.3 of "
        "the library misreads; isInteger "
        "is true for 1.0 and 1000m; an expression that fails for some device refuses the pod on all nodes, whereas "
        "kube-scheduler may find a node first; a claim that 256 pods share, or one of whose devices "
        "another claim has too, refuses all nodes"
    ),
    "NodeDeclaredFeatures": "",
}
"""The filters of the default profile in kube-scheduler's order, each with its uncovered parts and the reasons."""

_HEAD = """# Fidelity to kube-scheduler

This page says how gangsched's decisions about nodes compare with kube-scheduler's. A node accepts a member of a gang
exactly if the filters of kube-scheduler's default profile would accept it there. To verify this, tests run those
filters in a program built from kube-scheduler's source (hack/control-plane/judge) on the same pods and clusters as
gangsched. A pair is one pod in one random cluster of at least ten nodes with pods, some of which are terminating, have
ended, are being resized or are nominated. Both must accept the same nodes.

- `tests/integration/test_judged.py` compares the pairs below in `make test`, and 20 times as many others in
  `make nightly`. It shows that a constraint which accepts everything is detected, and has the known differences as
  cases.
- `tests/integration/test_judged_gangs.py` places random gangs. Each gang that gangsched places is checked pod by pod,
  with the earlier members where they were placed; for each gang that it refuses, every possible placement is checked.
- `tests/integration/test_oracle.py`, `tests/integration/test_oracle_volumes.py` and
  `tests/integration/test_oracle_devices.py` have a named case for each rule and edge case, and for each function of the
  expressions that select devices, compared in the same way.
- `tests/integration/test_judge.py` shows that the program agrees with the running kube-scheduler.
"""
_DECIDED = """
## Filters

| Filter | Decided in | Pairs | Disagreements | Not covered, and why |
| --- | --- | ---: | ---: | --- |
"""
_PAIRS = """
## Pairs compared

Each pod is designed to exercise one filter. The table shows in how many pairs the filter refused a node, and in how
many a node was accepted.

| Exercises | Filter | Pairs | Refused a node | Accepted a node | Disagreements |
| --- | --- | ---: | ---: | ---: | ---: |
"""


SCORES = {
    "TaintToleration": "",
    "NodeAffinity": "a malformed preferred term counts for no node, whereas kube-scheduler rejects the pod",
    "PodTopologySpread": (
        "the cluster's default constraints do not count: their selector comes from the Services, "
        "ReplicationControllers, ReplicaSets and StatefulSets of a pod, which would have to be watched in all "
        "namespaces, and a group's strategy decides whether it spreads; only the first 8 of a pod's constraints count"
    ),
    "InterPodAffinity": "only the 8 heaviest terms of affinity and of anti-affinity count",
    "ImageLocality": "it orders only nodes that are otherwise equal",
    "NodeResourcesFit": "the strategy of the group takes its place",
    "NodeResourcesBalancedAllocation": "the strategy of the group takes its place",
}
"""The scores of the default profile, each with its uncovered parts and the reasons."""

_SCORED = """
## Scores

Scores order the nodes that accept a member ([where members go](strategies.md)). They are normalised over all nodes that
accept the member, so they equal kube-scheduler's numbers if all of these nodes have room.
`tests/integration/test_scores_of_pods.py` compares PodTopologySpread and InterPodAffinity, 300 random pods each and
named cases; `tests/integration/test_scores.py` compares the others. Each number must be the same.

| Score | Decided in | Not covered, and why |
| --- | --- | --- |
"""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The number of comparisons with pods aimed at one filter (empty: at any), and their results."""

    filter: str
    aim: str
    pairs: int
    refusing: int
    accepting: int
    disagreements: int


def read(root: Path) -> list[Figures]:
    """The committed figures."""
    return figures.read(root / FIGURES, Figures)


def filter_of(constraint: type[Constraint]) -> str:
    """kube-scheduler's name for the filter that the constraint implements."""
    return _RENAMED.get(constraint.__name__, constraint.__name__)


def page(root: Path) -> str:
    """The whole page, generated from the code and the committed figures."""
    found = read(root)
    files: dict[str, str] = {}
    for each in CONSTRAINTS:
        files[filter_of(each)] = ", ".join(filter(None, [files.get(filter_of(each)), _file(each, root)]))
    decided = [_decided(name, files.get(name, "—"), why, found) for name, why in FILTERS.items()]
    judged = [
        f"| {each.aim} | {each.filter or 'any'} | {each.pairs} | {each.refusing} | {each.accepting} "
        f"| {each.disagreements} |"
        for each in found
    ]
    files |= {"InterPodAffinity": files["PodPreferences"], "NodeResourcesFit": "—"}
    scored = [f"| {name} | {files.get(name, '—')} | {why or 'nothing is left out'} |" for name, why in SCORES.items()]
    tables = ((_DECIDED, decided), (_PAIRS, judged), (_SCORED, scored))
    return _HEAD + "".join(head + "\n".join(lines) + "\n" for head, lines in tables)


def _decided(name: str, file: str, why: str, found: list[Figures]) -> str:
    own = [each for each in found if each.filter == name]
    pairs, disagreements = (sum(each.pairs for each in own), sum(each.disagreements for each in own)) if own else "——"
    return f"| {name} | {file} | {pairs} | {disagreements} | {why or 'nothing is left out'} |"


def _file(constraint: type[Constraint], root: Path) -> str:
    return f"`{Path(inspect.getfile(constraint)).relative_to(root)}`"
