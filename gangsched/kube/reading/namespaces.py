"""Finds out whether a namespace exists."""

from __future__ import annotations

import msgspec

from gangsched.kube import wire
from gangsched.kube.client.errors import UNREADABLE, KubeError
from gangsched.kube.client.session import ApiSession
from gangsched.kube.reading.watched_resources import NAMESPACES

_PAGE = msgspec.json.Decoder(wire.Page)


async def is_missing(session: ApiSession, name: str) -> bool:
    """Whether there is no such namespace; False also if the API server does not answer."""
    params = {"fieldSelector": f"metadata.name={name}", "limit": "1"}
    try:
        response = await session.request("GET", NAMESPACES.path, params=params)
        return not _PAGE.decode(response.checked().body).items
    except (KubeError, *UNREADABLE):
        return False
