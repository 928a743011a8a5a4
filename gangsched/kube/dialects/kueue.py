"""Kueue: a label with the group's name and an annotation with its size, which work like gangsched's own."""

from __future__ import annotations

from gangsched.config.dialects import Row
from gangsched.config.settings import Settings
from gangsched.kube.dialects.dialect import Dialect


def dialect(row: Row, _: Settings) -> Dialect:
    return Dialect(row=row)
