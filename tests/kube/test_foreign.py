"""The watch of another system's kind against a scripted API server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from gangsched.core.objects.events import (
    Event,
    ForeignGroupGone,
    ForeignGroupSeen,
    ForeignGroupsHidden,
    ForeignGroupsReplaced,
)
from gangsched.kube.client.discovery import Discovery, listed_versions
from gangsched.kube.client.errors import AccessDenied, ApiError
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.foreign.watch import ForeignWatch, groups, served_version, settle
from tests.kube.fake_api import Answer, FakeApi, Inbox, body, page, serving, status, stream

DISCOVERY = "/apis/scheduling.volcano.sh/v1beta1"
LIST = f"{DISCOVERY}/podgroups"
SERVED = body({"resources": [{"name": "podgroups"}, {"name": "podgroups/status"}]})
NEIGHBOUR = body({"resources": [{"name": "queues"}]})
UNLISTED = body({"groups": [{"name": "apps", "versions": [{"groupVersion": "apps/v1"}]}]})
LISTED = body(
    {"groups": [{"name": "scheduling.volcano.sh", "versions": [{"groupVersion": "scheduling.volcano.sh/v1beta1"}]}]}
)
HANG = stream(then="hang")
Answers = Sequence[Answer]
MISSING = status(404, "the server could not find the requested resource", reason="NotFound")
DENIED = status(403, 'podgroups is forbidden: User "x" cannot list', reason="Forbidden")
FAILING = status(500, "etcd is ill", reason="InternalError")


def group(name: str, version: int = 1, minimum: int = 2) -> dict[str, Any]:
    meta = {"name": name, "namespace": "n", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {"minMember": minimum}}


def native(name: str, version: int = 1) -> dict[str, Any]:
    return {**group(name, version), "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}


def server(*, discovery: Answers = (), apis: Answers = (), lists: Answers = (), watches: Answers = ()) -> FakeApi:
    """An API server with these answers to requests, in order."""
    api = FakeApi.answering("GET", DISCOVERY, *discovery)
    api.answer("GET", "/apis", *apis)
    api.answer("GET", LIST, *lists)
    api.answer("WATCH", LIST, *watches)
    return api


class Said(Inbox):
    """The events of a watch of Volcano's PodGroups, in words."""

    @property
    def said(self) -> list[str]:
        return [self._word(event) for event in self.events]

    def _word(self, event: Event) -> str:
        match event:
            case ForeignGroupsReplaced(_, groups):
                return f"all: {', '.join(each.key.name for each in groups)}"
            case ForeignGroupSeen(each):
                return f"seen: {each.key.name}"
            case ForeignGroupGone("volcano", key):
                return f"gone: {key.name}"
            case ForeignGroupsHidden("volcano", why, denied):
                return f"{'denied' if denied else 'hidden'}: {why}"
        raise AssertionError(event)


@asynccontextmanager
async def watching(
    api: FakeApi,
    patience_s: float = 60.0,
    retry_s: float = 0.01,
    dialect: str = "volcano",
    after: Sequence[Any] = (),
) -> AsyncIterator[tuple[ForeignWatch, Said]]:
    inbox = Said()
    async with serving(api) as session:
        watch = ForeignWatch(
            session,
            groups(dialect, DEFAULT.kinds[dialect]),
            inbox.post,
            observer=inbox,
            discovery=Discovery(session, every_s=0.01),
            retry_s=retry_s,
            patience_s=patience_s,
            after=after,
        )
        task = asyncio.create_task(watch.run())
        try:
            yield watch, inbox
        finally:
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno >= logging.WARNING]


