"""The parts that objects of many kinds share."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from gangsched.core.objects.quantity import Quantity

Quantities = dict[str, Quantity]
Strings = dict[str, str]


class Owner(Struct, gc=False, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Meta(Struct, gc=False, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: str | None = None
    labels: Strings | None = None
    annotations: Strings | None = None
    owner_references: list[Owner] | None = None


class Phased(Struct, gc=False):
    """A status of which the phase is read."""

    phase: str | None = None


class Requirement(Struct, gc=False):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Struct, gc=False, rename="camel"):
    match_labels: Strings | None = None
    match_expressions: list[Requirement] | None = None


class NodeSelectorTerm(Struct, gc=False, rename="camel"):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeSelector(Struct, gc=False, rename="camel"):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredTerm(Struct, gc=False):
    weight: int = 0
    preference: NodeSelectorTerm | None = None


class Present(Struct, gc=False):
    """An object whose presence is all that matters."""
