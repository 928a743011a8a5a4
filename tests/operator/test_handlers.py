from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from gangsched.api.custom_resource import crd
from gangsched.api.podgroup_names import NAME
from gangsched.config.pod_groups import PodGroups
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import GroupExpired
from gangsched.kube.client.credentials import Connection
from gangsched.kube.client.session import ApiSession
from gangsched.operator.memo import Deletion, Memo
from tests.kube.fake_api import FakeApi, body, serving, status
from tests.operator.groups import podgroup

if TYPE_CHECKING:
    import kopf

GROUPS_PATH = "/apis/gangsched.io/v1alpha1/podgroups"


def registry(*, deletion: bool = False) -> kopf.OperatorRegistry:
    from gangsched.operator.handlers import make_registry

    return make_registry(deletion=deletion)


def handler(made: kopf.OperatorRegistry, kind: str, name: str) -> Any:
    """The only handler of this kind and id."""
    [found] = [each for each in getattr(made, kind).get_all_handlers() if each.id == name]
    return found.fn


@pytest.fixture
async def session() -> AsyncIterator[ApiSession]:
    async def authorization() -> str | None:
        return "Bearer of-tests"

    made = ApiSession(Connection(server="https://api:6443", authorization=authorization))
    yield made
    await made.close()


def older(*lacking: str) -> dict[str, Any]:
    """Our CustomResourceDefinition without these fields of the spec."""
    found = copy.deepcopy(crd())
    fields = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    for name in lacking:
        del fields[name]
    return found


async def test_what_the_installed_definition_lacks_is_told_each_time_and_logged_when_it_changes(
    session: ApiSession, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[list[str]] = []
    memo = Memo(session=session, on_crd=told.append)
    seen_by = handler(registry(), "_watching", "crd")
    fields = list(crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])
    seen = [older(), older(*fields[:1]), older(*fields[:1]), older(*fields[:7]), older(), older(*fields[:1])]
    for number, found in enumerate(seen):
        result = await seen_by(event={"type": "MODIFIED" if number else None, "object": found}, memo=memo)
        assert result is None, "kopf would write a result into the object's status"
    await seen_by(event={"type": "DELETED", "object": older(*fields[:1])}, memo=memo)
    assert [len(missing) for missing in told] == [0, 1, 1, 7, 0, 1, 0]
    assert told[1] == [f"spec.{fields[0]}"]
    logged = [vars(record)["lacks"] for record in caplog.records if record.levelno == logging.WARNING]
    assert len(logged) == 3
    assert logged[1].endswith(" and 2 more")
    assert all(vars(record)["crd"] == NAME for record in caplog.records)


@pytest.mark.parametrize("spec", [None, {}, {"versions": None}, {"versions": [{}]}], ids=str)
async def test_a_definition_of_another_form_ends_nothing(session: ApiSession, spec: Any) -> None:
    told: list[list[str]] = []
    memo = Memo(session=session, on_crd=told.append)
    await handler(registry(), "_watching", "crd")(event={"type": "ADDED", "object": {"spec": spec}}, memo=memo)
    assert told == [[]]


@pytest.mark.parametrize("deletion", [False, True])
def test_groups_are_watched_only_for_their_deletion_and_no_handler_makes_kopf_write(*, deletion: bool) -> None:
    made = registry(deletion=deletion)
    watched = {each.selector and each.selector.any_name for each in made._watching.get_all_handlers()}  # noqa: SLF001
    assert watched == {"customresourcedefinitions", *(["podgroups"] if deletion else [])}
    for writing in ("_changing", "_spawning", "_indexing", "_webhooks"):
        assert list(getattr(made, writing).get_all_handlers()) == []


async def test_kopf_gets_a_new_session_of_its_own_at_each_login(session: ApiSession) -> None:
    memo = Memo(session=session, on_crd=print)
    login = handler(registry(), "_activities", "session")
    logins = [await login(memo=memo), await login(memo=memo)]
    assert [each.server for each in logins] == ["https://api:6443"] * 2
    assert logins[0].aiohttp_session is not logins[1].aiohttp_session
    for each in logins:
        await each.aiohttp_session.close()


@pytest.mark.parametrize(("answer", "selects"), [(body({"items": []}), True), (status(400, "no such field"), False)])
async def test_the_api_server_limits_the_watch_to_finished_groups_if_it_knows_the_field(answer, selects) -> None:
    from gangsched.operator.finished import SELECTOR
    from gangsched.operator.kopf_settings import make_settings

    settings, api = make_settings(), FakeApi()
    api.answer("GET", GROUPS_PATH, answer)
    async with serving(api) as session:
        memo = Memo(session=session, on_crd=print)
        await handler(registry(deletion=True), "_activities", "selector")(memo=memo, settings=settings)
    assert api.asked[0].query == {"fieldSelector": SELECTOR, "limit": "1"}
    selectors = settings.watching.field_selectors
    assert [selectors[key] for key in selectors if key.any_name == "podgroups"] == [SELECTOR] * selects


@pytest.mark.parametrize("code", [401, 403, 404, 500])
async def test_a_server_that_does_not_say_is_asked_again_soon(code: int) -> None:
    import kopf

    from gangsched.operator.kopf_settings import make_settings

    api = FakeApi.answering("GET", GROUPS_PATH, status(code, "no"))
    async with serving(api) as session:
        memo = Memo(session=session, on_crd=print)
        with pytest.raises(kopf.TemporaryError) as raised:
            await handler(registry(deletion=True), "_activities", "selector")(memo=memo, settings=make_settings())
    assert raised.value.delay is not None
    assert raised.value.delay <= 5


async def test_what_has_expired_is_posted_while_this_replica_leads(
    session: ApiSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gangsched.operator.handlers._LOOK_EVERY_S", 0.05)
    posted: list[GroupExpired] = []
    leading = False
    deletion = Deletion(default_ttl_s=1.0, leads=lambda: leading, post=posted.extend)
    memo = Memo(session=session, on_crd=print, deletion=deletion)
    made = registry(deletion=True)
    seen_by = handler(made, "_watching", "finished")
    for name in ("a", "b", "c"):
        await seen_by(event={"type": None, "object": podgroup(name)}, memo=copy.copy(memo))
    await seen_by(event={"type": "DELETED", "object": podgroup("b")}, memo=memo)
    await seen_by(event={"type": "MODIFIED", "object": podgroup("c", phase="Pending")}, memo=memo)
    begin, end = handler(made, "_activities", "deletion"), handler(made, "_activities", "end")
    await begin(memo=memo)
    await asyncio.sleep(0.2)
    assert posted == []
    leading = True
    await asyncio.sleep(0.2)
    await end(memo=memo)
    assert posted == [GroupExpired(GroupKey("team", "a"), "uid-a", "7")]
    assert memo.deleting is not None
    assert memo.deleting.done()


@pytest.mark.parametrize(
    ("settings", "default_ttl_s"),
    [
        (PodGroups.model_validate({"deleteFinished": True, "ttlAfterFinished": "1m"}), 60.0),
        (PodGroups.model_validate({"deleteFinished": True}), None),
    ],
)
def test_the_settings_say_how_long_groups_live_that_do_not(settings: PodGroups, default_ttl_s: float | None) -> None:
    made = Deletion.of(settings, leads=lambda: True, post=print)
    assert made is not None
    assert made.default_ttl_s == default_ttl_s
    assert Deletion.of(PodGroups(), leads=lambda: True, post=print) is None
