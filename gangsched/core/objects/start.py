"""What must be free before a group starts."""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.objects.shape import Amounts


class Start(Struct, frozen=True, gc=False, cache_hash=True):
    """The amounts `asked` by the group's minResources, and those of them `promised` to groups that have started."""

    asked: Amounts
    promised: Amounts = ()
