"""What has become better on nodes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Relief:
    """What has become better since it was last read: nodes with more room or fewer obstacles.

    `domains`: a node has moved to another topology domain, which may help whoever is bound to one.
    """

    rows: set[int] = field(default_factory=set)
    everywhere: bool = False
    domains: bool = False

    def __bool__(self) -> bool:
        return bool(self.rows) or self.everywhere
