"""Runs documentation/waiting.py on a real API server and collects the messages for fifteen kinds of waiting.

`python -m tests.integration.why_pending` (make docs) writes docs/why-pending.md with the results, and pictures of the
operator's page.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

from documentation.waiting import KINDS, NAMESPACE, Waiting
from gangsched.cli import main as gangsched
from testbed import crds
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.workloads import Json
from tests.integration.cluster import Cluster
from tests.integration.pictures import IMAGES, SETTINGS, Camera, camera
from tests.integration.waiting import until

PAGE = Path(__file__).resolve().parents[2] / "docs" / "why-pending.md"
PICTURES = IMAGES / "why-pending"
_HEAD = """<!-- Made on a real API server by make docs: change documentation/waiting.py, not this page. -->

# Gallery of groups that wait

This page shows fifteen groups that wait, so that you can recognise yours; [why does my group wait?](reasons.md) says
what to do about each reason. Each example has manifests that reproduce the situation, the condition in
`kubectl get podgroups.gangsched.io NAME -o yaml` (`status.conditions`), the [dashboard](dashboard.md), and the output
of `gangsched explain`. `kubectl describe pod` shows the same reason for each pod.
"""


@dataclass(frozen=True)
class Seen:
    """The messages for one kind: phase, reason and message of the condition, and the output of `explain`.

    `line` is the page's entry for the waiting group, and `picture` shows it.
    """

    phase: str
    reason: str
    message: str
    explained: str
    line: str = ""
    picture: bytes = b""


def play(control_plane: ControlPlane, camera: Camera) -> Mapping[str, Seen]:
    """The messages for each kind, by its name, on a control plane without nodes, within `watched`."""
    control_plane.kubectl("create", "namespace", NAMESPACE)
    control_plane.kubectl("wait", "--for=create", "serviceaccount/default", "-n", NAMESPACE)
    cluster = Cluster(control_plane, NAMESPACE)
    return {kind.name: _play(cluster, kind, camera) for kind in KINDS}


def _play(cluster: Cluster, kind: Waiting, camera: Camera) -> Seen:
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
    seen = _pictured(camera, kind, _seen(cluster, kind))
    clear(control_plane)
    return seen


def clear(control_plane: ControlPlane) -> None:
    """Delete the objects of a kind."""
    cluster = Cluster(control_plane, NAMESPACE)
    cluster.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods", grace_s=0)
    cluster.api.delete(f"/apis/gangsched.io/v1alpha1/namespaces/{NAMESPACE}/podgroups")
    until(lambda: not cluster.pods() and not cluster.groups())
    control_plane.delete_nodes()


def page(seen: Mapping[str, Seen]) -> str:
    """The text of the page docs/why-pending.md."""
    parts = [_HEAD]
    for kind in KINDS:
        told = seen[kind.name]
        parts.append(
            f"## {kind.title}\n\n{kind.what}\n\n"
            f"```yaml\n{kind.manifest}```\n\n"
            f"The condition Scheduled is False with the reason **{told.reason}**, in the phase {told.phase}:\n\n"
            f"> {told.message}\n\n"
            f"![The page: {told.line}](images/why-pending/{kind.name}.webp)\n\n"
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


def _pictured(camera: Camera, kind: Waiting, seen: Seen) -> Seen:
    """Add the content of the operator's page."""
    until(lambda: seen.message in _timeless(_about(camera, kind, "p")), within_s=30)
    # Groups of other tests may wait as well, and when a group starts is told at a time that depends on those before it.
    others = f"each => !each.querySelector('.name').textContent.startsWith('{NAMESPACE}/')"
    camera.value(f"[...document.querySelectorAll('.entries li')].filter({others}).forEach(each => each.remove())")
    camera.value("document.querySelectorAll('.entries .starts').forEach(each => each.style.display = 'none')")
    return replace(seen, line=_about(camera, kind, ".name, .chip, .ask"), picture=camera.picture(to="line-panel"))


def _about(camera: Camera, kind: Waiting, parts: str) -> str:
    """What these parts of the group's entry say, in the line or beside it; empty if it has none."""
    name = json.dumps(f"{NAMESPACE}/{kind.name}")
    found = f"[...document.querySelectorAll('.entries li')].find(each => each.dataset.gang === {name})"
    said = camera.value(f"[...({found}?.querySelectorAll({json.dumps(parts)}) ?? [])].map(each => each.textContent)")
    return " ".join(said)


def _timeless(text: str) -> str:
    """The text with its varying durations normalised."""
    return re.sub(r"\b(?:for|since|in) (?:\d+[hms])+\b", "for 5s", text)


@contextlib.contextmanager
def watched(control_plane: ControlPlane, camera: Camera) -> Iterator[None]:
    """An operator whose page the camera shows."""
    settings = control_plane.folder / "page.yaml"
    settings.write_text(SETTINGS)
    with Operator(control_plane, "--config", str(settings), leader_elect=True) as operator:
        camera.open(operator)
        yield


def main() -> None:
    """Run everything and write the page."""
    with ControlPlane() as control_plane, camera() as made:
        crds.install(control_plane)
        with watched(control_plane, made):
            seen = play(control_plane, made)
    PAGE.write_text(page(seen))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, each in seen.items():
        (PICTURES / f"{name}.webp").write_bytes(each.picture)


if __name__ == "__main__":
    main()
