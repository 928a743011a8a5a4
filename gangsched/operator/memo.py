"""What kopf's handlers share, instead of globals: kopf hands it to each of them as `memo`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from gangsched.config.pod_groups import PodGroups
from gangsched.core.objects.duration import parse_duration
from gangsched.core.objects.events import GroupExpired
from gangsched.kube.client.session import ApiSession
from gangsched.operator.finished import Expiries


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """The deletion of finished PodGroups. All functions may be called in any thread.

    `default_ttl_s` is the time to live of PodGroups that set none; None: they stay. `leads`: this replica decides now.
    `post` hands PodGroups that have expired to the machine, which decides about each.
    """

    default_ttl_s: float | None
    leads: Callable[[], bool]
    post: Callable[[list[GroupExpired]], object]

    @classmethod
    def of(
        cls, settings: PodGroups, *, leads: Callable[[], bool], post: Callable[[list[GroupExpired]], object]
    ) -> Deletion | None:
        """The deletion that the settings ask for; None if all PodGroups stay."""
        ttl = settings.ttl_after_finished
        if not settings.delete_finished:
            return None
        return cls(default_ttl_s=parse_duration(ttl) if ttl is not None else None, leads=leads, post=post)


@dataclass(kw_only=True)
class Memo:
    """The state of one run of kopf. kopf copies it for each object, so that only what it refers to is shared.

    `session` is kopf's own. `on_crd` receives the fields that the installed CustomResourceDefinition lacks. Without
    `deletion` PodGroups are not watched; `deleting` is its task. `ending`: kopf is about to end. `logged_lacking`
    belongs to the definition's copy: the fields in the log.
    """

    session: ApiSession
    on_crd: Callable[[list[str]], None]
    deletion: Deletion | None = None
    expiries: Expiries = field(default_factory=Expiries)
    deleting: asyncio.Task[None] | None = None
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    logged_lacking: list[str] = field(default_factory=list)
