"""Reads a PodGroup, and everything that decides about it, from a cluster with the caller's own rights."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from gangsched.api.conversion import group_from_object
from gangsched.api.custom_resource import API_VERSION
from gangsched.config.dialects import GROUP_LABEL
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import (
    BudgetsHidden,
    Event,
    ForeignGroupsHidden,
    ForeignGroupsReplaced,
    GroupsReplaced,
    PodsReplaced,
    Synced,
)
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.record import Phase
from gangsched.core.objects.selectors import is_label_value
from gangsched.kube.client.errors import UNREADABLE, AccessDenied, ApiError, CrdMissing, Expired, Garbled
from gangsched.kube.client.pages import converted
from gangsched.kube.client.pages import pages as pages_of
from gangsched.kube.client.paths import quoted
from gangsched.kube.client.resource import Resource
from gangsched.kube.client.session import ApiSession
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.foreign.watch import Subject, groups, served_version
from gangsched.kube.reading.device_values import DEVICES
from gangsched.kube.reading.disruption_values import WATCHED_BUDGETS
from gangsched.kube.reading.watched_resources import GROUPS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, STORAGE, pods
from gangsched.kube.workloads.workload_table import Workloads, chosen
from gangsched.kube.workloads.workload_watches import objects

Value = TypeVar("Value")

_PAGE = 5_000
"""Objects a page: over a slow connection each page takes at least a round trip."""
_LISTS = 3
"""Maximum number of attempts at a list whose pages expire before all are read.

More attempts would not help: the server keeps too little history.
"""
_OBJECT = msgspec.json.Decoder(dict[str, object])
_DEFAULT = Settings()
_NO_CRD = (
    "The API server does not know podgroups.gangsched.io: install the CustomResourceDefinition, for example with "
    "`gangsched crd | kubectl apply --server-side -f -`."
)


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
_MOST_NAMES = 30_000
"""The longest list of names, in characters, that is sent in one request."""
_MOST_NAMESPACES = 20
"""So many namespaces are asked one by one."""
_TOO_LONG = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_URI_TOO_LONG, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
"""The statuses of answers to a request that is too long."""
OnProgress = Callable[[str], None]
"""Receives a text that says how much has been read."""


def _ignore(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of reading. `group` is None if there is no such PodGroup.

    `events` give a machine the state of the whole cluster. If the caller may not list everything, `forbidden` is the
    API server's refusal, and `read` leaves the events empty. `told`: the statuses of PodGroups count, not their pods.
    """

    group: Group | None
    events: Sequence[Event] = ()
    forbidden: str = ""
    told: bool = False

    @property
    def hidden(self) -> list[str]:
        """The kinds beyond DECIDING whose objects the caller may not see, a sentence for each."""
        return [event.why for event in self.events if isinstance(event, ForeignGroupsHidden | BudgetsHidden)]

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
    session: ApiSession, key: GroupKey | None, settings: Settings = _DEFAULT, *, on_progress: OnProgress = _ignore
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
    group, *found = await _side_by_side(
        _read_group(session, key),
        *(_list_served(session, resource) for resource in DECIDING if resource is not PODS),
        *(_list_foreign(session, subject) for subject in foreign),
        _list(session, pods(DEFAULT, kinds)),
        on_progress=on_progress,
    )
    group = _unless_error(group)
    try:
        *events, listed = map(_unless_error, found)
        events += await _list_workloads(session, kinds, _needed(listed, settings.scheduler_names))
    except ApiError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return Reading(group=group, forbidden=error.message)
    return Reading(group=group, events=[*events, listed, Synced()])


