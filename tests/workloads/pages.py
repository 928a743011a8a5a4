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

from documentation.generate import ROOT
from documentation.matrix import PAGE
from testbed.controllers.expected import ANNOTATION, EXPECTED, Workload
from tests.workloads.stage import Stage

_NAME = "bert"


def blocks(row: Workload, column: str) -> tuple[str, list[str]]:
    """The manifest and the commands of the page's section for that way to declare the workload."""
    page = (ROOT / PAGE.parent / row.file).read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}
    section = sections[row.section(column)]
    [manifest], [commands] = (re.findall(rf"```{kind}\n(.*?)```", section, flags=re.DOTALL) for kind in ("yaml", "sh"))
    return str(manifest), str(commands).splitlines()


def manifest(kind: str, column: str, name: str = _NAME) -> str:
    """The manifest of the kind's page for that way to declare a gang, with another name.

    For the annotation it is the one of a namespace with the label, and the annotation.
    """
    text = re.sub(rf"\b{_NAME}\b", name, blocks(EXPECTED[kind], column)[0])
    if column != ANNOTATION:
        return text
    manifests = list(yaml.safe_load_all(text))
    manifests[-1]["metadata"].setdefault("annotations", {})["gangsched.io/gang"] = "true"
    return yaml.safe_dump_all(manifests)


def follow(stage: Stage, row: Workload, column: str, text: str, folder: Path) -> None:
    """Follows the page in that namespace: writes `text` to its file and runs its commands one by one."""
    (folder / "bert.yaml").write_text(text)
    config = json.loads(stage.control_plane.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = stage.namespace
    (folder / "kubeconfig").write_text(json.dumps(config))
    path = f"{stage.control_plane.binaries}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "KUBECONFIG": str(folder / "kubeconfig"), "HOME": str(folder)}

    def run(command: str) -> bool:
        return subprocess.run(["sh", "-c", command], cwd=folder, env=env, check=False, timeout=60).returncode == 0

    for line in blocks(row, column)[1]:
        command = line.replace(" namespace default ", f" namespace {stage.namespace} ")
        # Trainer refuses a job whose runtime it has not seen yet, as its page says.
        stage.until(functools.partial(run, command), within_s=20 if row.controller == "trainer" else 0, what=command)
