"""Koordinator's gangs: annotations of pods, or a label that names its PodGroup.

Its waiting time is a duration in Go's format. Its `mode` says whether members release their nodes if another member
finds none. gangsched does not need it, because it reserves nothing before all members fit. `groups` binds several gangs
together. This version does not support that and refuses it, because scheduling them one by one would violate the
declaration. A required network topology, whose layers a cluster-wide object of Koordinator defines, is refused too; a
preferred one is not honoured, which is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gangsched.config.dialects import DialectRow, Key
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.duration import LONGEST_S, SHORTEST_S
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import Dialect, quoted, sentence
from gangsched.kube.dialects.dialect_fields import needless, refused, told
from gangsched.kube.dialects.dialect_kind import Kind
from gangsched.kube.dialects.go_duration import go_seconds
from gangsched.kube.dialects.scheduler_plugins import COSCHEDULING_FIELDS, CoschedulingSpec, coscheduling_terms

_PREFIX = "gang.scheduling.koordinator.sh"
_GROUPS = Key(f"{_PREFIX}/groups")
_NAMES = msgspec.json.Decoder(list[str])
_NETWORK = Key(f"{_PREFIX}/network-topology-spec")
_MUST = "MustGather"


_MATCHING = "once a gang has been whole, replacements are scheduled singly, as with `once-satisfied`"
_MATCH_POLICIES = (
    Key(f"{_PREFIX}/match-policy"),
    Key("pod-group.scheduling.sigs.k8s.io/match-policy"),
)
_BOTH = (
    refused(_GROUPS, "if it ties the gang to others, which this version cannot honour"),
    refused(_NETWORK, f"with the strategy {_MUST}; others are not honoured, which is told"),
    *(told(key, _MATCHING, usual=("once-satisfied",)) for key in _MATCH_POLICIES),
    needless(Key(f"{_PREFIX}/total-number"), "members above the minimum are scheduled as they appear"),
    needless(Key(f"{_PREFIX}/mode"), "a gang holds nothing until its whole minimum has a place"),
    needless(Key(f"{_PREFIX}/timeout"), "Koordinator itself writes it"),
)
"""Annotations of pods and of PodGroups."""
_TEXTS = (*_BOTH, told(Key("quota.scheduling.koordinator.sh/name", label=True), "quota is not enforced"))


class _Rule(Struct, gc=False):
    strategy: str | None = None


class _Network(Struct, gc=False, rename="camel"):
    gather_strategy: list[_Rule] | None = None


_TOPOLOGY = msgspec.json.Decoder(_Network | None)


class KoordinatorDialect(Dialect):
    """Independent gangs. A gang that is tied to others, or to one part of the network, is an error."""

    def parse(self, base: Declaration, texts: Mapping[Key, str]) -> Declaration | None:
        if _GROUPS in texts:
            check_alone(base.group, texts[_GROUPS])
        if must_gather(texts.get(_NETWORK, "")):
            raise ValueError(
                f"{sentence(_NETWORK)} is {quoted(texts[_NETWORK])}, which keeps the gang in one part of the network "
                f"({_MUST}), which gangsched does not support: remove it, and name a node label in "
                "placement.topology of a PodGroup of gangsched."
            )
        declaration = super().parse(base, texts)
        if declaration is None or not prefers_to_gather(texts.get(_NETWORK, "")):
            return declaration
        return replace(declaration, ignored=(*declaration.ignored, str(_NETWORK)))


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
    return any(rule.strategy == _MUST for rule in _rules(text))


def prefers_to_gather(text: str) -> bool:
    """Whether the gang should, but need not, be in one domain of a network layer.

    Raises:
        ValueError: the text is unreadable.
    """
    return any(rule.strategy != _MUST for rule in _rules(text))


def _rules(text: str) -> Sequence[_Rule]:
    try:
        network = _TOPOLOGY.decode(text) if text else None
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise ValueError(
            f'{sentence(_NETWORK)} is {quoted(text)}: write JSON such as {{"gatherStrategy": []}}, or remove it.'
        ) from None
    return (network.gather_strategy or ()) if network is not None else ()


def _terms(spec: CoschedulingSpec, meta: wire.Meta) -> GroupSpec:
    texts = meta.annotations or {}
    try:
        check_alone(meta.name or "", texts.get(_GROUPS.name, ""))
        gathered = must_gather(texts.get(_NETWORK.name, ""))
    except ValueError as error:
        raise ValueError(str(error).removesuffix(".")) from None
    refused = (f"{_NETWORK} with the strategy {_MUST}",) if gathered else ()
    return replace(coscheduling_terms(spec, meta), not_built=refused)


def _also_ignored(_: CoschedulingSpec, meta: wire.Meta) -> Iterator[str]:
    """A preferred network topology is no reason to refuse the group."""
    if prefers_to_gather((meta.annotations or {}).get(_NETWORK.name, "")):
        yield str(_NETWORK)


def dialect(row: DialectRow, _: Settings) -> Dialect:
    return KoordinatorDialect(
        row=row,
        texts=_TEXTS,
        seconds=go_duration,
        kind=Kind(
            resource=row.resources[0],
            spec=CoschedulingSpec,
            terms=_terms,
            fields=(*COSCHEDULING_FIELDS, *_BOTH),
            also_ignored=_also_ignored,
        ),
    )
