"""Reads a PodGroup, and everything that decides about it, from a cluster with the caller's own rights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from gangsched.api.conversion import group_from_object
from gangsched.api.custom_resource import API_VERSION
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
from gangsched.kube.client.errors import UNREADABLE, AccessDenied, ApiError, CrdMissing, Expired, Garbled
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
OnProgress = Callable[[str], None]
"""Receives a text that says what is read next."""


def _ignore(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of reading. `group` is None if there is no such PodGroup.

    `events` give a machine the state of the whole cluster. If the caller may not list everything, `forbidden` is the
    API server's refusal, and `read` leaves the events empty.
    """

    group: Group | None
    events: Sequence[Event] = ()
    forbidden: str = ""

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
    group = await _read_group(session, key) if key is not None else None
    kinds = chosen(settings)
    try:
        events: list[Event] = []
        for resource in DECIDING:
            if resource is not PODS:
                on_progress(f"reading {resource.name}")
                events.append(await _list_served(session, resource))
        if settings.preemption.enabled:
            events.append(await _list_foreign(session, WATCHED_BUDGETS))
        events += [await _list_foreign(session, groups(dialect, kind)) for dialect, kind in DEFAULT.kinds.items()]
        on_progress("reading pods")
        listed = await _list(session, pods(DEFAULT, kinds))
        events += await _list_workloads(session, kinds, _needed(listed, settings.scheduler_names))
        events += [listed, Synced()]
    except ApiError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return Reading(group=group, forbidden=error.message)
    return Reading(group=group, events=events)


async def read_gangs(
    session: ApiSession, namespace: str, settings: Settings, *, on_progress: OnProgress = _ignore
) -> Reading:
    """Read the objects that define the gangs of the namespace, or of all if it is empty, as far as the caller may.

    The events contain no nodes. With `forbidden`, they contain only PodGroups.

    Raises:
        ApiError: the caller may list neither PodGroups nor pods; and as `read`.
    """
    kinds = chosen(settings)
    on_progress("reading podgroups")
    own: Event | None = None
    try:
        own = await _list(session, GROUPS, namespace)
        on_progress("reading pods")
        listed = await _list(session, pods(DEFAULT, kinds), namespace)
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND and own is None:
            raise CrdMissing(_NO_CRD) from error
        if error.status != HTTPStatus.FORBIDDEN or own is None:
            raise
        return Reading(group=None, events=[own, Synced()], forbidden=error.message)
    on_progress("reading workloads")
    events = [
        await _list_namespaces(session, namespace),
        own,
        *[await _list_foreign(session, groups(dialect, kind), namespace) for dialect, kind in DEFAULT.kinds.items()],
        *await _list_workloads(session, kinds, _needed(listed, settings.scheduler_names), namespace),
        listed,
        Synced(),
    ]
    return Reading(group=None, events=events)


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


async def _read_group(session: ApiSession, key: GroupKey) -> Group | None:
    path = f"/apis/{API_VERSION}/namespaces/{quoted(key.namespace)}/podgroups/{quoted(key.name)}"
    answer = await session.request("GET", path)
    if answer.status == HTTPStatus.NOT_FOUND:
        # For a missing object the server sends a Status, for an unknown path a plain line.
        if answer.error().reason == "NotFound":
            return None
        raise CrdMissing(_NO_CRD)
    return _decoded(lambda: group_from_object(_OBJECT.decode(answer.checked().body)), f"PodGroup {key}")


async def _list(session: ApiSession, resource: Resource[Value], namespace: str = "") -> Event:
    """All objects of the kind from one consistent list: after an expired page (410) the list starts again.

    With a `namespace`, only its own.
    """
    folder, _, plural = resource.path.rpartition("/")
    path = f"{folder}/namespaces/{quoted(namespace)}/{plural}" if namespace else resource.path
    for _ in range(_LISTS - 1):
        with suppress(Expired):
            return await _list_once(session, resource, path)
    return await _list_once(session, resource, path)


async def _list_once(session: ApiSession, resource: Resource[Value], path: str) -> Event:
    values: list[Value] = []
    async for page in pages_of(session, path, resource.name):
        values += [_decoded(lambda: resource.read(item)[1], f"One of the {resource.name}") for item in page.items or ()]  # noqa: B023 - called at once
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
        for kind in [candidate for candidate in kinds.kinds.values() if candidate.row.name in names]:
            event = await _list_foreign(session, objects(kind), namespace)
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
