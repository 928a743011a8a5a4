"""Reads a PodGroup, and everything that decides about it, from a cluster with the caller's own rights."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec

from gangsched.api.conversion import group_from_object
from gangsched.api.podgroup_names import PATH
from gangsched.cli.cluster_lists import list_foreign, list_of, list_served, values_of
from gangsched.cli.group_pages import NO_CRD, read_pages
from gangsched.cli.side_by_side import OnProgress, ignore, side_by_side, unless_error
from gangsched.cli.untold_pods import Untold, is_told, told
from gangsched.config.dialects import GROUP_LABEL
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import (
    BudgetsHidden,
    Event,
    ForeignGroupsHidden,
    ForeignGroupsReplaced,
    PodsReplaced,
    Synced,
)
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.record import Phase
from gangsched.core.objects.selectors import is_label_value
from gangsched.kube import wire
from gangsched.kube.client.errors import ApiError, CrdMissing, KubeError, readable
from gangsched.kube.client.pages import pages as pages_of
from gangsched.kube.client.paths import quoted, within
from gangsched.kube.client.resource import Resource
from gangsched.kube.client.session import ApiSession
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.foreign.watch import groups
from gangsched.kube.reading.device_values import DEVICES
from gangsched.kube.reading.disruption_values import WATCHED_BUDGETS
from gangsched.kube.reading.watched_resources import GROUPS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, STORAGE, pods
from gangsched.kube.workloads.template_admission import ADDING, Admission, Reader
from gangsched.kube.workloads.workload_table import Workloads, chosen
from gangsched.kube.workloads.workload_watches import objects

_OBJECT = msgspec.json.Decoder(dict[str, object])
_DEFAULT = Settings()


DECIDING: Sequence[Resource[Any]] = (
    *(NAMESPACES, PRIORITY_CLASSES, NODES),
    *STORAGE.values(),
    *DEVICES.values(),
    *(GROUPS, PODS),
)
"""The kinds that decide about any group, whose objects the caller must be allowed to list."""
LISTED = [resource.name for resource in DECIDING]
MANY_PODS = 10_000
"""Reading and deciding on more pods than this takes more than a second, and the API server's time each time."""
_PLACED = (Phase.SCHEDULED, Phase.RUNNING)
_ENDED = (Phase.SUCCEEDED, Phase.FAILED, Phase.SUSPENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of reading. `group` is None if there is no such PodGroup.

    `events` give a machine the state of the whole cluster. If the caller may not list everything, `forbidden` is the
    API server's refusal, and `read` leaves the events empty. `told`: the statuses of PodGroups count, not their pods.
    `unread` are sentences about kinds that could not be read and that make the answer less certain.
    """

    group: Group | None
    events: Sequence[Event] = ()
    forbidden: str = ""
    told: bool = False
    unread: Sequence[str] = ()

    @property
    def hidden(self) -> list[str]:
        """The kinds beyond DECIDING whose objects the caller may not see, a sentence for each."""
        events = [event.why for event in self.events if isinstance(event, ForeignGroupsHidden | BudgetsHidden)]
        return [*events, *self.unread]

    def pod_of(self, key: GroupKey) -> Pod | None:
        """The first pod that has this name or names this group; None if there is none."""
        return next(
            (
                pod
                for event in self.events
                if isinstance(event, PodsReplaced)
                for pod in event.pods
                if pod.namespace == key.namespace
                and key.name in (pod.name, pod.declaration.group if pod.declaration is not None else "")
            ),
            None,
        )


async def read(
    session: ApiSession, key: GroupKey | None, settings: Settings = _DEFAULT, *, on_progress: OnProgress = ignore
) -> Reading:
    """Read the PodGroup, if one is named, and, as far as the caller may, the rest of the cluster.

    Only those kinds of workloads are read that an operator with these settings watches and that its pods belong to.

    Raises:
        CrdMissing: the API server does not know PodGroups.
        ApiError, ApiUnreachable, Garbled: any failure except a forbidden list.
    """
    kinds = chosen(settings)
    foreign = [groups(dialect, kind) for dialect, kind in DEFAULT.kinds.items()]
    if settings.preemption.enabled:
        foreign.insert(0, WATCHED_BUDGETS)
    group, *lists = await side_by_side(
        _read_group(session, key),
        *(list_served(session, resource) for resource in DECIDING if resource is not PODS),
        *(list_foreign(session, subject) for subject in foreign),
        list_of(session, pods(DEFAULT, kinds)),
        on_progress=on_progress,
    )
    group = unless_error(group)
    try:
        *events, listed = map(unless_error, lists)
        needed = _needed(listed, settings.scheduler_names)
        admission, unread = Admission().reader(), list[str]()
        workloads = await _list_workloads(session, kinds, needed, admission)
        if admission.asked:
            # Some of them have pods that are created later, which is rare.
            admission, unread = await _admission(session)
            workloads = await _list_workloads(session, kinds, needed, admission)
        events += workloads
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            # Of the kinds that are needed only PodGroups may not be served.
            raise CrdMissing(NO_CRD) from error
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return Reading(group=group, forbidden=error.message)
    return Reading(group=group, events=[*events, listed, Synced()], unread=unread)


async def read_gangs(
    session: ApiSession,
    namespace: str,
    settings: Settings,
    *,
    pages: Sequence[wire.Page] | None = None,
    untold: Untold | None = None,
    on_progress: OnProgress = ignore,
) -> Reading:
    """Read the objects that define the gangs of the namespace, or of all if it is empty, as far as the caller may.

    `pages` are those of its PodGroups, if they are there already. With `untold` pods the statuses of PodGroups count,
    and no other pods are read. The events contain no nodes. With `forbidden`, they contain only PodGroups.

    Raises:
        ApiError: the caller may list neither PodGroups nor pods; and as `read`.
    """
    kinds, schedulers = chosen(settings), settings.scheduler_names
    resource = pods(DEFAULT, kinds)
    untold_pages = untold.pages if untold is not None else None
    pods_read, namespaces, *foreign, own = await side_by_side(
        list_of(session, resource, namespace) if untold_pages is None else values_of(untold_pages, resource),
        _list_namespaces(session, namespace),
        *(list_foreign(session, groups(dialect, kind), namespace) for dialect, kind in DEFAULT.kinds.items()),
        # Last, because those that are there are converted while the others are on their way.
        values_of(_ready(pages) if pages is not None else read_pages(session, namespace), GROUPS),
        on_progress=on_progress,
    )
    own = unless_error(own)
    try:
        pods_read = unless_error(pods_read)
        written = ((group.key, group.status) for group in own.groups)
        if untold_pages is not None and untold is not None and untold.names != told(written, schedulers):
            # A status that cannot be read says nothing.
            pods_read = await list_of(session, resource, namespace)
    except ApiError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return Reading(group=None, events=[own, Synced()], forbidden=error.message)
    needed = _needed(pods_read, schedulers)
    # Where no nodes are read, nobody asks what fits.
    workloads = await _list_workloads(session, kinds, needed, Admission().reader(), namespace)
    events = [*map(unless_error, (namespaces, own, *foreign)), *workloads, pods_read, Synced()]
    return Reading(group=None, events=events, told=untold is not None)


async def _ready(pages: Sequence[wire.Page]) -> Sequence[wire.Page]:
    return pages


async def read_told(session: ApiSession, key: GroupKey, schedulers: Collection[str]) -> Group | None:
    """The PodGroup if an operator that serves these schedulerNames has written its status.

    Raises:
        As `read`.
    """
    group = await _read_group(session, key)
    return group if group is not None and is_told(group.status, schedulers) else None


async def is_large(session: ApiSession) -> bool:
    """Whether the cluster has more than MANY_PODS pods, as far as the caller may know; it costs reading one."""
    with suppress(ApiError):
        async for page in pages_of(session, PODS.path, PODS.name, size=1):
            return page.metadata.remaining_item_count >= MANY_PODS
    return False


def is_at_rest(group: Group) -> bool:
    """Whether its status says all that there is to say: it has ended, is suspended, or all members are bound."""
    is_bound = group.status.phase in _PLACED and group.status.bound >= group.status.members
    return is_bound or group.status.phase in _ENDED


async def read_members(session: ApiSession, key: GroupKey, schedulers: Collection[str]) -> Collection[str] | None:
    """The names of the pods that name the PodGroup in their label; None if its status knows of others, or says nothing.

    No label can have some of the names that a PodGroup can have: there is nothing to ask for then.

    Raises:
        ApiError: the caller may not get the PodGroup, or not list pods; and as `read`.
    """
    if not is_label_value(key.name):
        return None
    selector = f"{GROUP_LABEL}={key.name}"
    lists = await side_by_side(_read_group(session, key), list_of(session, PODS, key.namespace, selector))
    group, listed = map(unless_error, lists)
    if group is None or not is_told(group.status, schedulers) or len(listed.pods) < group.status.members:
        return None
    return [pod.name for pod in listed.pods]


async def _list_namespaces(session: ApiSession, only: str) -> Event:
    """The namespaces with their labels; none if the caller may not read them.

    Without the labels, pods that name no group belong to no gang.
    """
    if not only:
        with suppress(ApiError):
            return await list_of(session, NAMESPACES)
        return NAMESPACES.replaced(())
    response = await session.request("GET", f"{NAMESPACES.path}/{quoted(only)}")
    if not response.ok:
        return NAMESPACES.replaced(())
    with readable("A namespace"):
        return NAMESPACES.replaced((NAMESPACES.read(msgspec.Raw(response.body))[1],))


async def _read_group(session: ApiSession, key: GroupKey | None) -> Group | None:
    if key is None:
        return None
    response = await session.request("GET", f"{within(PATH, key.namespace)}/{quoted(key.name)}")
    if response.status == HTTPStatus.NOT_FOUND:
        # For a missing object the server sends a Status, for an unknown path a plain line.
        if response.error().reason == "NotFound":
            return None
        raise CrdMissing(NO_CRD)
    with readable(f"PodGroup {key}"):
        return group_from_object(_OBJECT.decode(response.checked().body))


def _needed(listed: Event, schedulers: Collection[str]) -> set[str]:
    """The kinds of workloads, by name, that pods of these schedulers belong to."""
    listed_pods = listed.pods if isinstance(listed, PodsReplaced) else ()
    return {pod.workload.kind for pod in listed_pods if pod.workload is not None and pod.scheduler in schedulers}


async def _admission(session: ApiSession) -> tuple[Reader, list[str]]:
    """What the API server adds to pods of templates, and a sentence for each kind of it that cannot be read."""
    admission, unread = Admission(), list[str]()
    lists = await side_by_side(*(list_of(session, resource) for resource in ADDING))
    for resource, event in zip(ADDING, lists, strict=True):
        if isinstance(event, KubeError):
            unread.append(
                f"{resource.name} cannot be listed ({event}), so what they add to pods that a controller creates later "
                "is unknown: request the right to list them, or try again."
            )
        else:
            admission.take([unless_error(event)])
    return admission.reader(), unread


async def _list_workloads(
    session: ApiSession, kinds: Workloads, needed: Collection[str], admission: Reader, namespace: str = ""
) -> list[Event]:
    """All objects of these kinds, and of the kinds of their owners."""
    events: list[Event] = []
    above: set[str] = set()
    for names in needed, above:
        subjects = [objects(kind, admission) for kind in kinds.kinds.values() if kind.row.name in names]
        lists = await side_by_side(*(list_foreign(session, subject, namespace) for subject in subjects))
        for event in map(unless_error, lists):
            foreign_groups = event.groups if isinstance(event, ForeignGroupsReplaced) else ()
            facts = [group.workload for group in foreign_groups if group.workload is not None]
            above.update(fact.top.kind for fact in facts if fact.top is not None)
            events.append(event)
    return events
