"""`python -m gangsched` is `gangsched`."""

from __future__ import annotations

import sys

from gangsched.cli import main

if __name__ == "__main__":
    sys.exit(main())
