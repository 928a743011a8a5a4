"""The child process that decides on a copy of the cluster: what it inherits, what it may use, and what is said of it.

`what_if` starts it, `gangsched.whatif.subprocess_worker` runs in it. Manifests come from a browser, so the kernel
limits what they may cost, and the environment is a list of what passes: no secret of ours is in it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path

PASSES = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")
"""The variables that pass, which Python and its libraries need."""
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Further threads of numerical libraries would use up the limit of the memory."""
_MODULE = "gangsched.whatif.subprocess_worker"

MOST_MEMORY = 1 << 30
"""The most memory, in bytes, that the child gets; less if the container has not twice as much left."""
LEAST_MEMORY = 256 << 20
"""With less memory, in bytes, the child is not started."""
CPU_S = 60
"""Limit of its processor time, in seconds."""
COMPARED_CPU_S = 4.0
"""Strategies are compared if a decision took less processor time, in seconds: there are five of them."""
WITHIN_S = 90.0
"""Limit of the time, in seconds, until it has answered."""
TURN_S = 2.0
"""How long, in seconds, a question waits for the one before it. One whose browser has cancelled it ends within that."""
MOST_GROUPS = 200
"""Maximum number of groups of the manifests in an answer; the others are counted. It limits problems too."""
_NICENESS = 5
"""A third of the weight of its parent. With a tenth, other work on a busy machine kept it from answering in time."""
_FIRST_TO_KILL = "1000"

BUSY = "Another question is being answered: wait for its answer and ask again."
NO_ROOM = (
    f"The memory limit of this container leaves too little room for a copy of the cluster: raise it by "
    f"{LEAST_MEMORY * 2 >> 20} MiB, or run gangsched dashboard on your own machine."
)
NOT_TEXT = "The manifest is not UTF-8 text: drop a YAML or JSON file."
NO_GROUP = "This group no longer exists."


def too_slow(within_s: float) -> str:
    """The message about a child that has not answered within that time."""
    return f"It took longer than {within_s:.0f} s: try a part of it."


def too_much_processor_time(cpu_s: int) -> str:
    """The message about a child that the kernel has ended for its processor time."""
    return f"It took more than {cpu_s} s of processor time, and was ended: try a part of it."


def too_much_memory(memory: int) -> str:
    """The message of a child that needs more memory than this, in bytes."""
    return f"It needs more memory than the allowed {memory >> 20} MiB: try a part of it."


def no_answer(status: int) -> str:
    """The message about a child that ended with this status and said nothing."""
    return (
        f"The process that tried it ended without an answer (status {status}): it took too much memory, or the "
        "manifest is nested too deeply. Try a part of it."
    )


def failed(error: Exception) -> str:
    """The message of a child with a bug."""
    return f"The decision failed, which is a bug; please report it: {error!r}"


def memory_for(free: int) -> int:
    """The limit of the child's memory if this much is free, in bytes; 0 if that is too little."""
    memory = min(MOST_MEMORY, free // 2)
    return memory if memory >= LEAST_MEMORY else 0


def command(memory: int, cpu_s: int) -> tuple[str, ...]:
    """The command of a child with these limits."""
    # Without -P, Python would import from the current directory.
    return sys.executable, "-P", "-m", _MODULE, str(memory), str(cpu_s)


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """The child's environment if ours is this one."""
    return _ONE_THREAD | {name: own[name] for name in PASSES if name in own}


def limit(memory: int, cpu_s: int) -> None:
    """Limit this process, the child: it gives way to its parent, and is killed before it."""
    os.nice(_NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_KILL, encoding="ascii")
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    # The system sends SIGXCPU at the soft limit, by which the parent knows the cause, and SIGKILL at the hard limit.
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
