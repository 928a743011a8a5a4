"""Koordinator's gangs: annotations of pods, or a label that names its PodGroup.

Its waiting time is a duration in Go's format. Its `mode` says whether members release their nodes if another member
finds none. gangsched does not need it, because it reserves nothing before all members fit. `groups` binds several gangs
together. This version does not support that and refuses it, because scheduling them one by one would violate the
declaration. A required network topology, whose layers a cluster-wide object of Koordinator defines, is refused too; a
preferred one is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gangsched.config.dialects import Key, Row
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.duration import LONGEST_S, SHORTEST_S
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import Dialect, quoted, sentence
from gangsched.kube.dialects.go_duration import go_seconds
from gangsched.kube.dialects.kind import Kind
from gangsched.kube.dialects.scheduler_plugins import CoschedulingSpec, coscheduling_terms

_PREFIX = "gang.scheduling.koordinator.sh"
_GROUPS = Key(f"{_PREFIX}/groups")
_NAMES = msgspec.json.Decoder(list[str])
_NETWORK = Key(f"{_PREFIX}/network-topology-spec")
_MUST = "MustGather"


class _Rule(Struct, gc=False):
    strategy: str | None = None


class _Network(Struct, gc=False, rename="camel"):
    gather_strategy: list[_Rule] | None = None


_TOPOLOGY = msgspec.json.Decoder(_Network | None)


class KoordinatorDialect(Dialect):
    """Independent gangs. A gang that is tied to others, or to one part of the network, is an error."""

    def parse(self, base: Declaration, said: Mapping[Key, str]) -> Declaration | None:
        if _GROUPS in said:
            check_alone(base.group, said[_GROUPS])
        if must_gather(said.get(_NETWORK, "")):
            raise ValueError(
                f"{sentence(_NETWORK)} is {quoted(said[_NETWORK])}, which keeps the gang in one part of the network "
                f"({_MUST}), which gangsched does not support: remove it, and name a node label in "
                "placement.topology of a PodGroup of gangsched."
            )
        return super().parse(base, said)


def go_duration(text: str) -> float:
    """The seconds of a duration in Go's format.

    Raises:
        ValueError: it is invalid, or not from 1 s to 7 days.
    """
    seconds = go_seconds(text)
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise ValueError(f"{text!r} is out of range")
    return seconds


def check_alone(group: str, text: str) -> None:
    """Check that the list ties the gang to no other; an empty list does not.

    Raises:
        ValueError: it ties the gang to others, or it is unreadable.
    """
    if text and any(name.rpartition("/")[2] != group for name in _names(text)):
        raise ValueError(
            f"{sentence(_GROUPS)} is {quoted(text)}, which ties the gang to others, but this version of gangsched "
            "cannot bind several gangs together: remove it, or make them one gang."
        )


def _names(text: str) -> set[str]:
    try:
        names = set(_NAMES.decode(text))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise ValueError(f"{sentence(_GROUPS)} is {quoted(text)}: write a JSON list of names, or remove it.") from None
    # A single name may have a namespace. Two names are two gangs even if they differ only in the namespace.
    return names if len(names) <= 1 else names | {""}


def must_gather(text: str) -> bool:
    """Whether the gang must be in one domain of a network layer; an empty text requires nothing.

    Raises:
        ValueError: the text is unreadable.
    """
    try:
        found = _TOPOLOGY.decode(text) if text else None
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise ValueError(
            f'{sentence(_NETWORK)} is {quoted(text)}: write JSON such as {{"gatherStrategy": []}}, or remove it.'
        ) from None
    return found is not None and any(rule.strategy == _MUST for rule in found.gather_strategy or ())


def _terms(spec: CoschedulingSpec, meta: wire.Meta) -> GroupSpec:
    said = meta.annotations or {}
    try:
        check_alone(meta.name or "", said.get(_GROUPS.name, ""))
        gathered = must_gather(said.get(_NETWORK.name, ""))
    except ValueError as error:
        raise ValueError(str(error).removesuffix(".")) from None
    refused = (f"{_NETWORK} with the strategy {_MUST}",) if gathered else ()
    return replace(coscheduling_terms(spec, meta), not_built=refused)


def dialect(row: Row, _: Settings) -> Dialect:
    return KoordinatorDialect(
        row=row,
        others=(_GROUPS, _NETWORK),
        seconds=go_duration,
        kind=Kind(resource=row.resources[0], spec=CoschedulingSpec, terms=_terms),
    )
