"""Converts pydantic models to the structural OpenAPI schema of a CustomResourceDefinition.

A constraint that OpenAPI cannot express is a `Rule`. It has the constraint as CEL for the API server and in Python for
reading manifests without an API server (`simulate`), side by side so that both are changed together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from gangsched.config.part import StrictModel

JsonSchema = dict[str, Any]

_KEYWORDS = (
    "description",
    "type",
    "format",
    "enum",
    "default",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "anyOf",
    "required",
    "items",
    "additionalProperties",
    "properties",
)


@dataclass(frozen=True)
class Rule:
    """A constraint in CEL and in Python; `message` names the field and the remedy.

    It is an annotation of a field's type, or an element of a model's `rules`, where it sees the whole model.
    """

    cel: str
    message: str
    holds: Callable[[Any], bool]

    def check(self, value: object) -> None:
        """If the rule does not hold, raise the error that pydantic collects."""
        if not self.holds(value):
            raise PydanticCustomError("rule", "{rule}", {"rule": self.message})

    def validation(self) -> JsonSchema:
        """Return the entry for `x-kubernetes-validations`."""
        return {"rule": self.cel, "message": self.message}

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        def checked(value: object) -> object:
            self.check(value)
            return value

        return core_schema.no_info_after_validator_function(checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        described = handler(schema)
        described["x-kubernetes-validations"] = [*described.get("x-kubernetes-validations", []), self.validation()]
        return described


def matching(pattern: str, message: str) -> Rule:
    """Return the rule that a text matches the pattern. Unlike OpenAPI's `pattern` it has a readable message."""
    return Rule(f"self.matches(r'{pattern}')", message, lambda text: re.fullmatch(pattern, text) is not None)


@dataclass(frozen=True)
class Format:
    """OpenAPI's `format` as an annotation of a field's type. Pydantic does not write it itself."""

    name: str

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        return {**handler(schema), "format": self.name}


@dataclass(frozen=True)
class ListMap:
    """Annotation of a list whose entries have a unique key field. Patches merge the list by this key."""

    key: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        def unique(entries: tuple[object, ...]) -> tuple[object, ...]:
            names = [getattr(entry, self.key) for entry in entries]
            for name in names:
                if names.count(name) > 1:
                    message = "{key} {name} occurs more than once: give every entry a different {key}"
                    raise PydanticCustomError("duplicate", message, {"key": self.key, "name": repr(name)})
            return entries

        return core_schema.no_info_after_validator_function(unique, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        return {**handler(schema), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [self.key]}


class PodGroupPart(StrictModel):
    """A part of the PodGroup, as strict about types as the API server, with the `rules` that its schema states."""

    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _holds(self) -> Self:
        for rule in self.rules:
            rule.check(self)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        described = handler.resolve_ref_schema(handler(schema))
        if cls.rules:
            described["x-kubernetes-validations"] = [rule.validation() for rule in cls.rules]
        return described


MAX_COUNT = 2**31 - 1
Int32 = Annotated[int, Field(ge=-(2**31), le=MAX_COUNT), Format("int32")]
Int64 = Annotated[int, Format("int64")]
Count = Annotated[Int32, Field(ge=0)]


def structural(model: type[StrictModel]) -> JsonSchema:
    """Return the model's schema for a CustomResourceDefinition: no references, no nulls, no titles."""
    schema = model.model_json_schema(by_alias=True)
    return _inlined(schema, schema.get("$defs", {}))


def _inlined(node: JsonSchema, defs: Mapping[str, JsonSchema]) -> JsonSchema:
    merged = _merged(node, defs)
    if "description" in merged:
        merged["description"] = " ".join(merged["description"].split())
    if merged.get("default", None) in (None, []):
        merged.pop("default", None)
    if isinstance(merged.get("items"), dict):
        merged["items"] = _inlined(merged["items"], defs)
    if isinstance(merged.get("additionalProperties"), dict):
        merged["additionalProperties"] = _inlined(merged["additionalProperties"], defs)
    elif "additionalProperties" in merged:
        del merged["additionalProperties"]
    if "properties" in merged:
        merged["properties"] = {name: _inlined(value, defs) for name, value in merged["properties"].items()}
    keywords = [key for key in _KEYWORDS if key in merged]
    keywords += sorted(key for key in merged if key.startswith("x-"))
    return {key: merged[key] for key in keywords}


def _merged(node: JsonSchema, defs: Mapping[str, JsonSchema]) -> JsonSchema:
    """Resolve a reference and the null of an optional field. Keywords next to them take precedence."""
    outer = dict(node)
    inner: JsonSchema = {}
    if "$ref" in outer:
        inner = defs[outer.pop("$ref").rpartition("/")[2]]
    elif any(choice.get("type") == "null" for choice in outer.get("anyOf", ())):
        (inner,) = (choice for choice in outer.pop("anyOf") if choice.get("type") != "null")
    return _merged({**inner, **outer}, defs) if inner else outer
