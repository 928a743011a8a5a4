"""The messages between the operator and the process that decides on a copy."""

from __future__ import annotations

from typing import NamedTuple

from gangsched.core.objects.declaration import GroupKey
from gangsched.views.copied import Piece
from gangsched.views.reach import Reach

LENGTH_BYTES = 8
FAILED, UNKNOWN, TOO_LARGE = b"!", b"?", b"#"
"""The first bytes of an answer without a diagnosis: the process failed, and the rest is the traceback; there is no such
group; the process has too little memory."""


class Start(NamedTuple):
    """The first message: the settings to decide by, as JSON, and the time."""

    settings: str
    now: float


class Question(NamedTuple):
    """A question, after all pieces have been sent: what to explain, and what the user may know."""

    key: GroupKey
    reach: Reach


Message = Start | Piece | Question


def framed(message: bytes) -> bytes:
    """The message, preceded by its length."""
    return len(message).to_bytes(LENGTH_BYTES) + message
