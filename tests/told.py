"""The user-visible messages of effects, for checks that apply to every message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gangsched.core.objects.effects import Effect, EmitEvent, PatchPodCondition, PatchStatus

_OF = re.compile(r"(?<![\w.-])(\d+) of (\d+)(?![\w.]*\w)")


def messages(effects: Iterable[Effect]) -> Iterator[str]:
    """The messages of conditions and the notes of Events."""
    for effect in effects:
        match effect:
            case EmitEvent(note=note):
                yield note
            case PatchPodCondition(message=message):
                yield message
            case PatchStatus(status=status):
                yield from (condition.message for condition in status.conditions)


def miscounted(messages: Iterable[str]) -> list[str]:
    """Messages whose count exceeds its total, as in "4 of 1 members"."""
    return [said for said in messages if any(int(some) > int(total) for some, total in _OF.findall(said))]
