"""Runs the tests of the extra `auth-providers` in an environment of its own: ``python3 -m testbed.extras``.

.venv lacks that extra on purpose: kopf imports kubernetes-asyncio wherever it is installed (ADR 51).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from testbed.cache import SetupError, pypi_environment
from testbed.environment import ROOT, UV, UV_HASHES

TESTS = "tests/kube/test_auth_providers.py"


def main() -> int:
    """The command line; returns the status of pytest."""
    try:
        uv = pypi_environment(UV, report=print, hashes=UV_HASHES) / "bin" / "uv"
    except (SetupError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="gangsched-") as folder:
        environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
        environment |= {"UV_PYTHON_DOWNLOADS": "never", "UV_PROJECT_ENVIRONMENT": folder}
        sync = ["sync", "--locked", "--quiet", "--extra", "auth-providers", "--no-default-groups", "--group", "test"]
        subprocess.run([uv, *sync, "--python", sys.executable], cwd=ROOT, env=environment, check=True)
        python = Path(folder, "bin", "python")
        return subprocess.run([python, "-m", "pytest", TESTS], cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
