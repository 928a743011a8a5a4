"""gangsched from the checkout and from another commit, each as an executable program."""

from __future__ import annotations

import filecmp
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

Program = tuple[str, ...]

ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def base(ref: str) -> Iterator[Path]:
    """Check the commit out in a worktree outside the checkout; it is deleted after the block.

    Raises:
        subprocess.CalledProcessError: git does not know the commit; git has printed the error.
    """
    with TemporaryDirectory(prefix="gangsched-base-") as folder:
        tree = Path(folder, "tree")
        _run("git", "-C", str(ROOT), "worktree", "add", "--quiet", "--detach", str(tree), ref)
        try:
            yield tree
        finally:
            _run("git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree))


def program(tree: Path) -> Program:
    """The command that runs this tree's gangsched, with this process's Python if the dependencies are the same.

    Raises:
        RuntimeError: the command would run another tree's gangsched.
        subprocess.CalledProcessError: it, or its environment, cannot be built; the failed command has printed why.
    """
    python = sys.executable
    if not filecmp.cmp(tree / "uv.lock", ROOT / "uv.lock", shallow=False):
        _run(python, "-m", "testbed.environment", folder=tree)
        python = str(tree / ".venv" / "bin" / "python")
    # -P keeps the current directory off the module path.
    called = ("env", f"PYTHONPATH={tree}", python, "-P")
    # This also compiles the modules, so that the first start takes no longer than later ones.
    found = _run(*called, "-c", "import gangsched.app; print(gangsched.app.__file__)")
    if not Path(found.strip()).is_relative_to(tree):
        raise RuntimeError(f"{found.strip()} would be measured, which does not belong to {tree}")
    return (*called, "-m", "gangsched")


def _run(*command: str, folder: Path = ROOT) -> str:
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
