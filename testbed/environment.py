"""Prepares the project's Python environment in .venv from the committed lock: ``python3 -m testbed.environment``.

uv comes from PyPI into the cache, so that a machine needs nothing but Python. Runs on a bare Python 3.11.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from testbed.cache import SetupError, pypi_environment

ROOT = Path(__file__).resolve().parent.parent
UV = "uv==0.13.8"
UV_HASHES = ROOT / "hack" / "uv.txt"
READY = ROOT / ".venv" / ".ready"
"""Newer than the lock when .venv is up to date; the Makefile compares the two."""


def prepare() -> None:
    """Brings .venv up to date with uv.lock.

    Raises:
        SetupError: uv could not be installed, or could not install the dependencies.
    """
    uv = pypi_environment(UV, report=print, hashes=UV_HASHES) / "bin" / "uv"
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    sync = subprocess.run(
        [str(uv), "sync", "--locked", "--quiet", "--python", sys.executable],
        cwd=ROOT,
        env=environment | {"UV_PYTHON_DOWNLOADS": "never", "UV_PROJECT_ENVIRONMENT": str(READY.parent)},
        check=False,
    )
    if sync.returncode != 0:
        raise SetupError(
            "uv could not install what uv.lock names, for the reason above: where PyPI is out of reach set "
            f"UV_DEFAULT_INDEX to a mirror, where pyproject.toml was changed run {uv} lock"
        )
    READY.touch()


def main() -> int:
    """The command line; a failure is one sentence on standard error."""
    print("preparing .venv (once; later calls find it ready)", flush=True)
    try:
        prepare()
    except (SetupError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted: call it again, and it goes on.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
