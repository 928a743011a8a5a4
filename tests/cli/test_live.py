"""What `gangsched explain` reads of other systems' groups, and says of those that it cannot."""

from __future__ import annotations

import pytest

from gangsched.cli.live import read
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import ForeignGroupsReplaced
from gangsched.kube.dialects.table import DEFAULT
from tests.kube.fake_api import FakeApi, body, page, serving, status

KAI = "/apis/scheduling.run.ai/v2alpha2"
SERVED = body({"resources": [{"name": "podgroups"}]})
MISSING = status(404, "not found", reason="NotFound")
DENIED = status(403, "you may not", reason="Forbidden")
GROUP = {"metadata": {"name": "g", "namespace": "n", "uid": "u"}, "spec": {"minMember": 2}}


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
    api = FakeApi()
    api.answer("GET", "/apis/gangsched.io/v1alpha1/namespaces/n/podgroups/g", MISSING)
    for path in (
        *("/api/v1/namespaces", "/apis/scheduling.k8s.io/v1/priorityclasses", "/api/v1/nodes", "/api/v1/pods"),
        "/apis/gangsched.io/v1alpha1/podgroups",
    ):
        api.answer("GET", path, page([], 1))
    for kind in DEFAULT.kinds.values():
        for version in kind.versions:
            path = f"/apis/{kind.group}/{version}"
            api.answer("GET", path, discovery if path == KAI else MISSING)
    if listing is not None:
        api.answer("GET", f"{KAI}/podgroups", listing)
    async with serving(api) as session:
        reading = await read(session, GroupKey("n", "g"))
    kai = (each for each in reading.events if isinstance(each, ForeignGroupsReplaced) and each.dialect == "kai")
    groups = next((each.groups for each in kai), None)
    assert (None if groups is None else [group.key.name for group in groups]) == found
    assert [why[: len(said)] for why in reading.hidden] == ([said] if said else [])
