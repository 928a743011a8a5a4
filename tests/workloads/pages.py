"""The manifests and commands of docs/workloads, which are those that the tests apply."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from testbed.controllers.matrix import ANNOTATION, AUTO, BY_HAND, EXPECTED, OWN, PAGE
from testbed.docs import ROOT
from tests.workloads.stage import Stage

_SECTIONS = {AUTO: "With nothing declared", ANNOTATION: "With nothing declared", BY_HAND: "With a PodGroup"}
_NAME = "bert"


def _section(kind: str, column: str) -> str:
    page = (ROOT / PAGE.parent / EXPECTED[kind].page).read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}
    if column == OWN:
        [own] = [text for title, text in sections.items() if title not in _SECTIONS.values()]
        return own
    return sections[_SECTIONS[column]]


def _block(language: str, section: str) -> str:
    [block] = re.findall(rf"```{language}\n(.*?)```", section, flags=re.DOTALL)
    return str(block)


def manifest(kind: str, column: str, name: str = _NAME) -> str:
    """The manifest of the kind's page for that way to declare a gang, with another name.

    For the annotation it is the one of a namespace with the label, and the annotation.
    """
    text = _block("yaml", _section(kind, column))
    text = re.sub(rf"\b{_NAME}\b", name, text)
    if column != ANNOTATION:
        return text
    manifests = list(yaml.safe_load_all(text))
    # What a TrainJob's spec has as annotations is put on the JobSet that is made for it.
    annotated = manifests[-1]["spec" if kind == "TrainJob" else "metadata"]
    annotated.setdefault("annotations", {})["gangsched.io/gang"] = "true"
    return yaml.safe_dump_all(manifests)


def follow(stage: Stage, kind: str, column: str, folder: Path) -> None:
    """Does what the page says in that namespace: the manifest is in a file, and its commands are run one by one."""
    (folder / "bert.yaml").write_text(manifest(kind, column))
    config = json.loads(stage.control_plane.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = stage.namespace
    (folder / "kubeconfig").write_text(json.dumps(config))
    path = f"{stage.control_plane.binaries}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "KUBECONFIG": str(folder / "kubeconfig"), "HOME": str(folder)}

    def run(command: str) -> bool:
        return subprocess.run(["sh", "-c", command], cwd=folder, env=env, check=False, timeout=60).returncode == 0

    for line in _block("sh", _section(kind, column)).splitlines():
        command = line.replace(" namespace default ", f" namespace {stage.namespace} ")
        # Trainer refuses a job whose runtime it has not seen yet, as its page tells.
        stage.until(functools.partial(run, command), within_s=20 if kind == "TrainJob" else 0, what=command)
