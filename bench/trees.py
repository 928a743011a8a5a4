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
    """That commit in a worktree outside of the checkout, which is deleted after the block.

    Raises:
        subprocess.CalledProcessError: git does not know the commit; it has said so.
    """
    with TemporaryDirectory(prefix="gangsched-base-") as folder:
        tree = Path(folder, "tree")
        _run("git", "-C", str(ROOT), "worktree", "add", "--quiet", "--detach", str(tree), ref)
        try:
            yield tree
        finally:
            _run("git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree))


def program(tree: Path) -> Program:
    """How gangsched of this tree is called: by this process's Python where the dependencies are the same.

    Raises:
        RuntimeError: it is another tree's that is called.
        subprocess.CalledProcessError: it, or its environment, cannot be made; what was called has said why.
    """
    python = sys.executable
    if not filecmp.cmp(tree / "uv.lock", ROOT / "uv.lock", shallow=False):
        _run(python, "-m", "testbed.environment", folder=tree)
        python = str(tree / ".venv" / "bin" / "python")
    # With -P the folder that one stands in is not looked at.
    called = ("env", f"PYTHONPATH={tree}", python, "-P")
    # Also compiles it, so that the first start takes no longer than the next.
    found = _run(*called, "-c", "import gangsched.app; print(gangsched.app.__file__)")
    if not Path(found.strip()).is_relative_to(tree):
        raise RuntimeError(f"{found.strip()} would be measured, which does not belong to {tree}")
    return (*called, "-m", "gangsched")


def _run(*command: str, folder: Path = ROOT) -> str:
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
