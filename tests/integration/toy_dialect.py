"""A copy of this repository with one additional dialect: one row in the registry and one file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = Path("gangsched/config/dialects.py")
_END = '    )\n}\n"""All dialects'
_ROW = """        DialectRow(
            name="toy",
            whose="Toys, for a test",
            group=(Key("toy.example/band", label=True),),
            minimum=(Key("toy.example/size"),),
            resources=(CustomResource(group="toy.example", versions=("v2", "v1"), plural="bands"),),
        ),
"""
_FILE = """
from msgspec import Struct

from gangsched.core.objects.podgroup import GroupSpec
from gangsched.kube.dialects.dialect import Dialect
from gangsched.kube.dialects.dialect_fields import honoured
from gangsched.kube.dialects.dialect_kind import Kind


_FIELDS = (honoured("bandSize", "the minimum"),)


class _Spec(Struct, rename="camel"):
    band_size: int = 1


def dialect(row, _):
    terms = lambda spec, _: GroupSpec(min_member=spec.band_size)
    return Dialect(row=row, kind=Kind(resource=row.resources[0], spec=_Spec, terms=terms, fields=_FIELDS))
"""


def tree_with_a_toy(folder: Path) -> Path:
    """Make the copy in the folder; nothing is generated in it yet."""
    for part in ("gangsched", "testbed", "documentation", "charts", "crds", "docs", "examples", "hack", "manifests"):
        # With the cached bytecode, without which Python compiles a thousand modules.
        shutil.copytree(ROOT / part, folder / part)
    shutil.copy(ROOT / "README.md", folder)
    rows = (ROOT / REGISTRY).read_text()
    assert rows.count(_END) == 1
    (folder / REGISTRY).write_text(rows.replace(_END, _ROW + _END))
    (folder / "gangsched" / "kube" / "dialects" / "toy.py").write_text(_FILE)
    return folder


def run_python(tree: Path, *arguments: str) -> str:
    """Run Python with these arguments and the packages of the tree; return its output."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
