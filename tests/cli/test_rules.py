"""By which settings a command decides."""

from __future__ import annotations

import argparse
import json

import pytest

from gangsched.cli.leaders import Leader, Leaders, read_leaders
from gangsched.cli.rules import rules
from gangsched.config.published import published, read
from gangsched.config.settings import Settings
from tests.kube.fake_api import FakeApi, body, serving, status

LEASES = "/apis/coordination.k8s.io/v1/leases"


def leader(lease: str, **values: object) -> Leader:
    return Leader(lease, read(published(Settings.model_validate_json(json.dumps(values)))))


def arguments(*, config=None, scheduler_name=None) -> argparse.Namespace:
    return argparse.Namespace(config=config, scheduler_name=scheduler_name)


def led(*leaders: Leader) -> Leaders:
    return Leaders((), bool(leaders), leaders)


A = leader("sys/a", maxPriority=1)
B = leader("sys/b", maxPriority=2, schedulerNames=["b", "c"])


@pytest.mark.parametrize(
    ("leaders", "flags", "schedulers", "found"),
    [
        (led(), None, [], (1_000_000_000, ("gangsched",))),
        (led(A), None, [], (1, ("gangsched",))),
        (led(B), None, [], (2, ("b", "c"))),
        (led(B, A), None, [], (1, ("gangsched",))),
        (led(A, B), None, ["c"], (2, ("b", "c"))),
        (led(A, B), ["c"], [], (2, ("c",))),
        (led(A, B), ["d"], [], (1_000_000_000, ("d",))),
        (led(A, B), None, ["d"], (1_000_000_000, ("gangsched",))),
        (led(Leader("sys/old")), None, [], (1_000_000_000, ("gangsched",))),
    ],
)
def test_they_are_those_of_the_operator_that_serves_the_pod(leaders, flags, schedulers, found):
    settings = rules(arguments(scheduler_name=flags), leaders, schedulers=schedulers).settings
    assert (settings.max_priority, settings.scheduler_names) == found


def test_an_operator_of_another_namespace_decides_nothing():
    elsewhere = leader("sys/a", maxPriority=1, namespace="team")
    assert rules(arguments(), led(elsewhere), namespace="other").settings == Settings()
    here = rules(arguments(), led(elsewhere), namespace="team").settings
    assert (here.max_priority, here.namespace) == (1, "")
    named = rules(arguments(scheduler_name=["gangsched"]), led(elsewhere, A), namespace="other")
    assert named.notes == ["Decided by the operator's settings, which the Lease sys/a tells: maxPriority."]


def test_a_file_counts_alone(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("maxPriority: 5")
    decided = rules(arguments(config=path), led(A))
    assert (decided.settings.max_priority, decided.notes) == (5, ())


@pytest.mark.parametrize(
    ("leaders", "said"),
    [
        (led(leader("sys/a")), []),
        (led(A), ["Decided by the operator's settings, which the Lease sys/a tells: maxPriority."]),
        (
            led(Leader("sys/a", read('{"later": 1}'))),
            [
                (
                    "Settings of the operator with the Lease sys/a that this version does not know are left out: "
                    "later. Use the version of the operator."
                ),
            ],
        ),
        (
            led(Leader("sys/a", read("sha256:0"))),
            [
                (
                    "The settings of the operator with the Lease sys/a are too large to be read there, and those used "
                    "here are the defaults: name its file with --config."
                ),
            ],
        ),
        (
            Leaders(("Whether an operator leads cannot be seen.",), None),
            [
                (
                    "The operator's settings cannot be seen, and those used here are the defaults: request the right "
                    "to list Leases in all namespaces, or name the operator's file with --config."
                ),
            ],
        ),
    ],
)
def test_it_is_told_which_are_used_unless_they_are_the_defaults(leaders, said):
    assert list(rules(arguments(), leaders).notes) == said


@pytest.mark.parametrize(
    ("texts", "collide"),
    [
        (["{}"], False),
        (["{}", '{"schedulerNames":["b"]}'], False),
        (["{}", '{"schedulerNames":["b","gangsched"]}'], True),
        (['{"namespace":"a"}', '{"namespace":"b"}'], False),
        (['{"namespace":"a"}', "{}"], True),
        (["{}", None], True),
        (["{}", "sha256:0"], True),
    ],
)
async def test_several_operators_are_a_fault_if_they_may_serve_one_schedulername(texts, collide):
    held = {"holderIdentity": "x", "renewTime": "2999-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15}
    items = [
        {
            "metadata": {
                "namespace": "sys",
                "name": f"l{number}",
                "annotations": {"gangsched.io/settings": text} if text is not None else {},
            },
            "spec": held,
        }
        for number, text in enumerate(texts)
    ]
    api = FakeApi()
    api.answer("GET", LEASES, body({"items": items}), body({"items": []}))
    async with serving(api) as session:
        leaders = await read_leaders(session)
    assert leaders.leads
    assert [each.lease for each in leaders.all] == [f"sys/l{number}" for number in range(len(texts))]
    assert any("More than one operator leads" in each for each in leaders.sentences) is collide


async def test_a_right_that_is_missing_is_not_the_lack_of_an_operator():
    api = FakeApi()
    api.answer("GET", LEASES, status(403, "leases is forbidden", reason="Forbidden"))
    async with serving(api) as session:
        leaders = await read_leaders(session)
    assert leaders.leads is None
    assert "leases is forbidden" in leaders.sentences[0]
