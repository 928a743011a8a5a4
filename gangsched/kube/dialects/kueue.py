"""Kueue: a label that names the group and an annotation that counts it, which are read like gangsched's own."""

from __future__ import annotations

from gangsched.config.dialects import Row
from gangsched.config.settings import Settings
from gangsched.kube.dialects.dialect import Dialect


def dialect(row: Row, _: Settings) -> Dialect:
    return Dialect(row=row)