async def read_gangs(
    session: ApiSession, namespace: str, settings: Settings, *, told: bool = False, on_progress: OnProgress = _ignore
) -> Reading:
    """Read the objects that define the gangs of the namespace, or of all if it is empty, as far as the caller may.

    The events contain no nodes. With `forbidden`, they contain only PodGroups. With `told` the statuses of PodGroups
    count, and the pods that name those with a status are not read.

    Raises:
        ApiError: the caller may list neither PodGroups nor pods; and as `read`.
    """
    kinds = chosen(settings)
    reads = [_list(session, GROUPS, namespace)]
    if not told:
        reads.append(_list(session, pods(DEFAULT, kinds), namespace))
    own, *listed = await _side_by_side(*reads, on_progress=on_progress)
    if isinstance(own, ApiError) and own.status == HTTPStatus.NOT_FOUND:
        raise CrdMissing(_NO_CRD) from own
    own = _unless_error(own)
    try:
        pods_read = _unless_error(listed[0] if listed else await _list_untold(session, own, namespace, settings))
    except ApiError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return Reading(group=None, events=[own, Synced()], forbidden=error.message)
    namespaces, *foreign = await _side_by_side(
        _list_namespaces(session, namespace),
        *(_list_foreign(session, groups(dialect, kind), namespace) for dialect, kind in DEFAULT.kinds.items()),
        on_progress=on_progress,
    )
    workloads = await _list_workloads(session, kinds, _needed(pods_read, settings.scheduler_names), namespace)
    events = [*map(_unless_error, (namespaces, own, *foreign)), *workloads, pods_read, Synced()]
    return Reading(group=None, events=events, told=told)


def is_told(group: Group, schedulers: Collection[str]) -> bool:
    """Whether an operator that serves these schedulerNames has written the PodGroup's status."""
    return bool(group.status.phase) and (group.status.scheduler or _DEFAULT.scheduler_names[0]) in schedulers


async def read_told(session: ApiSession, key: GroupKey, schedulers: Collection[str]) -> Group | None:
    """The PodGroup if an operator that serves these schedulerNames has written its status.

    Raises:
        As `read`.
    """
    group = await _read_group(session, key)
    return group if group is not None and is_told(group, schedulers) else None


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
    found = await _side_by_side(_read_group(session, key), _list(session, PODS, key.namespace, selector))
    group, listed = map(_unless_error, found)
    if group is None or not is_told(group, schedulers) or len(listed.pods) < group.status.members:
        return None
    return [pod.name for pod in listed.pods]


async def _list_untold(session: ApiSession, own: GroupsReplaced, namespace: str, settings: Settings) -> Event:
    """The pods of these schedulers, but for those that name a PodGroup whose status says what has become of it."""
    resource = pods(DEFAULT, chosen(settings))
    names: dict[str, list[str]] = defaultdict(list)
    for group in own.groups:
        if is_told(group, settings.scheduler_names) and is_label_value(group.key.name):
            names[group.key.namespace].append(group.key.name)
    length = sum(len(name) + 1 for several in names.values() for name in several)
    if len(names) > _MOST_NAMESPACES or length > _MOST_NAMES:
        return await _list(session, resource, namespace)
    found: list[Pod] = []
    for ours in (f"spec.schedulerName={scheduler}" for scheduler in settings.scheduler_names):
        reads = [
            _list(session, resource, space, f"{GROUP_LABEL} notin ({','.join(several)})", ours)
            for space, several in names.items()
        ]
        if not namespace:
            elsewhere = [ours, *(f"metadata.namespace!={space}" for space in names)]
            reads.append(_list(session, resource, fields=",".join(elsewhere)))
        elif not names:
            reads.append(_list(session, resource, namespace, fields=ours))
        for listed in await _side_by_side(*reads):
            if isinstance(listed, ApiError) and listed.status in _TOO_LONG:
                # What is between us and the API server accepts no long request.
                return await _list(session, resource, namespace)
            found += _unless_error(listed).pods
    return resource.replaced(tuple(found))


async def _side_by_side(*reads: Awaitable[Any], on_progress: OnProgress = _ignore) -> list[Any]:
    """The results of what is read side by side, in order; where it fails, the exception."""
    left = len(reads)

    async def counted(read: Awaitable[Any]) -> Any:  # noqa: ANN401 - what it is depends on what is read
        nonlocal left
        result = await read
        left -= 1
        on_progress(f"reading the cluster, {len(reads) - left} of {len(reads)} lists")
        return result

    return await asyncio.gather(*map(counted, reads), return_exceptions=True)


def _unless_error(result: Any) -> Any:  # noqa: ANN401 - as above
    if isinstance(result, BaseException):
        raise result
    return result


async def _list_namespaces(session: ApiSession, only: str) -> Event:
    """The namespaces with their labels; none if the caller may not read them.

    Without the labels, pods that name no group belong to no gang.
    """
    if not only:
        with suppress(ApiError):
            return await _list(session, NAMESPACES)
        return NAMESPACES.replaced(())
    answer = await session.request("GET", f"{NAMESPACES.path}/{quoted(only)}")
    if not answer.ok:
        return NAMESPACES.replaced(())
    return NAMESPACES.replaced((_decoded(lambda: NAMESPACES.read(msgspec.Raw(answer.body))[1], "A namespace"),))


