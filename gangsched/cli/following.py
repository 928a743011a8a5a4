"""Looks at something again and again, and shows what has changed: `--watch`."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from http import HTTPStatus

from gangsched.cli.access import note
from gangsched.kube.errors import ApiError, ApiUnreachable, KubeError

Seen = tuple[Hashable, object, str]
"""What is looked at, by a key; what tells whether it has changed; and how it is shown."""

_EVERY_S = 2.0
_SHARE = 10
"""A look that takes long is repeated after this many times its duration, so that it is a small load on the cluster."""


async def follow(arguments: argparse.Namespace, look: Callable[[], Awaitable[Sequence[Seen]]]) -> None:
    """Print what each look has found first, and then whatever has changed since the look before. It never ends.

    An API server that does not answer, or answers that it cannot now, is told once and asked again, unless it is so at
    the first look.

    Raises:
        Whatever else `look` raises.
    """
    known: dict[Hashable, object] | None = None
    in_trouble = False
    while True:
        began, wait_s = time.monotonic(), _EVERY_S
        try:
            found = await look()
        except (ApiError, ApiUnreachable) as error:
            if known is None or not _passes(error):
                raise
            if not in_trouble:
                note(arguments, f"{error}; it is asked again")
            in_trouble, wait_s = True, max(wait_s, error.retry_after_s if isinstance(error, ApiError) else 0.0)
        else:
            in_trouble = False
            for key, state, text in found:
                if known is None or key not in known or known[key] != state:
                    print(text, flush=True)
            known = {key: state for key, state, _ in found}
        await asyncio.sleep(max(wait_s, _SHARE * (time.monotonic() - began)))


def _passes(error: KubeError) -> bool:
    """Whether it may go by while somebody watches: rights and credentials are for that person to mend."""
    busy, broken = HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR
    return not isinstance(error, ApiError) or error.status == busy or error.status >= broken
