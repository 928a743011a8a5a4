"""The base class of the parts of settings and PodGroups, and that of all parts of the settings."""

from __future__ import annotations

import inspect
from typing import TypeVar, get_args

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

Name = TypeVar("Name", bound=str)


class Part(BaseModel):
    """The base of all that users write: immutable, with camelCase keys as in Kubernetes. Unknown keys are errors."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True)


class SettingsPart(Part):
    """A part of the settings."""

    model_config = ConfigDict(validate_default=True)


def part_of(annotation: object) -> type[SettingsPart] | None:
    """The part class in this annotation, also of an optional field; None for any other field."""
    for choice in (annotation, *get_args(annotation)):
        if inspect.isclass(choice) and issubclass(choice, SettingsPart):
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
