"""Lists read page by page."""

from __future__ import annotations

import asyncio

import pytest

from gangsched.kube.client.errors import ApiError, Expired, Garbled
from gangsched.kube.client.pages import objects, pages
from tests.kube.fake_api import FakeApi, body, serving, status

PATH = "/api/v1/things"


def page(*names: str, following: str = "") -> dict[str, object]:
    return {"metadata": {"continue": following}, "items": [{"metadata": {"name": name}} for name in names]}


def expired(following: str) -> dict[str, object]:
    """The API server's answer when the resource version of a list has expired."""
    return {"kind": "Status", "code": 410, "reason": "Expired", "metadata": {"continue": following}}


async def names_of(api: FakeApi, *, resumes: bool = True) -> list[str]:
    async with serving(api) as session:
        return [
            each["metadata"]["name"]
            async for page in pages(session, PATH, "things", resumes=resumes)
            for each in objects(page, "things")
        ]


async def test_the_next_page_is_asked_for_while_the_last_one_is_used():
    api = FakeApi.answering("GET", PATH, body(page("a", following="x")), body(page("b")))
    async with serving(api) as session:
        asked = []
        async for _ in pages(session, PATH, "things"):
            await asyncio.sleep(0.2)
            asked.append(len(api.asked))
    assert asked == [2, 2]


async def test_whoever_stops_early_leaves_no_request_behind():
    api = FakeApi.answering("GET", PATH, body(page("a", following="x")), body(page("b")))
    async with serving(api) as session:
        reading, before = pages(session, PATH, "things"), asyncio.all_tasks()
        await anext(reading)
        [following] = [task for task in asyncio.all_tasks() - before if "pages" in str(task.get_coro())]
        await reading.aclose()
        await asyncio.wait([following], timeout=5)
        assert following.cancelled()


async def test_a_list_that_expires_goes_on_with_the_objects_as_they_are_by_then():
    api = FakeApi.answering("GET", PATH, body(page("a", following="x")), body(expired("y"), 410), body(page("b")))
    assert await names_of(api) == ["a", "b"]
    assert [asked.query.get("continue") for asked in api.asked] == [None, "x", "y"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (body(expired(""), 410), Expired),
        (body(expired("x"), 410), Expired),
        (status(410), Expired),
        (status(403), ApiError),
    ],
)
async def test_one_that_cannot_go_on_fails(answer, error):
    api = FakeApi.answering("GET", PATH, body(page("a", following="x")), answer)
    with pytest.raises(error):
        await names_of(api)


async def test_one_that_must_be_of_one_moment_ends_when_it_expires():
    api = FakeApi.answering("GET", PATH, body(page("a", following="x")), body(expired("y"), 410))
    with pytest.raises(Expired):
        await names_of(api, resumes=False)


async def test_only_what_the_selector_selects_is_asked_for():
    api = FakeApi.answering("GET", PATH, body(page("a")))
    async with serving(api) as session:
        assert [len(page.items or ()) async for page in pages(session, PATH, "things", selector="a=b")] == [1]
    assert api.asked[0].query["labelSelector"] == "a=b"


async def test_each_object_has_the_kind_that_the_list_states_once():
    api = FakeApi.answering("GET", PATH, body({"apiVersion": "v1", "kind": "ThingList", **page("a")}))
    async with serving(api) as session:
        found = [each async for page in pages(session, PATH, "things") for each in objects(page, "things")]
    assert found == [{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}}]


@pytest.mark.parametrize("content", [[1], {"metadata": {}, "items": [1]}])
async def test_what_is_no_list_is_told(content):
    api = FakeApi.answering("GET", PATH, body(content))
    with pytest.raises(Garbled, match="A list of things cannot be read"):
        await names_of(api)
