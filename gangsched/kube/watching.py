"""Cutting a byte stream into lines, without I/O: a watch sends one JSON document per line, however long."""

from __future__ import annotations


class LineSplitter:
    """Takes pieces cut anywhere and gives back the lines that are complete.

    There is no limit on the length of a line, and its cost is linear in it.
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
