"""Plays testbed/waiting.py on a real API server: what people are told of fifteen kinds of waiting.

`python -m tests.integration.why_pending` (make docs) writes docs/why-pending.md with what was seen.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from gangsched.cli import main as gangsched
from testbed import crds
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.waiting import KINDS, NAMESPACE, Waiting
from testbed.workloads import Json
from tests.integration.cluster import Cluster
from tests.integration.waiting import until

PAGE = Path(__file__).resolve().parents[2] / "docs" / "why-pending.md"
_HEAD = """<!-- Made on a real API server by make docs: change testbed/waiting.py, not this page. -->

# Why is my job pending?

Fifteen kinds of waiting: how to get each, what `kubectl get podgroups.gangsched.io NAME -o yaml` says of it
(`status.conditions`), and what `gangsched explain` answers. `kubectl describe pod` shows the same reason for each pod.
What to do by reason is in [troubleshooting](troubleshooting.md).
"""


@dataclass(frozen=True)
class Seen:
    """What was told of one kind: phase, reason and message of the condition, and the output of `explain`."""

    phase: str
    reason: str
    message: str
    explained: str


def play(control_plane: ControlPlane) -> Mapping[str, Seen]:
    """What is told of each kind, by its name, on a control plane without nodes; an operator must be running."""
    control_plane.kubectl("create", "namespace", NAMESPACE)
    control_plane.kubectl("wait", "--for=create", "serviceaccount/default", "-n", NAMESPACE)
    cluster = Cluster(control_plane, NAMESPACE)
    return {kind.name: _play(cluster, kind) for kind in KINDS}


def _play(cluster: Cluster, kind: Waiting) -> Seen:
    control_plane = cluster.control_plane
    for node in kind.nodes:
        control_plane.add_node(node.name, cpu=node.cpu, labels=node.labels, taints=node.taints, extra=node.extra)
    if kind.holders:
        _apply(control_plane, kind.holders)
        until(lambda: cluster.phase("holder") == "Running", within_s=60)
    _apply(control_plane, [*kind.ahead, *kind.objects])
    until(
        lambda: _condition(cluster, kind)["reason"] == kind.reason,
        within_s=60,
        what=lambda: f"{kind.reason} of {kind.name}, but {_condition(cluster, kind)}",
    )
    seen = _seen(cluster, kind)
    clear(control_plane)
    return seen


def clear(control_plane: ControlPlane) -> None:
    """Delete what a kind has needed."""
    control_plane.kubectl(
        "delete", "podgroups.gangsched.io,pods", "--all", "--namespace", NAMESPACE, "--grace-period=0"
    )
    control_plane.delete_nodes()


def page(seen: Mapping[str, Seen]) -> str:
    """The page that shows it."""
    parts = [_HEAD]
    for kind in KINDS:
        told = seen[kind.name]
        parts.append(
            f"## {kind.title}\n\n{kind.what}\n\n"
            f"```yaml\n{kind.manifest}```\n\n"
            f"The condition Scheduled is False with the reason **{told.reason}**, in the phase {told.phase}:\n\n"
            f"> {told.message}\n\n"
            f"```text\n$ gangsched explain {NAMESPACE}/{kind.name}\n{told.explained}```\n"
        )
    return "\n".join(parts)


def _apply(control_plane: ControlPlane, objects: Sequence[Json]) -> None:
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    control_plane.kubectl("apply", "--namespace", NAMESPACE, "--filename", "-", stdin=listed)


def _condition(cluster: Cluster, kind: Waiting) -> Json:
    found = cluster.api.get(f"/apis/gangsched.io/v1alpha1/namespaces/{NAMESPACE}/podgroups/{kind.name}")
    conditions = found.get("status", {}).get("conditions", [])
    scheduled = [each for each in conditions if each["type"] == "Scheduled"]
    return scheduled[0] if scheduled else {"reason": "", "message": ""}


def _seen(cluster: Cluster, kind: Waiting) -> Seen:
    condition = _condition(cluster, kind)
    printed = io.StringIO()
    asked = ["explain", f"{NAMESPACE}/{kind.name}", "--kubeconfig", str(cluster.control_plane.kubeconfig)]
    with mock.patch.dict("os.environ", {"COLUMNS": "100"}), contextlib.redirect_stdout(printed):
        status = gangsched(asked)
    if status:
        raise RuntimeError(f"gangsched explain {kind.name} has ended with status {status}")
    return Seen(
        cluster.phase(kind.name), condition["reason"], _timeless(condition["message"]), _timeless(printed.getvalue())
    )


def _timeless(text: str) -> str:
    """Without what is another one each time."""
    return re.sub(r"\b(?:for|since|in) (?:\d+[hms])+\b", "for 5s", text)


def main() -> None:
    """Play and write."""
    with ControlPlane() as control_plane:
        crds.install(control_plane)
        with Operator(control_plane, leader_elect=True):
            PAGE.write_text(page(play(control_plane)))


if __name__ == "__main__":
    main()
