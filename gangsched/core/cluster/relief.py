"""What has become better on nodes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(slots=True)
class Relief:
    """What has become better since it was last taken: nodes with more room or fewer obstacles.

    `domains`: a node has moved to another topology domain, which may help whoever is bound to one.
    """

    rows: set[int] = field(default_factory=set)
    everywhere: bool = False
    domains: bool = False

    def __bool__(self) -> bool:
        return bool(self.rows) or self.everywhere

    def note(self, *, row: int | None = None, everywhere: bool = False, domains: bool = False) -> None:
        """The node of this row has become better, or any node may have, or one may be in another domain."""
        if row is not None:
            self.rows.add(row)
        self.everywhere |= everywhere
        self.domains |= domains

    def no_node(self, row: int) -> None:
        """The row has no node any more."""
        self.rows.discard(row)

    def take(self) -> Relief:
        """All of it; what becomes better from now on is noted anew."""
        taken = replace(self)
        self.rows, self.everywhere, self.domains = set(), False, False
        return taken
