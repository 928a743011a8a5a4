"""Which claims have begun, ended or changed, for those who follow them."""

from __future__ import annotations

from collections.abc import Collection


class Journal:
    """For each who follows the claims, their owners (UIDs) of which something was noted since they were last taken."""

    def __init__(self) -> None:
        self._noted: dict[str, dict[str, None]] = {}

    def forget(self, who: str) -> None:
        """This one does not follow them any more."""
        self._noted.pop(who, None)

    def note(self, owner: str) -> None:
        """The owner's claim has begun, has ended or has changed; or the pod, which had none, is gone."""
        for noted in self._noted.values():
            noted[owner] = None

    def take(self, who: str) -> Collection[str] | None:
        """The owners that were noted for this one since the last call; None if it only begins to follow them."""
        taken, self._noted[who] = self._noted.get(who), {}
        return taken
