"""examples/what-if.ipynb prints what it shows."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

NOTEBOOK = Path(__file__).resolve().parents[1] / "examples" / "what-if.ipynb"


def test_each_cell_prints_what_the_notebook_shows():
    names: dict[str, object] = {}
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec("".join(cell["source"]), names)
        assert printed.getvalue() == "".join(line for out in cell["outputs"] for line in out["text"])
    assert len(cells) == 4
