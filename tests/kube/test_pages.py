"""Lists read page by page."""

from __future__ import annotations

import pytest

from gangsched.kube.client.errors import ApiError, Garbled
from gangsched.kube.client.pages import pages
from tests.kube.fake_api import FakeApi, body, serving, status

PATH = "/api/v1/things"


def page(*names: str, following: str = "") -> dict[str, object]:
    return {"metadata": {"continue": following}, "items": [{"metadata": {"name": name}} for name in names]}


def expired(following: str) -> dict[str, object]:
    """The API server's answer when the resource version of a list has expired."""
    return {"kind": "Status", "code": 410, "reason": "Expired", "metadata": {"continue": following}}


async def names_of(api: FakeApi) -> list[str]:
    async with serving(api) as session:
        return [each["metadata"]["name"] async for page in pages(session, PATH, "things") for each in page["items"]]


async def test_all_pages_are_read():
    api = FakeApi()
    api.answer("GET", PATH, body(page("a", "b", following="x")), body(page("c")))
    assert await names_of(api) == ["a", "b", "c"]
    assert [asked.query.get("continue") for asked in api.asked] == [None, "x"]


async def test_a_list_that_expires_goes_on_with_the_objects_as_they_are_by_then():
    api = FakeApi()
    api.answer("GET", PATH, body(page("a", following="x")), body(expired("y"), 410), body(page("b")))
    assert await names_of(api) == ["a", "b"]
    assert [asked.query.get("continue") for asked in api.asked] == [None, "x", "y"]


@pytest.mark.parametrize("answer", [body(expired(""), 410), body(expired("x"), 410), status(410), status(403)])
async def test_one_that_cannot_go_on_fails(answer):
    api = FakeApi()
    api.answer("GET", PATH, body(page("a", following="x")), answer)
    with pytest.raises(ApiError):
        await names_of(api)


async def test_what_is_no_list_is_told():
    api = FakeApi()
    api.answer("GET", PATH, body([1]))
    with pytest.raises(Garbled, match="A list of things cannot be read"):
        await names_of(api)
