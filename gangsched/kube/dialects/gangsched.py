"""gangsched's own label and annotations."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gangsched.config.dialects import Key, Row
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import Declaration
from gangsched.kube.dialects.dialect import Dialect, sentence


class OwnDialect(Dialect):
    """Its label can only mean this scheduler, so an empty name is an error."""

    def nameless(self, base: Declaration, said: Mapping[Key, str]) -> Declaration | None:  # noqa: ARG002 - see there
        return replace(base, error=f"{sentence(self.row.group[0])} is empty: give it the group's name.")


def dialect(row: Row, _: Settings) -> Dialect:
    return OwnDialect(row=row)
