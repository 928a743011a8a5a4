"""What all parts of the settings have in common."""

from __future__ import annotations

import inspect
from typing import get_args

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Part(BaseModel):
    """Keys in camelCase as in Kubernetes' own configuration; unknown ones are errors, and nothing changes later."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True, validate_default=True)


def part_of(annotation: object) -> type[Part] | None:
    """The part that a field of this annotation holds, always or if it is given; None for any other field."""
    for choice in (annotation, *get_args(annotation)):
        if inspect.isclass(choice) and issubclass(choice, Part):
            return choice
    return None
