"""`gangsched list` where an operator leads: the statuses of PodGroups count, and the pods of which they do not tell."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.api.podgroup_names import PATH
from gangsched.cli import main
from gangsched.cli.group_reader import read_gangs
from gangsched.cli.untold_pods import ask_untold
from gangsched.cli.visible_groups import rows
from gangsched.config.dialects import GROUP_LABEL
from gangsched.config.settings import Settings
from gangsched.kube.client.pages import all_pages
from gangsched.kube.client.paths import PODS, within
from tests.cli.test_events import cluster, pod
from tests.cli.test_rules import kubeconfig
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
        pages = await all_pages(session, within(PATH, "n"), "podgroups")
        untold = ask_untold(session, pages, "n", SCHEDULERS)
        reading = await read_gangs(session, "n", Settings(), pages=pages, untold=untold)
    [row] = rows(reading, policy=Settings().policy(), now=1_000_000.0)
    assert (row.key.name, row.members) == ("g", members)


async def test_names_that_are_too_many_for_a_request_have_all_pods_read_page_by_page():
    """Regression: all their pages were kept until the last one had come, which took twice the memory."""
    api = cluster(groups=[written(f"g{at:04}-{'x' * 40}", phase="Queued") for at in range(1000)], pods=[MEMBER])
    async with serving(api) as session:
        pages = await all_pages(session, within(PATH, "n"), "podgroups")
        untold = ask_untold(session, pages, "n", SCHEDULERS)
        reading = await read_gangs(session, "n", Settings(), pages=pages, untold=untold)
    assert untold.pages is None
    assert len(rows(reading, policy=Settings().policy(), now=1_000_000.0)) == 1001


async def test_pods_that_nobody_waits_for_any_more_are_not_asked_for_to_the_end():
    """Regression: Ctrl-C at the wrong moment printed the traceback of a task that went on without a session."""
    async with serving(cluster(groups=[written("g", phase="Queued")])) as session:
        pages = await all_pages(session, within(PATH, "n"), "podgroups")
        untold = ask_untold(session, pages, "n", SCHEDULERS)
        await untold.drop()
    assert untold.pages is not None
    assert untold.pages.cancelled()


def test_a_mistake_in_the_callers_file_is_told_before_anything_of_the_cluster(tmp_path, capsys):
    """Regression: it depended on which answer of the API server came first."""
    (tmp_path / "config.yaml").write_text("foo: bar\n")
    dead = kubeconfig(tmp_path, "https://127.0.0.1:1")
    files = ["--kubeconfig", str(dead), "--config", str(tmp_path / "config.yaml")]
    assert main(["list", *files]) == 2
    assert "foo is not a known key" in capsys.readouterr().err
