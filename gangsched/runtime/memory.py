"""The memory that this process's container may still use."""

from __future__ import annotations

import sys
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def free_memory(cgroup: Path = CGROUP) -> int:
    """Bytes that this process's container may still use; more than any machine has if there is no limit.

    The files are those of control group v2: https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files
    """
    try:
        limit = int((cgroup / "memory.max").read_text())
        used = int((cgroup / "memory.current").read_text())
        stat = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
        # The kernel reclaims inactive file pages before the limit is reached.
        return limit - used + int(stat.get("inactive_file", 0))
    except (OSError, ValueError):
        return sys.maxsize
