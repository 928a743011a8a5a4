"""What the operator sends to the process that decides on a copy, and how that process answers."""

from __future__ import annotations

from typing import NamedTuple

from gangsched.core.objects.declaration import GroupKey
from gangsched.views.copied import Piece
from gangsched.views.reach import Reach

LENGTH_BYTES = 8
FAILED, UNKNOWN, TOO_LARGE = b"!", b"?", b"#"
"""How an answer begins that is none: the process failed, and the rest says how; there is no such group; the process has
too little memory."""


class Start(NamedTuple):
    """The first message: by which settings to decide, as JSON, and when."""

    settings: str
    now: float


class Question(NamedTuple):
    """Everything has been sent: what is to be explained, and to whom."""

    key: GroupKey
    reach: Reach


Message = Start | Piece | Question


def framed(message: bytes) -> bytes:
    """The message with its length before it."""
    return len(message).to_bytes(LENGTH_BYTES) + message
