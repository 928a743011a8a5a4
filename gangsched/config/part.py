"""The base class of all parts of the settings."""

from __future__ import annotations

import inspect
from typing import TypeVar, get_args

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

Name = TypeVar("Name", bound=str)


class Part(BaseModel):
    """Immutable settings with camelCase keys, as in Kubernetes' own configuration. Unknown keys are errors."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True, validate_default=True)


def part_of(annotation: object) -> type[Part] | None:
    """The part class in this annotation, also of an optional field; None for any other field."""
    for choice in (annotation, *get_args(annotation)):
        if inspect.isclass(choice) and issubclass(choice, Part):
            return choice
    return None


def unique(names: tuple[Name, ...]) -> tuple[Name, ...]:
    """The names, if none occurs twice.

    Raises:
        PydanticCustomError: a name occurs more than once.
    """
    if len(set(names)) < len(names):
        raise PydanticCustomError("unique", "a name occurs more than once: write every name once")
    return names
