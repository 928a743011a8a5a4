"""The checks of the API server's audit log."""

from __future__ import annotations

import pytest

from tests.faults.objects import Json
from tests.faults.requests import examine


def entry(
    verb: str, subresource: str = "", *, name: str = "a-0", code: int = 201, agent: str = "gangsched", **fields
) -> Json:
    return {
        "stage": "ResponseComplete",
        "verb": verb,
        "userAgent": agent,
        "requestURI": f"/api/v1/namespaces/default/pods/{name}/{subresource}?timeout=4s",
        "objectRef": {"resource": "pods", "namespace": "default", "name": name, "subresource": subresource},
        "responseStatus": {"code": code},
        **fields,
    }


def binding(uid: str = "u1", **fields) -> Json:
    return entry("create", "binding", requestObject={"metadata": {"uid": uid}}, **fields)


def eviction(uid: str = "u1", **fields) -> Json:
    return entry("create", "eviction", requestObject={"deleteOptions": {"preconditions": {"uid": uid}}}, **fields)


DENIED = {"authorization.k8s.io/decision": "forbid"}
"""Annotation of a request that the authorizer denied, so that the log has no body."""


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ([binding("u1"), binding("u1")], "default/a-0 (u1) was bound 2 times"),
        ([binding("u1"), binding("u1", agent="soak")], "default/a-0 (u1) was bound 2 times"),
        ([binding("")], "does not name the pod's UID"),
        ([binding("", code=409)], "does not name the pod's UID"),
        ([binding("u1", requestURI="/api/v1/namespaces/default/pods/a-0/binding")], "no time-out of its own"),
        ([entry("delete")], "was deleted by gangsched"),
        ([entry("delete", code=403, annotations=DENIED)], "was deleted by gangsched"),
        ([entry("deletecollection", name="")], "was deleted by gangsched"),
        ([entry("create", "eviction", requestObject={})], "an eviction of default/a-0 does not name the pod's UID"),
        ([eviction(name="bare-1")], "was to be evicted though nothing would recreate it"),
        ([eviction(name="bare-1", code=429)], "was to be evicted though nothing would recreate it"),
    ],
)
def test_each_misdeed_is_found(entries, told: str) -> None:
    (wrong,) = examine(
        entries, spares=lambda name: "nothing would recreate it" if name.startswith("bare") else ""
    ).wrong

    assert told in wrong
