"""examples/what-if.ipynb and docs/python.md print the output that they show."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "examples" / "what-if.ipynb"
PAGE = ROOT / "docs" / "python.md"


def test_each_cell_prints_what_the_notebook_shows():
    names: dict[str, object] = {}
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec("".join(cell["source"]), names)
        assert printed.getvalue() == "".join(line for out in cell["outputs"] for line in out["text"])
    assert len(cells) == 4


def test_the_page_about_the_python_interface_prints_what_it_shows():
    [(program, shown)] = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    assert printed.getvalue() == shown
