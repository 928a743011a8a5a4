"""Splits a byte stream into lines, without I/O. A watch sends one JSON document per line, of any length."""

from __future__ import annotations


class LineSplitter:
    """Takes arbitrary pieces of a stream and returns the complete lines.

    A line may have any length, and its cost is linear in the length.
    """

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that this piece completes, without their line feeds; empty lines are left out."""
        if b"\n" not in piece:
            if piece:
                self._begun.append(piece)
            return []
        first, *lines, rest = piece.split(b"\n")
        lines.insert(0, b"".join((*self._begun, first)))
        self._begun = [rest] if rest else []
        return [line for line in lines if line]
