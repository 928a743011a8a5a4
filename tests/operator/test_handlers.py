from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from gangsched.api.crd import NAME, crd

if TYPE_CHECKING:
    import kopf


def registry_for(told: list[list[str]], make_client=aiohttp.ClientSession) -> kopf.OperatorRegistry:
    from gangsched.operator.handlers import make_registry

    return make_registry(server="https://api:6443", make_client=make_client, on_crd=told.append)


def only_handler(registry: kopf.OperatorRegistry, kind: str):
    (handler,) = getattr(registry, kind).get_all_handlers()
    return handler


def older(*lacking: str) -> dict[str, Any]:
    """Our CustomResourceDefinition without these fields of the spec."""
    found = copy.deepcopy(crd())
    fields = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    for name in lacking:
        del fields[name]
    return found


async def test_what_the_installed_definition_lacks_is_told_each_time_and_logged_when_it_changes(caplog):
    told: list[list[str]] = []
    handler = only_handler(registry_for(told), "_watching")
    fields = list(crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])
    seen = [older(), older(*fields[:1]), older(*fields[:1]), older(*fields[:7]), older(), older(*fields[:1])]
    for number, found in enumerate(seen):
        result = await handler.fn(event={"type": "MODIFIED" if number else None, "object": found})
        assert result is None, "kopf would write a result into the object's status"
    await handler.fn(event={"type": "DELETED", "object": older(*fields[:1])})
    assert [len(missing) for missing in told] == [0, 1, 1, 7, 0, 1, 0]
    assert told[1] == [f"spec.{fields[0]}"]
    logged = [vars(record)["lacks"] for record in caplog.records if record.levelno == logging.WARNING]
    assert len(logged) == 3
    assert logged[1].endswith(" and 2 more")
    assert all(vars(record)["crd"] == NAME for record in caplog.records)


@pytest.mark.parametrize("spec", [None, {}, {"versions": None}, {"versions": [{}]}], ids=str)
async def test_a_definition_of_another_form_ends_nothing(spec):
    told: list[list[str]] = []
    await only_handler(registry_for(told), "_watching").fn(event={"type": "ADDED", "object": {"spec": spec}})
    assert told == [[]]


def test_only_definitions_are_watched_and_no_handler_makes_kopf_write():
    registry = registry_for([])
    selector = only_handler(registry, "_watching").selector
    assert (selector.group, selector.version, selector.any_name) == (
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
    )
    for writing in ("_changing", "_spawning", "_indexing", "_webhooks"):
        assert list(getattr(registry, writing).get_all_handlers()) == []


async def test_kopf_gets_a_new_session_of_its_own_at_each_login():
    made: list[aiohttp.ClientSession] = []

    def make_client() -> aiohttp.ClientSession:
        made.append(aiohttp.ClientSession())
        return made[-1]

    handler = only_handler(registry_for([], make_client), "_activities")
    logins = [await handler.fn(), await handler.fn()]
    assert [login.server for login in logins] == ["https://api:6443"] * 2
    assert [login.aiohttp_session for login in logins] == made
    for client in made:
        await client.close()