async def test_what_is_served_is_listed_and_watched():
    api = FakeApi.answering("GET", DISCOVERY, SERVED)
    api.answer("GET", LIST, page([group("a")], 5))
    api.answer(
        "WATCH",
        LIST,
        stream({"type": "ADDED", "object": group("b", 6)}, {"type": "DELETED", "object": group("a", 7)}, then="hang"),
    )
    async with watching(api) as (watch, inbox):
        await inbox.until(lambda: len(inbox.said) == 3)
        assert watch.settled.is_set()
    assert inbox.said == ["all: a", "seen: b", "gone: a"]
    assert inbox.counted == {"podgroups.scheduling.volcano.sh": 2}


async def test_it_is_listed_again_with_what_it_is_read_with():
    """First it waits until that is there; then a renewal lists it again, and one before that does nothing."""
    api = FakeApi.answering("GET", DISCOVERY, SERVED)
    api.answer("GET", LIST, page([group("a")], 5), page([group("b")], 7))
    api.answer("WATCH", LIST, HANG, HANG)
    other: Any = SimpleNamespace(synced=asyncio.Event())
    async with watching(api, after=[other]) as (watch, inbox):
        await asyncio.sleep(0.05)
        assert watch.renew("Admission")
        assert api.asked == []
        other.synced.set()
        await inbox.until(lambda: len(inbox.said) == 1)
        assert watch.renew("Admission")
        assert not watch.renew("Admission"), "a list was cut off by the next one"
        await inbox.until(lambda: len(inbox.said) == 2)
    assert inbox.said == ["all: a", "all: b"]
    assert inbox.relists == [("podgroups.scheduling.volcano.sh", "Admission")]


async def test_what_cannot_be_listed_does_not_keep_others_from_being_listed(monkeypatch):
    monkeypatch.setattr("gangsched.kube.foreign.watch.AFTER_S", 0.05)
    api = server(discovery=[SERVED], lists=[page([group("a")], 5)], watches=[HANG])
    never: Any = SimpleNamespace(synced=asyncio.Event())
    async with watching(api, after=[never]) as (_, inbox):
        await inbox.until(lambda: inbox.said == ["all: a"])


async def test_what_is_not_served_is_looked_for_again_once_discovery_lists_it(caplog):
    """Not listed; listed without the kind, twice; listed with it."""
    api = server(
        discovery=[MISSING, NEIGHBOUR, NEIGHBOUR, SERVED],
        apis=[UNLISTED, UNLISTED, LISTED, LISTED, LISTED],
        lists=[page([group("a")], 5)],
        watches=[HANG],
    )
    async with watching(api) as (watch, inbox):
        await watch.settled.wait()
        await inbox.until(lambda: len(inbox.said) == 2)
    assert inbox.said == ["all: ", "all: a"]
    assert [asked.path for asked in api.asked][:9] == [
        *(DISCOVERY, "/apis", "/apis", "/apis", DISCOVERY, "/apis", DISCOVERY, "/apis", DISCOVERY)
    ]
    assert warnings(caplog) == []


async def test_a_discovery_that_fails_is_said_once_and_asked_again(caplog):
    api = server(
        discovery=[MISSING, SERVED],
        apis=[FAILING, FAILING, body([]), LISTED],
        lists=[page([group("a")], 5)],
        watches=[HANG],
    )
    async with watching(api) as (_, inbox):
        await inbox.until(lambda: "all: a" in inbox.said)
    assert len(warnings(caplog)) == 1
    assert warnings(caplog)[0].startswith("reading the API server's discovery failed")


async def test_one_request_asks_for_all_kinds_and_none_is_sent_while_nobody_waits():
    api = FakeApi.answering("GET", "/apis", UNLISTED, UNLISTED, LISTED)
    async with serving(api) as session, asyncio.timeout(10):
        discovery = Discovery(session, every_s=0.05)
        gone = asyncio.create_task(discovery.until_listed(["never/v1"]))
        await asyncio.gather(*(discovery.until_listed(["scheduling.volcano.sh/v1beta1", "x/v1"]) for _ in range(9)))
        gone.cancel()
        await asyncio.sleep(0.2)
    assert len(api.asked) == 3