async def _read_group(session: ApiSession, key: GroupKey | None) -> Group | None:
    if key is None:
        return None
    path = f"/apis/{API_VERSION}/namespaces/{quoted(key.namespace)}/podgroups/{quoted(key.name)}"
    answer = await session.request("GET", path)
    if answer.status == HTTPStatus.NOT_FOUND:
        # For a missing object the server sends a Status, for an unknown path a plain line.
        if answer.error().reason == "NotFound":
            return None
        raise CrdMissing(_NO_CRD)
    return _decoded(lambda: group_from_object(_OBJECT.decode(answer.checked().body)), f"PodGroup {key}")


async def _list(
    session: ApiSession, resource: Resource[Value], namespace: str = "", selector: str = "", fields: str = ""
) -> Event:
    """All objects of the kind from one consistent list: after an expired page (410) the list starts again.

    With a `namespace`, only its own; and only what the selectors of labels and of `fields` select.
    """
    folder, _, plural = resource.path.rpartition("/")
    path = f"{folder}/namespaces/{quoted(namespace)}/{plural}" if namespace else resource.path
    for _ in range(_LISTS - 1):
        with suppress(Expired):
            return await _list_once(session, resource, path, selector, fields)
    return await _list_once(session, resource, path, selector, fields)


async def _list_once(session: ApiSession, resource: Resource[Value], path: str, selector: str, fields: str) -> Event:
    def read(item: msgspec.Raw) -> Value:
        return _decoded(lambda: resource.read(item)[1], f"One of the {resource.name}")

    values: list[Value] = []
    async for page in pages_of(session, path, resource.name, selector=selector, fields=fields, size=_PAGE):
        values += await converted(page, read)
    return resource.replaced(tuple(values))


async def _list_served(session: ApiSession, resource: Resource[Any]) -> Event:
    """All objects of the kind; none if it is a kind of device that the API server does not serve."""
    try:
        return await _list(session, resource)
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND and resource in DEVICES.values():
            return resource.replaced(())
        raise


def _needed(listed: Event, schedulers: Collection[str]) -> set[str]:
    """The kinds of workloads, by name, that pods of these schedulers belong to."""
    listed_pods = listed.pods if isinstance(listed, PodsReplaced) else ()
    return {pod.workload.kind for pod in listed_pods if pod.workload is not None and pod.scheduler in schedulers}


async def _list_workloads(
    session: ApiSession, kinds: Workloads, needed: Collection[str], namespace: str = ""
) -> list[Event]:
    """All objects of these kinds, and of the kinds of their owners."""
    events: list[Event] = []
    above: set[str] = set()
    for names in needed, above:
        several = [each for each in kinds.kinds.values() if each.row.name in names]
        found = await _side_by_side(*(_list_foreign(session, objects(kind), namespace) for kind in several))
        for event in map(_unless_error, found):
            foreign_groups = event.groups if isinstance(event, ForeignGroupsReplaced) else ()
            facts = [group.workload for group in foreign_groups if group.workload is not None]
            above.update(fact.top.kind for fact in facts if fact.top is not None)
            events.append(event)
    return events


async def _list_foreign(session: ApiSession, subject: Subject, namespace: str = "") -> Event:
    """The objects of another system, or the reason why the caller cannot see them."""
    name = subject.kind.name
    try:
        version = await served_version(session, subject.kind)
        if not version:
            return subject.absent
        return await _list(session, subject.resource(version), namespace)
    except (AccessDenied, ApiError, Expired) as error:
        status = error.status if isinstance(error, ApiError) else None
        if status == HTTPStatus.NOT_FOUND:
            return subject.absent
        denied = isinstance(error, AccessDenied) or status == HTTPStatus.FORBIDDEN
        problem = f"You may not list {name}" if denied else f"{name} cannot be listed"
        remedy = "request the right to list them" if denied else "try again"
        # The operator may have the right, so the content counts as unknown, not as denied.
        return subject.hidden(f"{problem} ({error}), so their content is unknown: {remedy}.", denied=False)


def _decoded(decode: Callable[[], Value], subject: str) -> Value:
    try:
        return decode()
    except UNREADABLE as error:
        raise Garbled(f"{subject} cannot be read: {error}") from error
