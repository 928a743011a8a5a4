"""Texts that fit into the API's limits."""

from __future__ import annotations


def shortened(text: str, *, limit_bytes: int) -> str:
    """The text, or as many whole characters of its start as fit into the limit with an ellipsis."""
    encoded = text.encode()
    if len(encoded) <= limit_bytes:
        return text
    ellipsis = "…"
    return encoded[: limit_bytes - len(ellipsis.encode())].decode(errors="ignore") + ellipsis
