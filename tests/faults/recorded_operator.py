"""`gangsched` with its machine recorded: `GANGSCHED_RECORD_TO=FILE python -m tests.faults.recorded_operator run …`.

Nothing else differs: the ordinary command line starts the ordinary application.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gangsched import app, cli
from tests.faults.recording import recorder

RECORD_TO = "GANGSCHED_RECORD_TO"
"""The environment variable that names the file."""


def main() -> int:
    """Run the command line; the exit status."""
    setattr(app, "Machine", recorder(Path(os.environ[RECORD_TO])))  # noqa: B010 - a class to the type checker
    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
