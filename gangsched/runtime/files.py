"""How many files, and so connections, this process may have open at once."""

from __future__ import annotations

import resource

from gangsched.config.settings import InvalidConfig

SPARE_FILES = 128
"""For everything but the writes in flight: watches, probes, the lease, log and libraries take less than 40."""


def allow_connections(bind_concurrency: int) -> None:
    """Have room for a connection for each write in flight: raise the process's own limit as far as it may.

    Many systems start a process with a limit of 1,024 that it may raise itself, for programs that use select(2).

    Raises:
        InvalidConfig: the limit that only an administrator can raise is too low.
    """
    needed = bind_concurrency + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise InvalidConfig(
            f"bindConcurrency: {bind_concurrency} writes in flight need {needed} open files, and this process may have "
            f"{hard}: raise the hard limit of open files (ulimit -Hn shows it) or lower bindConcurrency"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
