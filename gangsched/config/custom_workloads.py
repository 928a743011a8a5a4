"""Settings of the workloads whose pods can be gangs without naming a group: the registry's kinds, and one's own."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from gangsched.config.dialects import NAMES as DIALECTS
from gangsched.config.part import SettingsPart, unique
from gangsched.config.workload_registry import NAMES, WorkloadName

_KEY = "[A-Za-z0-9_-]+"
Path = Annotated[str, Field(max_length=253, pattern=rf"^{_KEY}(\.{_KEY})*$")]
SpecPath = Annotated[str, Field(max_length=253, pattern=rf"^spec(\.{_KEY})+$")]
Label = Annotated[str, Field(max_length=317)]


class Roles(SettingsPart):
    """A list in the object's spec, with one item for each role of its gang."""

    path: SpecPath = Field(description="Path of the list, such as `spec.pools`.")
    name: Path = Field(default="name", description="Path of the role's name in an item of the list.")
    replicas: Path = Field(default="replicas", description="Path of the role's number of pods in an item of the list.")
    label: Annotated[Label, Field(min_length=1)] = Field(
        description="Label of the pods whose value is the name of their role."
    )


class Custom(SettingsPart):
    """A kind of workload that gangsched has no code for, such as that of one's own operator."""

    name: Annotated[str, Field(max_length=30, pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")] = Field(
        description="Name of the kind in gangsched: an object's gang is called NAME.OBJECT. It is the name of no "
        "other kind of workload and of no dialect."
    )
    api_version: Annotated[
        str, Field(max_length=253, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?/v[0-9]+((alpha|beta)[0-9]+)?$")
    ] = Field(description="API group and version of its objects, such as `example.com/v1`.")
    kind: Annotated[str, Field(max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")] = Field(
        description="Kind of its objects, such as `Farm`."
    )
    plural: Annotated[str, Field(max_length=63, pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$")] = Field(
        description="Plural of the kind, as in the path of its objects and in rights: `farms`."
    )
    replicas: SpecPath | None = Field(
        default=None, description="Path of the number of pods of its gang, such as `spec.replicas`; or else `roles`."
    )
    roles: Roles | None = Field(default=None, description="List of the roles of its gang; or else `replicas`.")
    label: Label = Field(
        default="",
        description="Label of the pods whose value is the name of the object, for pods that belong to another object, "
        "such as a StatefulSet that the operator creates. Empty: the object itself is the controller of its pods.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.name in (*NAMES, *DIALECTS):
            message = "name {name} is that of a kind of workload or a dialect already: choose another name"
            raise PydanticCustomError("name", message, {"name": repr(self.name)})
        if (self.replicas is None) == (self.roles is None):
            raise PydanticCustomError("size", "exactly one of replicas and roles is needed: write one of them")
        return self


def _distinct(kinds: tuple[Custom, ...]) -> tuple[Custom, ...]:
    unique(tuple(kind.name for kind in kinds))
    return kinds


class Workloads(SettingsPart):
    """The workloads whose pods can be gangs without naming a group."""

    kinds: Annotated[
        tuple[WorkloadName, ...],
        Field(strict=False, json_schema_extra={"uniqueItems": True}),
        AfterValidator(unique),
    ] = Field(
        default=NAMES,
        description="Kinds of workloads whose pods may be gangs without declaring a group: if their namespace has the "
        "label gangsched.io/gang: auto, or the workload has an annotation (docs/gangs.md). The objects of these "
        "kinds are watched; pods of other kinds without a group are scheduled one by one. The chart's value "
        "`workloads` sets this and grants the necessary rights. `workloads: [job]` means the same as "
        "`workloads: {kinds: [job]}`.",
    )
    custom: Annotated[tuple[Custom, ...], Field(max_length=64, strict=False), AfterValidator(_distinct)] = Field(
        default=(),
        description="Further kinds, for which gangsched has no code: where their objects say how many pods a gang has, "
        "and by what its pods are recognised (docs/workloads/custom.md).",
    )

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return {"kinds": value} if isinstance(value, list | tuple) else value