async def test_that_discovery_is_denied_for_good_keeps_no_replica_from_being_ready():
    """Some clusters deny discovery to ordinary accounts; the only effect is that other systems' kinds are hidden."""
    failed: list[str] = []

    class Told:
        def api_failed(self, problem: str, verb: str, resource: str) -> None:
            failed.append(f"{problem}: {verb} {resource}")

    api = FakeApi()
    denied = status(403, 'forbidden: User "x" cannot get path "/apis"', reason="Forbidden")
    for path in (DISCOVERY, "/apis"):
        api.answer("GET", path, denied)
    async with serving(api) as session:
        session.contact.observer = Told()
        with pytest.raises(AccessDenied):
            await served_version(session, DEFAULT.kinds["volcano"].resource)
        with pytest.raises(ApiError):
            await listed_versions(session)
    assert failed == []


@pytest.mark.parametrize("where", ["discovery", "list"])
async def test_what_may_not_be_read_is_hidden_and_said_once_until_it_may(caplog, where):
    api = FakeApi()
    caplog.set_level(logging.INFO)
    if where == "discovery":
        api.answer("GET", DISCOVERY, *[DENIED] * 4, SERVED)
    else:
        api.answer("GET", DISCOVERY, *[SERVED] * 5)
        api.answer("GET", LIST, *[DENIED] * 4)
    api.answer("GET", LIST, page([group("a")], 5))
    api.answer("WATCH", LIST, HANG)
    async with watching(api) as (watch, inbox):
        await watch.settled.wait()
        await inbox.until(lambda: len(inbox.said) == 2)
    assert inbox.said == [
        (
            "denied: gangsched may not read podgroups.scheduling.volcano.sh: name volcano in the chart's value "
            "`dialects`, or give its account the verbs list and watch on them in a ClusterRole."
        ),
        "all: a",
    ]
    assert warnings(caplog) == ["missing right to read another system's objects"]
    assert "another system's objects are readable again" in [record.message for record in caplog.records]


@pytest.mark.parametrize(("patience_s", "hidden"), [(60.0, False), (0.0, True)])
async def test_what_could_be_read_is_hidden_only_when_it_is_denied_for_long(caplog, patience_s, hidden):
    """A server that has just started denies every request for a moment."""
    api = server(
        discovery=[*[SERVED] * 5],
        lists=[page([group("a")], 5), DENIED, DENIED, DENIED, page([group("b")], 9)],
        watches=[DENIED, HANG],
    )
    async with watching(api, patience_s) as (_, inbox):
        await inbox.until(lambda: "all: b" in inbox.said)
    assert [said.partition(":")[0] for said in inbox.said] == ["all", *["denied"] * hidden, "all"]
    assert len(warnings(caplog)) == hidden


async def test_a_wrong_token_is_no_missing_right(caplog):
    wrong = status(401, "Unauthorized", reason="Unauthorized")
    api = server(discovery=[wrong, wrong, SERVED], lists=[wrong, page([group("a")], 5)], watches=[HANG])
    async with watching(api) as (_, inbox):
        await inbox.until(lambda: bool(inbox.said))
    assert inbox.said == ["all: a"]
    assert "missing right to read another system's objects" not in warnings(caplog)


async def test_a_kind_that_vanishes_has_no_groups_any_more_and_may_come_again(caplog):
    api = server(
        discovery=[SERVED, MISSING, SERVED],
        apis=[UNLISTED, LISTED],
        lists=[page([group("a")], 5), page([group("b")], 9)],
        watches=[MISSING, HANG],
    )
    async with watching(api) as (_, inbox):
        await inbox.until(lambda: "all: b" in inbox.said)
    assert inbox.said == ["all: a", "all: ", "all: b"]
    assert warnings(caplog) == []


