"""The base class of the parts of settings and PodGroups, that of all parts of the settings, and durations."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from gangsched.core.objects.declaration import NAMESPACE
from gangsched.core.objects.duration import PATTERN, SHORTEST_S, parse_duration

Name = TypeVar("Name", bound=str)


class StrictModel(BaseModel):
    """The base of all that users write: immutable, with camelCase keys as in Kubernetes. Unknown keys are errors."""

    # Parts are built only within the models that contain them, when these are first used. Built by themselves as well,
    # they would make each start a fifteenth more expensive.
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True, defer_build=True)


class SettingsPart(StrictModel):
    """A part of the settings."""

    model_config = ConfigDict(validate_default=True)


def _duration(shortest_s: int) -> Callable[[object], object]:
    def validated(value: object) -> object:
        try:
            parse_duration(value if isinstance(value, str) else repr(value), shortest_s=shortest_s)
        except ValueError as error:
            raise PydanticCustomError("duration", "{reason}", {"reason": str(error)}) from None
        return value

    return validated


Duration = Annotated[
    str,
    BeforeValidator(_duration(SHORTEST_S)),
    # A digit other than 0 means at least 1 s. A schema cannot check the limit of 168h, because the parts add up.
    WithJsonSchema({"type": "string", "allOf": [{"pattern": PATTERN}, {"pattern": "[1-9]"}]}),
]
DurationOrZero = Annotated[
    str,
    BeforeValidator(_duration(0)),
    WithJsonSchema({"type": "string", "allOf": [{"pattern": PATTERN}, {"pattern": "[0-9]"}]}),
]


Namespace = Annotated[str, Field(pattern=f"^{NAMESPACE}$")]
NamespaceOrNone = Annotated[str, Field(pattern=f"^({NAMESPACE})?$")]


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
