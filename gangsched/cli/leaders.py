"""The operators of a cluster, found by the Leases that gangsched has created."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import islice

import msgspec
from msgspec import Struct

from gangsched.api.times import parse_time
from gangsched.config.published import Published, read
from gangsched.config.settings import LeaderElection, Settings
from gangsched.kube.client.errors import ApiError, readable
from gangsched.kube.client.lease import API_VERSION, LABEL, SETTINGS, VALUE, LeaseSpec
from gangsched.kube.client.session import ApiSession, Response

_NAME = LeaderElection().resource_name
_MOST_TOLD = 10
"""Maximum number of Leases of which each has a sentence."""
_SEVERAL = (
    "More than one operator leads: uninstall all but one, or give each schedulerNames of its own, because two that "
    "serve one schedulerName bind the same pods."
)


class _LeaseMetadata(Struct, frozen=True):
    namespace: str = ""
    name: str = ""
    annotations: dict[str, str] | None = None
    created: str = msgspec.field(name="creationTimestamp", default="")

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class _Lease(Struct):
    metadata: _LeaseMetadata
    spec: LeaseSpec | None = None


class _Leases(Struct):
    items: list[_Lease] | None = None


_LEASES = msgspec.json.Decoder(_Leases)


@dataclass(frozen=True, slots=True)
class Leader:
    """An operator: its Lease as NAMESPACE/NAME, and its published settings, None if it publishes none.

    `created` is when the API server has created the Lease, in epoch seconds; nobody can choose it.
    """

    lease: str
    published: Published | None = None
    created: float = float("inf")

    def serves(self, schedulers: Collection[str], namespace: str = "") -> bool:
        """Whether its settings serve one of these schedulerNames in this namespace, or in any if that is empty."""
        if self.published is None:
            return False
        settings = self.published.settings
        in_namespace = not (namespace and settings.namespace) or namespace == settings.namespace
        return in_namespace and not set(schedulers).isdisjoint(settings.scheduler_names)


@dataclass(frozen=True, slots=True)
class Leaders:
    """The operators, and `sentences` about them, one for each Lease.

    `leads`: a Lease is held; None if that is unknown. `all` are the operators that lead, sorted by Lease; `former` are
    those that led, and empty if any leads.
    """

    sentences: Sequence[str]
    leads: bool | None
    all: Sequence[Leader] = ()
    former: Sequence[Leader] = ()

    def tell(self, settings: Settings, namespace: str) -> bool:
        """Whether one leads that writes the statuses of all PodGroups in the namespace, or in all if it is empty."""
        serving = (leader for leader in self.all if leader.serves(settings.scheduler_names, namespace))
        return any(leader.published and leader.published.settings.namespace in ("", namespace) for leader in serving)


async def read_leaders(session: ApiSession) -> Leaders:
    """The holders of the Leases that gangsched has created, in all namespaces.

    Raises:
        ApiUnreachable: the API server did not answer.
    """
    leases: dict[str, _Lease] = {}
    now = 0.0
    # Leases of older versions lack the label and are found by the default name.
    selectors = ({"labelSelector": f"{LABEL}={VALUE}"}, {"fieldSelector": f"metadata.name={_NAME}"})
    path = f"/apis/{API_VERSION}/leases"
    for response in await asyncio.gather(*(session.request("GET", path, params=params) for params in selectors)):
        try:
            with readable("The Leases"):
                leases |= {str(lease.metadata): lease for lease in _LEASES.decode(response.checked().body).items or ()}
            now = max(now, _time_of(response))
        except ApiError as error:
            reason = f"Whether an operator leads cannot be seen, because the API server says: {error.message}"
            return Leaders((reason,), None)
    if not leases:
        sentence = (
            "No operator leads: there is no Lease of gangsched in any namespace; install gangsched, or see whether it "
            "runs with --no-leader-elect."
        )
        return Leaders((sentence,), leads=False)
    states = [(leases[name], _is_held(leases[name].spec or LeaseSpec(), now)) for name in sorted(leases)]
    leaders = [_leader(lease) for lease, held in states if held]
    number = len(leaders)
    # A Lease that is no longer held matters only if no other is held.
    shown = [(lease, held) for lease, held in states if held or not number]
    sentences = [_sentence(lease, held=held) for lease, held in islice(shown, _MOST_TOLD)]
    if len(shown) > _MOST_TOLD:
        sentences.append(f"{len(shown) - _MOST_TOLD} more Leases claim to be gangsched's: delete those of no operator.")
    former = [] if number else [_leader(lease) for lease, _ in states]
    return Leaders((*sentences, *([_SEVERAL] if _may_collide(leaders) else [])), number > 0, leaders, former)


def _leader(lease: _Lease) -> Leader:
    text = (lease.metadata.annotations or {}).get(SETTINGS)
    created = parse_time(lease.metadata.created) if lease.metadata.created else float("inf")
    return Leader(str(lease.metadata), read(text) if text is not None else None, created)


def _may_collide(leaders: Sequence[Leader]) -> bool:
    """Whether two of them serve the same pods, or may do so because one does not publish what it serves.

    Anybody may create Leases, so the cost is that of reading them.
    """
    if len(leaders) < 2:  # noqa: PLR2004 - a pair
        return False
    everywhere: set[str] = set()
    somewhere: dict[str, set[str]] = {}
    for leader in leaders:
        if leader.published is None or leader.published.too_large:
            return True
        settings = leader.published.settings
        for name in set(settings.scheduler_names):
            spaces = somewhere.setdefault(name, set())
            if name in everywhere or (spaces and not settings.namespace) or settings.namespace in spaces:
                return True
            if settings.namespace:
                spaces.add(settings.namespace)
            else:
                everywhere.add(name)
    return False


def _time_of(response: Response) -> float:
    """When the API server has answered, by its own clock: that of the caller's machine may be minutes off."""
    try:
        return parsedate_to_datetime(response.headers.get("Date", "")).timestamp()
    except ValueError:
        return time.time()


def _is_held(spec: LeaseSpec, now: float) -> bool:
    if not spec.holder_identity or not spec.renew_time:
        return False
    try:
        renewed = parse_time(spec.renew_time)
    except ValueError:
        return False
    return now < renewed + (spec.lease_duration_seconds or 0)


def _sentence(lease: _Lease, *, held: bool) -> str:
    spec = lease.spec or LeaseSpec()
    if held:
        return f"An operator leads: {spec.holder_identity} holds the Lease {lease.metadata}."
    since = f" since {spec.renew_time}" if spec.renew_time else ""
    return (
        f"No operator leads: the Lease {lease.metadata} has had no holder{since}; look at the operator's pods and "
        "their logs, or install gangsched again if it was uninstalled."
    )
