"""aiohttp, imported without the certificates of the system's authorities.

On import it loads them twice, which takes a tenth of the start of the operator and of each command, for two contexts
that nobody here uses: each session has its own. They trust nobody now, so a connection that used one would fail.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

_LOADING = ("load_default_certs", "set_default_verify_paths")


@contextmanager
def _without_authorities() -> Iterator[None]:
    """Contexts that are made in the block trust nobody."""
    own = {name: ssl.SSLContext.__dict__.get(name) for name in _LOADING}
    for name in _LOADING:
        setattr(ssl.SSLContext, name, lambda *_: None)
    try:
        yield
    finally:
        for name, method in own.items():
            if method is None:
                delattr(ssl.SSLContext, name)
            else:
                setattr(ssl.SSLContext, name, method)


with _without_authorities():
    import aiohttp

__all__ = ["aiohttp"]
