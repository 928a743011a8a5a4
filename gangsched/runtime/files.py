"""The limit of open files, and so of connections, of this process."""

from __future__ import annotations

import resource

from gangsched.config.invalid_config import InvalidConfig

SPARE_FILES = 128
"""Files for everything except writes in flight: watches, probes, the lease, log and libraries take less than 40."""


def allow_connections(bind_concurrency: int) -> None:
    """Raise the process's soft limit of open files, so that each write in flight can have a connection.

    Many systems start a process with a soft limit of 1,024, for programs that use select(2).

    Raises:
        InvalidConfig: the hard limit, which only an administrator can raise, is too low.
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
