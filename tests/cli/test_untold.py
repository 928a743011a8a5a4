"""`gangsched list` where an operator leads: the statuses of PodGroups count, and the pods of which they do not tell."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.cli.group_reader import read_gangs
from gangsched.cli.untold_pods import ask_untold
from gangsched.cli.visible_groups import rows
from gangsched.config.dialects import GROUP_LABEL
from gangsched.config.settings import Settings
from gangsched.kube.client.pages import all_pages
from gangsched.kube.client.paths import PODS, within
from tests.cli.test_events import cluster, pod
from tests.kube.fake_api import page, serving

SCHEDULERS = Settings().scheduler_names
MEMBER = pod("a", labels={GROUP_LABEL: "g"})


def written(name: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "n", "uid": name}, "spec": {"minMember": 2}, "status": status}


@pytest.mark.parametrize(
    ("status", "first", "then", "members"),
    [
        pytest.param({"phase": "Queued", "members": 7}, [], None, 7, id="readable"),
        pytest.param({"phase": "Queued", "members": "seven"}, [], [MEMBER], 1, id="unreadable number"),
        pytest.param({"phase": "Unheard", "members": 7}, [], [MEMBER], 1, id="unknown phase"),
        pytest.param({"phase": ["Queued"], "members": 7}, [MEMBER], None, 1, id="unreadable phase"),
        pytest.param({}, [MEMBER], None, 1, id="never written"),
    ],
)
async def test_members_come_from_a_status_that_can_be_read_and_else_from_the_pods(status, first, then, members):
    """Pods are asked for before the statuses are read whole, so the first answer can lack some."""
    api = cluster(groups=[written("g", **status)], pods=first)
    if then is not None:
        api.answer("GET", within(PODS, "n"), page(then, 1))
    async with serving(api) as session:
        pages = await all_pages(session, within("/apis/gangsched.io/v1alpha1/podgroups", "n"), "podgroups")
        untold = ask_untold(session, pages, "n", SCHEDULERS)
        reading = await read_gangs(session, "n", Settings(), pages=pages, untold=untold)
    [row] = rows(reading, policy=Settings().policy(), now=1_000_000.0)
    assert (row.key.name, row.members) == ("g", members)
