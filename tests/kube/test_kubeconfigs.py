"""The library that reads kubeconfigs: only that part is imported, and other programs can still import the rest."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

LIBRARY = "kubernetes_asyncio"
MODULES = f"[name for name in sys.modules if name.partition('.')[0] == {LIBRARY!r}]"


def told(*lines: str) -> str:
    """The output of these lines in a new Python."""
    program = "\n".join(("import sys", *lines))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_nothing_else_of_the_library_is_imported():
    seen = told(
        "seen = set()",
        "sys.addaudithook(lambda event, given: seen.add(given[0]) if event == 'import' else None)",
        "import gangsched.kube.client.credentials",
        f"print(*sorted(name for name in seen if name.startswith({LIBRARY!r})))",
    ).split()
    rest = {name.split(".")[1] for name in seen if "." in name} - {"client", "config"}
    assert f"{LIBRARY}.config.kube_config" in seen
    assert not rest
    assert not [name for name in seen if name.startswith((f"{LIBRARY}.client.api", f"{LIBRARY}.client.models"))]


def test_a_plug_in_that_imports_the_library_has_all_of_it():
    assert told("import gangsched.kube.client.credentials", f"print({MODULES})") == "[]"
    pod = told(
        "import gangsched.kube.client.credentials", f"import {LIBRARY}.client", f"print({LIBRARY}.client.V1Pod().kind)"
    )
    assert pod == "None"


def test_a_library_that_was_imported_before_stays():
    same = told(
        f"import {LIBRARY}.client as before",
        f"known = {MODULES}",
        "import gangsched.kube.client.credentials",
        f"print(sys.modules['{LIBRARY}.client'] is before and known == {MODULES})",
    )
    assert same == "True"
