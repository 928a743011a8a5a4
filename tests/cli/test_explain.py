"""`gangsched explain` for a tenant who may get the PodGroups of one namespace and nothing else."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest

from gangsched.api.conversion import group_from_object
from gangsched.cli import leaders, make_parser
from gangsched.cli.cluster_access import UsageError, named, namespace_of, split_name
from gangsched.cli.explain import _look_at
from gangsched.cli.leaders import Leader, Leaders
from gangsched.config.dialects import DIALECTS
from gangsched.config.published import published, read
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import GroupKey
from gangsched.views.resource_names import resource_of
from tests.kube.fake_api import FakeApi, body, serving, status

HELPS = ["cpu 2 more on nodes that accept its members, cpu 1 per member", "a minimum of at most 2: that many fit"]
SHARED = {"eks.amazonaws.com/nodegroup": "small", "topology.kubernetes.io/zone": "a"}
GROUP = {
    "apiVersion": "gangsched.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "train", "namespace": "team-a", "uid": "u", "resourceVersion": "1"},
    "spec": {"minMember": 4},
    "status": {
        "phase": "Queued",
        "members": 4,
        "bound": 0,
        "source": "gangsched PodGroup",
        "conditions": [
            {
                "type": "Scheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "Only 2 of 4 members fit. Ahead of it: 3 other groups or pods.",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }
        ],
        "demand": [{"count": 2, "requests": {"cpu": "1"}}],
        "fitting": [{"members": 2, "nodes": 1, "shared": SHARED}],
        "helps": HELPS,
    },
}


async def explained(*arguments: str) -> str:
    """What is printed; the API server lets the caller get the PodGroup only."""
    api = FakeApi.answering("GET", "/apis/gangsched.io/v1alpha1/namespaces/team-a/podgroups/train", body(GROUP))
    for path in ("/apis/coordination.k8s.io/v1/leases", "/api/v1/namespaces"):
        api.answer("GET", path, status(403, f"may not list {path}", reason="Forbidden"))
    parsed = make_parser().parse_args(["explain", "team-a/train", *arguments])
    async with serving(api) as session:
        [(_, _, text)] = await _look_at(parsed, session)
    return text


@pytest.mark.parametrize(
    ("pods", "words", "answers"),
    [
        (10_000, [], "cluster"),
        (10_001, [], "status"),
        (10_001, ["-o", "wide"], "cluster"),
        (10_001, ["-o", "json"], "cluster"),
    ],
)
async def test_of_a_large_cluster_the_status_answers(monkeypatch, pods: int, words: list[str], answers: str) -> None:
    """5,000 nodes and 31,000 pods took 3 s to read and decide on, each time somebody asked about one group."""

    async def led(_: object) -> Leaders:
        return Leaders((), leads=True, all=[Leader("sys/a", read(published(Settings())))])

    monkeypatch.setattr(leaders, "read_leaders", led)
    path = "/apis/gangsched.io/v1alpha1/namespaces/team-a/podgroups/train"
    api = FakeApi.answering("GET", path, body(GROUP), body(GROUP))
    page = {"metadata": {"continue": "more", "remainingItemCount": pods - 1}, "items": []}
    api.answer("GET", "/api/v1/pods", body(page))
    api.answer("GET", "/api/v1/namespaces", status(403, "no", reason="Forbidden"))
    async with serving(api) as session:
        [(_, _, text)] = await _look_at(make_parser().parse_args(["explain", "team-a/train", *words]), session)
    assert any(asked.path == "/api/v1/nodes" for asked in api.asked) == (answers == "cluster")
    assert HELPS[0] in text
    assert ("-o wide" in text) == (answers == "status")


async def test_all_that_the_operator_wrote_is_told() -> None:
    told = json.loads(await explained("--json"))
    written = group_from_object(GROUP).status
    assert (told["phase"], told["reason"]) == ("Queued", "Unschedulable")
    assert (told["message"], told["since"]) == (written.conditions[0].message, "2026-01-02T03:04:05Z")
    assert (told["members"], told["minimum"], told["bound"]) == (4, 4, 0)
    assert told["demand"] == [{"count": 2, "requests": {"cpu": "1"}, "domain": None}]
    assert told["fitting"] == [{"members": 2, "nodes": 1, "shared": SHARED}]
    assert told["helps"] == HELPS
    assert told["fromStatusAlone"] == "may not list /api/v1/namespaces"
    assert (told["shortfall"], told["noOperator"], told["settings"]) == (None, [], [])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("b", ("", "b")),
        ("team/b", ("team", "b")),
        ("podgroup.gangsched.io/b", ("", "b")),
        ("podgroup.scheduling.volcano.sh/b", ("", "b")),
        ("compositepodgroup.scheduling.k8s.io/b", ("", "b")),
        ("podgroup/b", ("", "b")),
        ("podgroups/b", ("", "b")),
        ("pods/b", ("", "b")),
        ("gang/b", ("gang", "b")),
        ("podgroup.gangsched.io/", None),
        ("job.batch/b", None),
        ("Team/b", None),
        ("../b", None),
        ("/b", None),
        ("a/b/c", None),
    ],
)
def test_a_group_is_named_as_lists_name_it(text: str, found: tuple[str, str] | None) -> None:
    """Regression: what `list -o name` prints was taken for a namespace and a name."""
    if found is None:
        with pytest.raises(UsageError):
            split_name(text)
    else:
        assert split_name(text) == found


@pytest.mark.parametrize("source", ["", "Job", *(f"{name} PodGroup" for name in DIALECTS), "native CompositePodGroup"])
@pytest.mark.parametrize("uid", ["", "u"])
def test_the_kind_of_no_group_is_taken_for_a_namespace(source: str, uid: str) -> None:
    """Regression: `list -o name` printed gang/NAME for groups without a PodGroup, `explain -o name` pod/NAME."""
    assert split_name(f"{resource_of(GroupKey('team', 'b', uid), source)}/b") == ("", "b")


@pytest.mark.parametrize("namespace", ["a/b", "..", ".", "a.b", "UPPER", "ä", "a b", "-a", "a" * 64, "a\n", "\x1b[31m"])
@pytest.mark.parametrize("command", [["list"], ["events", "b"]])
@pytest.mark.parametrize("given", [True, False], ids=["by -n", "by the context"])
async def test_what_no_namespace_can_be_called_is_told(command: list[str], namespace: str, *, given: bool) -> None:
    """Regression: `list -n a/b` asked for another path, and then said to install the CRD, which was there."""
    arguments = make_parser().parse_args([*command, *([f"--namespace={namespace}"] if given else [])])
    async with serving(FakeApi()) as session:
        session.namespace = "team" if given else namespace
        with pytest.raises(UsageError) as told:
            named(arguments, "b", session)
        with pytest.raises(UsageError):
            namespace_of(arguments, session)
    assert str(told.value).startswith(f"{namespace!r} is not the name of a namespace")


@pytest.mark.parametrize(("flags", "refused"), [(["-n", "other"], True), (["-n", "team"], False), (["-A"], False)])
async def test_a_name_with_one_namespace_and_a_flag_with_another_are_told(flags: list[str], *, refused: bool) -> None:
    """Regression: -n was ignored."""
    arguments = make_parser().parse_args(["explain", "team/b", *flags])
    async with serving(FakeApi()) as session:
        with pytest.raises(UsageError) if refused else nullcontext():
            assert named(arguments, "team/b", session) == GroupKey("team", "b")


async def test_a_person_reads_the_same() -> None:
    text = await explained("-o", "wide")
    rows = [line.strip().partition("  ") for line in text.splitlines()[1:]]
    told = {head: said.strip() for head, _, said in rows}
    assert told["since"] == "2026-01-02T03:04:05Z"
    assert told["fits"] == "2 members on 1 node: small a"
    assert told["would help"] == HELPS[0]
    assert "may not list /api/v1/namespaces" in told["note"]