async def test_a_list_that_the_server_does_not_know_yet_is_tried_again_soon():
    api = server(discovery=[SERVED, SERVED], lists=[MISSING, page([group("a")], 5)], watches=[HANG])
    async with watching(api) as (_, inbox):
        await inbox.until(lambda: "all: a" in inbox.said)


async def test_a_server_that_fails_keeps_nobody_waiting_and_what_it_lists_later_counts(caplog):
    api = FakeApi.answering("GET", DISCOVERY, FAILING, FAILING, FAILING)
    async with watching(api) as (watch, inbox):
        await settle([watch], 0.2)
        assert watch.settled.is_set()
        [hidden] = inbox.said
        assert hidden.startswith("hidden: gangsched has not been able to list podgroups.scheduling.volcano.sh yet")
        api.answer("GET", LIST, page([group("a")], 5))
        api.answer("WATCH", LIST, HANG)
        api.answer("GET", DISCOVERY, SERVED)
        await inbox.until(lambda: "all: a" in inbox.said)
    assert len([each for each in warnings(caplog) if each.startswith("looking for another")]) <= 2


@pytest.mark.parametrize("early", [True, False])
async def test_what_a_server_denies_that_has_just_started_is_asked_again_before_it_counts(early):
    """The request is denied at first, before or during the start's decision; then the server knows the rights."""
    api = server(discovery=[DENIED, SERVED], lists=[page([group("a")], 5)], watches=[HANG])
    async with watching(api, retry_s=60.0) as (watch, inbox):
        if early:
            await watch.settled.wait()
        await settle([watch], 10.0)
        assert [said.partition(":")[0] for said in inbox.said] == [*["denied"] * early, "all"]


async def test_a_right_that_is_really_missing_is_found_missing_at_once():
    api = server(discovery=[DENIED, DENIED])
    async with watching(api, retry_s=60.0) as (watch, inbox):
        await watch.settled.wait()
        await settle([watch], 10.0)
        assert [said.partition(":")[0] for said in inbox.said] == ["denied"]
        assert len(api.asked) == 2


async def test_a_kind_that_is_given_up_for_now_is_asked_for_anew_at_once():
    api = server(discovery=[FAILING, FAILING, SERVED], lists=[page([group("a")], 5)], watches=[HANG])
    async with watching(api, retry_s=60.0) as (watch, inbox):
        await settle([watch], 0.2)
        assert [said.partition(":")[0] for said in inbox.said] == ["hidden"]
        await inbox.until(lambda: "all: a" in inbox.said)


async def test_what_is_settled_is_not_given_up():
    api = server(discovery=[MISSING], apis=[*[UNLISTED] * 1000])
    async with watching(api) as (watch, inbox):
        await settle([watch], 5.0)
        watch.hide_if_unsettled()
    assert inbox.said == ["all: "]


async def test_a_version_that_replaces_another_is_watched_and_the_groups_are_never_gone(caplog):
    """As in an upgrade of the API server: it is gone, then it serves the kind in another version alone."""
    api = FakeApi()
    old, new = (f"/apis/scheduling.k8s.io/{version}" for version in ("v1alpha2", "v1beta1"))
    api.answer("GET", new, MISSING, SERVED)
    api.answer("GET", "/apis/scheduling.k8s.io/v1alpha3", MISSING)
    api.answer("GET", old, SERVED)
    api.answer("GET", f"{old}/podgroups", page([native("a")], 5))
    api.answer("WATCH", f"{old}/podgroups", stream({"type": "ADDED", "object": native("b", 6)}), MISSING)
    api.answer("GET", f"{new}/podgroups", page([native("a", 8), native("b", 9)], 9))
    api.answer("WATCH", f"{new}/podgroups", HANG)
    async with watching(api, dialect="native") as (watch, inbox):
        await inbox.until(lambda: len(inbox.said) == 3)
        assert watch.settled.is_set()
    assert inbox.said == ["all: a", "seen: b", "all: a, b"]
    assert warnings(caplog) == []
