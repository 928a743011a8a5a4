"""Repeats a query and prints what has changed: `--watch`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from http import HTTPStatus

from gangsched.cli.cluster_access import note
from gangsched.kube.client.errors import ApiError, ApiUnreachable, KubeError

Item = tuple[Hashable, object, str]
"""An item: its key, the state whose change counts, and its text."""

_EVERY_S = 2.0
_SHARE = 10
"""A slow query is repeated after this many times its duration, which keeps the load on the cluster small."""


async def follow(arguments: argparse.Namespace, look: Callable[[], Awaitable[Sequence[Item]]]) -> None:
    """Print all items of the first look, then those that have changed since the previous look. Never returns.

    A failure of the API server that may be temporary is reported once and retried, except at the first look.

    Raises:
        Whatever else `look` raises.
    """
    previous: dict[Hashable, object] | None = None
    in_trouble = False
    gc.enable()
    while True:
        began, wait_s = time.monotonic(), _EVERY_S
        try:
            items = await look()
        except (ApiError, ApiUnreachable) as error:
            if previous is None or not _passes(error):
                raise
            if not in_trouble:
                note(arguments, f"{error}; retrying")
            in_trouble, wait_s = True, max(wait_s, error.retry_after_s if isinstance(error, ApiError) else 0.0)
        else:
            in_trouble = False
            for key, state, text in items:
                if previous is None or key not in previous or previous[key] != state:
                    print(text, flush=True)
            previous = {key: state for key, state, _ in items}
        await asyncio.sleep(max(wait_s, _SHARE * (time.monotonic() - began)))


def _passes(error: KubeError) -> bool:
    """Whether the error may be temporary. Missing rights and wrong credentials are not: the user has to fix them."""
    busy, broken = HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR
    return not isinstance(error, ApiError) or error.status == busy or error.status >= broken
