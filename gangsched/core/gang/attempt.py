"""What is remembered of the attempt to bind a quorum, until it has succeeded or the gang asks for something else."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Attempt(Struct):
    """The attempt under way. Only these methods change it.

    `server_said` is what the API server said about the last quorum's bindings. `vanguard` are members (by UID) that are
    bound one by one before the others. `replanned` counts how often all bindings were refused and the quorum was
    planned again at once; `exhausted`: no other node was left for that.
    """

    server_said: str = ""
    vanguard: Sequence[str] = ()
    replanned: int = 0
    exhausted: bool = False

    def hear(self, words: str) -> None:
        """Note what the API server said about a refused binding or write; empty if that no longer holds."""
        self.server_said = words

    def send_first(self, vanguard: Sequence[str]) -> None:
        """These members are bound one by one before the others."""
        self.vanguard = vanguard

    def plan_elsewhere(self) -> None:
        """The server has refused all bindings: count that the quorum is planned again on other nodes."""
        self.replanned += 1

    def exhaust(self) -> None:
        """All bindings were refused, and every node that is left has refused one."""
        self.exhausted = True

    def begin_count(self) -> None:
        """A binding was accepted, or something other than the server keeps the quorum waiting."""
        self.replanned, self.exhausted = 0, False

    def succeed(self) -> None:
        """The quorum is bound."""
        self.server_said, self.vanguard = "", ()
