"""The tables of docs/security.md: every right of the chart, verb by verb, with its reason.

The rules are read from the chart. A verb without a reason is an error, and so is a reason without its verb. make docs
and the tests therefore reject a new right that has no reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from documentation.filling import put

CHART = Path(__file__).resolve().parent.parent / "charts" / "gangsched"
Reasons = Mapping[str, Mapping[str, str]]
"""Reasons by resource (with its API group) and by verbs, separated by spaces."""

_READ = "list watch"
CLUSTER: Reasons = {
    "pods": {
        _READ: "To schedule its own pods; the pods of all namespaces count towards the use of their nodes.",
        "get": "Reads the pod after a binding or an eviction whose response was lost, before anything else is decided.",
    },
    "pods/binding": {"create": "Binds a member to its node."},
    "pods/eviction": {
        "create": "Rolls back a group that stays partly bound. Evictions respect PodDisruptionBudgets; pods are never "
        "deleted."
    },
    "pods/status": {
        "patch": "Writes the condition `PodScheduled`, which tells users and autoscalers why a pod waits, and the "
        "name of the claim that was created for a pod's devices."
    },
    "nodes": {_READ: "Room, labels, taints and images of the nodes. Nodes are never written."},
    "namespaces": {
        _READ: "Labels of namespaces: for affinity terms with a namespaceSelector, and `gangsched.io/gang: auto`."
    },
    "persistentvolumeclaims": {
        _READ: "Where the volumes of members can be.",
        "get": "Reads a claim just before it is written; the write is conditional on that version.",
        "patch": "Names the node for which a volume is provisioned (annotation `volume.kubernetes.io/selected-node`).",
    },
    "persistentvolumes": {
        _READ: "Where the volumes of members can be.",
        "get": "As for claims.",
        "patch": "Reserves a volume for a claim (`spec.claimRef`).",
    },
    "scheduling.k8s.io/priorityclasses": {_READ: "The value of a PodGroup's `priorityClassName`."},
    "limitranges": {_READ: "What the containers of pods that are created later will request."},
    "node.k8s.io/runtimeclasses": {_READ: "What pods that are created later will take, and where they may run."},
    "storage.k8s.io/storageclasses": {_READ: "When volumes are bound, and in which topology."},
    "storage.k8s.io/csinodes": {_READ: "How many volumes of a driver a node can attach."},
    "storage.k8s.io/volumeattachments": {_READ: "Which volumes are attached to which node."},
    "storage.k8s.io/csidrivers": {_READ: "Whether a driver reports its capacity."},
    "storage.k8s.io/csistoragecapacities": {_READ: "How much room for volumes there is in which topology."},
    "resource.k8s.io/deviceclasses": {_READ: "Which devices a claim of the class may take."},
    "resource.k8s.io/resourceslices": {_READ: "Which devices the nodes have."},
    "resource.k8s.io/devicetaintrules": {_READ: "Which devices administrators have tainted."},
    "resource.k8s.io/resourceclaims": {
        _READ: "Which devices the members ask for, and which are taken.",
        "get": "Reads a claim just before it is written; the write is conditional on that version.",
        "create": "Creates the claim of a pod that requests an extended resource that a DeviceClass provides.",
        "patch": "Sets the finalizer that keeps an allocated claim, and marks what gangsched has written.",
        "delete": "Deletes such a claim when its pod is not bound.",
    },
    "resource.k8s.io/resourceclaims/status": {"patch": "Writes which devices a claim gets."},
    "resource.k8s.io/resourceclaims/binding": {
        "patch": "The API server checks this when the status of a claim is written; no request names the resource."
    },
    "gangsched.io/podgroups": {
        _READ: "The groups.",
        "create": "Creates a PodGroup for groups without one, to record places that must survive a restart.",
        "delete": "Deletes a finished group after its time to live, if no pod that names it lives: only with "
        "`config.podGroups.deleteFinished`.",
    },
    "gangsched.io/podgroups/status": {"patch": "Writes phase, conditions and the record of a group."},
    "events.k8s.io/events": {"create": "Writes Events on groups and pods."},
    "batch/jobs": {
        "get": "Reads the Job of a pod before an eviction: no pod is evicted if its Job would count that as a failure."
    },
    "policy/poddisruptionbudgets": {
        _READ: "How many pods may be evicted for a group of higher priority: not with "
        "`config.preemption.enabled: false`."
    },
    "apiextensions.k8s.io/customresourcedefinitions": {
        _READ: "Whether gangsched's own CustomResourceDefinition, `podgroups.gangsched.io` alone, is as new as this "
        "version."
    },
    "scheduling.k8s.io/podgroups/status": {
        "patch": "Writes the condition that says whether the group was scheduled, for groups all of whose pods are its "
        "own: only with the dialect `native`, and not with `config.native.writeCondition: false`."
    },
    "coordination.k8s.io/leases": {
        "get": "Whether Volcano's scheduler leads: only with `config.volcano.writePhase`, and only for this one Lease."
    },
}
LEASE: Reasons = {
    "coordination.k8s.io/leases": {
        "get patch": "Which replica leads; the right names this one Lease.",
        "create": "Creates the Lease. `create` cannot be limited to a name.",
    },
}
VOLCANO: Reasons = {
    "scheduling.volcano.sh/podgroups": {"patch": "The phase, where the kind has no subresource `status`."},
    "scheduling.volcano.sh/podgroups/status": {"patch": "The phase, for which Volcano's controllers wait."},
}
VIEW: Reasons = {"gangsched.io/podgroups": {"get list watch": "Users who may view a namespace see its groups."}}
EDIT: Reasons = {
    "gangsched.io/podgroups": {
        "create update patch delete deletecollection": "Users who may edit a namespace can declare groups. "
        "They cannot write the status: only the operator does."
    }
}
GROUPS: Mapping[str, str] = {
    _READ: "The groups of other systems, for the dialects in the value `dialects`.",
}
DEMANDS: Mapping[str, str] = {
    _READ: "The Demand objects that exist: only with the dialect `palantir`, which the chart leaves out.",
    "create patch delete": "Requests nodes from palantir's autoscaler, and withdraws that: only with this dialect.",
}
WORKLOADS: Mapping[str, str] = {
    _READ: "Whether their pods are gangs, and of what size, for the kinds in the value `workloads`.",
}

_PART = re.compile(r"^---$", flags=re.MULTILINE)
_RULE = re.compile(
    r"^- apiGroups: \[(.*)\]\n  resources: \[(.*)\]\n(?:  resourceNames: .*\n)?  verbs: \[(.*)\]$", flags=re.MULTILINE
)
_RANGED = "{{ ."
"""Marks the chart's rules that are filled from the files of dialects and workloads, and from `workloads.custom`."""


