"""How `gangsched explain` reads lists, and its messages about other systems' groups that it cannot read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gangsched.cli.group_reader import read, read_members
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import BudgetsReplaced, ForeignGroupsReplaced, NamespacesReplaced
from gangsched.kube.client.errors import CrdMissing, Expired
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.reading.device_values import DEVICES
from gangsched.kube.reading.watched_resources import STORAGE
from tests.kube.fake_api import Answer, FakeApi, body, page, serving, status

KAI = "/apis/scheduling.run.ai/v2alpha2"
POLICY = "/apis/policy/v1"
SERVED = body({"resources": [{"name": "podgroups"}]})
MISSING = status(404, "not found", reason="NotFound")
DENIED = status(403, "you may not", reason="Forbidden")
GROUP = {"metadata": {"name": "g", "namespace": "n", "uid": "u"}, "spec": {"minMember": 2}}


LISTS = (
    *("/api/v1/namespaces", "/apis/scheduling.k8s.io/v1/priorityclasses", "/api/v1/nodes", "/api/v1/pods"),
    "/apis/gangsched.io/v1alpha1/podgroups",
    *(resource.path for resource in STORAGE.values()),
    *(resource.path for resource in DEVICES.values()),
)
EXPIRED = status(410, "The provided continue parameter is too old", reason="Expired")


def cluster(*, kai: Answer = MISSING, budgets: Answer = MISSING, apart: Sequence[str] = ()) -> FakeApi:
    """An API server with empty lists, except those in `apart`.

    `kai` is its discovery of KAI's PodGroups, `budgets` that of PodDisruptionBudgets.
    """
    api = FakeApi.answering("GET", "/apis/gangsched.io/v1alpha1/namespaces/n/podgroups/g", MISSING)
    for path in LISTS:
        if path not in apart:
            api.answer("GET", path, page([], 1))
    for kind in DEFAULT.kinds.values():
        for version in kind.resource.versions:
            path = f"/apis/{kind.resource.group}/{version}"
            api.answer("GET", path, kai if path == KAI else MISSING)
    api.answer("GET", POLICY, budgets)
    return api


def namespace(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": {}}}


@pytest.mark.parametrize(
    ("discovery", "listing", "found", "said"),
    [
        (MISSING, None, [], ""),
        (SERVED, page([GROUP], 1), ["g"], ""),
        (SERVED, MISSING, [], ""),
        (SERVED, DENIED, None, "You may not list podgroups.scheduling.run.ai (403 Forbidden: you may not), "),
        (DENIED, None, None, "You may not list podgroups.scheduling.run.ai (403 Forbidden: you may not), "),
        (
            SERVED,
            status(500, "broken", reason="InternalError"),
            None,
            "podgroups.scheduling.run.ai cannot be listed (500 InternalError: broken), ",
        ),
    ],
)
async def test_what_cannot_be_listed_is_said_and_spoils_nothing_else(discovery, listing, found, said):
    api = cluster(kai=discovery)
    if listing is not None:
        api.answer("GET", f"{KAI}/podgroups", listing)
    async with serving(api) as session:
        reading = await read(session, GroupKey("n", "g"))
    kai = (each for each in reading.events if isinstance(each, ForeignGroupsReplaced) and each.dialect == "kai")
    groups = next((each.groups for each in kai), None)
    assert (None if groups is None else [group.key.name for group in groups]) == found
    assert [why[: len(said)] for why in reading.hidden] == ([said] if said else [])


@pytest.mark.parametrize(
    ("listing", "found", "said"),
    [
        (page([{"metadata": {"name": "b", "namespace": "n", "resourceVersion": "1"}}], 1), ["n/b"], []),
        (DENIED, None, ["You may not list poddisruptionbudgets.policy (403 Forbidden: you may not), "]),
    ],
)
async def test_budgets_are_read_and_what_cannot_be_listed_of_them_is_said(listing, found, said):
    api = cluster(budgets=body({"resources": [{"name": "poddisruptionbudgets"}]}))
    api.answer("GET", f"{POLICY}/poddisruptionbudgets", listing)
    async with serving(api) as session:
        reading = await read(session, GroupKey("n", "g"))
    listed = next((each.budgets for each in reading.events if isinstance(each, BudgetsReplaced)), None)
    assert (None if listed is None else [budget.key for budget in listed]) == found
    assert [why.partition("so their")[0] for why in reading.hidden] == said


async def test_an_operator_that_preempts_nobody_reads_no_budgets():
    api = cluster()
    async with serving(api) as session:
        await read(session, GroupKey("n", "g"), Settings.model_validate({"preemption": {"enabled": False}}))
    assert POLICY not in {asked.path for asked in api.asked}


async def test_a_list_whose_pages_expire_is_read_anew_and_no_mixture_of_two():
    """On a large cluster a continue token may expire, which the server answers with 410."""
    api = cluster(apart=["/api/v1/namespaces"])
    api.answer("GET", "/api/v1/namespaces", page([namespace("old"), namespace("both")], 1, more="one"), EXPIRED)
    api.answer("GET", "/api/v1/namespaces", page([namespace("both")], 9, more="two"), page([namespace("new")], 9))
    async with serving(api) as session:
        reading = await read(session, GroupKey("n", "g"))
    [listed] = [event for event in reading.events if isinstance(event, NamespacesReplaced)]
    assert [each.name for each in listed.namespaces] == ["both", "new"]
    asked = [asked.query.get("continue") for asked in api.asked if asked.path == "/api/v1/namespaces"]
    assert asked == [None, "one", None, "two"]


async def test_a_list_whose_pages_expire_every_time_is_given_up():
    api = cluster(apart=["/api/v1/namespaces"])
    api.answer("GET", "/api/v1/namespaces", *[page([namespace("a")], 1, more="one"), EXPIRED] * 5)
    async with serving(api) as session:
        with pytest.raises(Expired):
            await read(session, GroupKey("n", "g"))
    assert len([asked for asked in api.asked if asked.path == "/api/v1/namespaces"]) == 6


async def test_without_the_crd_it_says_how_to_install_it():
    """For an unknown path the API server sends a plain line instead of a Status with a reason."""
    api = FakeApi()
    api.answer("GET", "/apis/gangsched.io/v1alpha1/namespaces/n/podgroups/g", status(404, "404 page not found"))
    async with serving(api) as session:
        with pytest.raises(CrdMissing, match=r"gangsched crd \| kubectl apply --server-side"):
            await read(session, GroupKey("n", "g"))


async def test_without_the_crd_it_says_so_also_where_no_group_is_named():
    """`explain`, `top` and `dashboard` said "404 page not found"."""
    api = cluster(apart=["/apis/gangsched.io/v1alpha1/podgroups"])
    api.answer("GET", "/apis/gangsched.io/v1alpha1/podgroups", status(404, "404 page not found"))
    async with serving(api) as session:
        with pytest.raises(CrdMissing, match=r"gangsched crd \| kubectl apply --server-side"):
            await read(session, None)


async def test_members_of_a_group_that_no_label_can_name_are_not_asked_for_by_their_label():
    """The API server refuses a selector with such a value, so that `events` failed."""
    api = FakeApi()
    async with serving(api) as session:
        assert await read_members(session, GroupKey("n", "x" * 64), ["gangsched"]) is None