class SecurityError(Exception):
    """The chart and the reasons disagree; the message names the place."""


class Rule(NamedTuple):
    """A rule of a role: verbs of resources, each with its API group."""

    resources: tuple[str, ...]
    verbs: tuple[str, ...]


def with_tables(page: str) -> str:
    """The page with its tables, each after a comment that names it."""
    return filled(page, (CHART / "templates" / "rbac.yaml").read_text(encoding="utf-8"))


def filled(page: str, template: str) -> str:
    """The page with the tables of this template's roles.

    Raises:
        SecurityError: a verb has no reason, or a reason has no verb.
    """
    cluster, lease, volcano, view, edit = _roles(template)
    tables = {
        "the cluster": [*_explained(cluster, CLUSTER), *_further()],
        "the Lease": _explained(lease, LEASE),
        "Volcano": _explained(volcano, VOLCANO),
        "users": [*_explained(view, VIEW, "view: "), *_explained(edit, EDIT, "edit: ")],
    }
    for name, rows in tables.items():
        head = f"<!-- Rights in {name}, made by make docs from charts/gangsched and documentation/security.py -->"
        lines = [head, "", "| resource | verbs | why |", "|---|---|---|", *rows, ""]
        page = put(rf"<!-- Rights in {name}, .*\n\n(\|.*\n)*", "\n".join(lines), page)
    return page


def _roles(template: str) -> Iterator[list[Rule]]:
    """The rules of each role, in the order of the template."""
    for part in _PART.split(template):
        if re.search(r"^kind: (Cluster)?Role$", part, flags=re.MULTILINE):
            rules = [
                Rule(tuple(_resources(groups, names)), _words(verbs)) for groups, names, verbs in _RULE.findall(part)
            ]
            if len(rules) != part.count("verbs:"):
                raise SecurityError(
                    "templates/rbac.yaml has a rule that is not written as the others are: put its keys so"
                )
            yield [rule for rule in rules if not rule.resources[0].startswith(_RANGED)]


def _resources(groups: str, names: str) -> Iterator[str]:
    for group in _words(groups):
        for name in _words(names):
            yield f"{group}/{name}" if group.strip('"') else name


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


def _explained(rules: Sequence[Rule], reasons: Reasons, before: str = "") -> list[str]:
    """The table's rows, one for each resource and reason."""
    asked = [(resource, verb) for rule in rules for resource in rule.resources for verb in rule.verbs]
    given = [(resource, verb) for resource, why in reasons.items() for verbs in why for verb in verbs.split()]
    _compare(asked, given)
    return [
        _row(f"{before}`{resource}`", verbs, why) for resource, said in reasons.items() for verbs, why in said.items()
    ]


def _compare(asked: Sequence[tuple[str, str]], given: Sequence[tuple[str, str]]) -> None:
    for found, other, problem in (
        (asked, given, "the chart grants {} of {} without a reason: say why in documentation/security.py"),
        (
            given,
            asked,
            "documentation/security.py has a reason for {} of {}, which the chart does not grant: remove it",
        ),
    ):
        for resource, verb in found:
            if (resource, verb) not in other:
                raise SecurityError(problem.format(verb, resource))


def _further() -> Iterator[str]:
    """The rights that the chosen dialects and workloads add: a row for each reason."""
    rows: dict[tuple[str, str], list[str]] = {}
    for file in ("dialects", "workloads"):
        found = yaml.safe_load((CHART / "files" / f"{file}.yaml").read_text(encoding="utf-8"))
        for rule in (rule for rules in found.values() for rule in rules):
            reasons = WORKLOADS if file == "workloads" else DEMANDS if rule["resource"] == "demands" else GROUPS
            resource = f"{rule['group']}/{rule['resource']}"
            given = [verb for verbs in reasons for verb in verbs.split()]
            _compare([(resource, verb) for verb in rule["verbs"]], [(resource, verb) for verb in given])
            for verbs, why in reasons.items():
                rows.setdefault((verbs, why), []).append(f"`{resource}`")
    yield from (_row(", ".join(resources), verbs, why) for (verbs, why), resources in rows.items())
    yield from (_row("the kinds in the value `workloads.custom`", *each) for each in WORKLOADS.items())


def _row(resource: str, verbs: str, why: str) -> str:
    return f"| {resource} | {', '.join(verbs.split())} | {why} |"
