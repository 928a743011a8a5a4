"""The settings that a command uses for its decisions."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path

import pytest
from aiohttp import web

from gangsched.cli.cluster_access import UsageError
from gangsched.cli.deciding_settings import Rules, rules, rules_for_manifests
from gangsched.cli.leaders import Leader, Leaders, read_leaders
from gangsched.config.published import published, read
from gangsched.config.settings import Settings
from gangsched.kube.client.errors import ApiUnreachable
from gangsched.kube.client.lease import SETTINGS
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


@pytest.mark.parametrize(
    ("leaders", "schedulers", "said"),
    [
        (led(A, B), ["old"], True),
        (led(leader("sys/a", namespace="other")), ["gangsched"], True),
        (led(A, Leader("sys/silent")), ["old"], False),
        (led(), ["old"], False),
        (led(A), [], False),
    ],
    ids=["renamed", "elsewhere", "one does not say what it serves", "none leads", "no pod is known"],
)
def test_a_schedulername_that_nobody_serves_is_named(leaders, schedulers, said):
    """Regression: after an upgrade to other names, all was decided as if an operator still served the former one."""
    notes = rules(arguments(), leaders, schedulers=schedulers, namespace="team").notes
    told = [note for note in notes if note.startswith("No operator that leads serves pods with the schedulerName")]
    assert [schedulers[0] in note and "in namespace team" in note for note in told] == [True] * said


def test_an_operator_of_another_namespace_decides_nothing():
    elsewhere = leader("sys/a", maxPriority=1, namespace="team")
    assert rules(arguments(), led(elsewhere), namespace="other").settings == Settings()
    here = rules(arguments(), led(elsewhere), namespace="team").settings
    assert (here.max_priority, here.namespace) == (1, "")
    named = rules(arguments(scheduler_name=["gangsched"]), led(elsewhere, A), namespace="other")
    assert named.notes == ["Decided by the operator's settings, from the Lease sys/a: maxPriority."]


@pytest.mark.parametrize("schedulers", [[], ["gangsched"]])
@pytest.mark.parametrize("turn", [1, -1])
def test_of_leases_that_claim_one_schedulername_with_different_settings_the_oldest_counts(schedulers, turn):
    """Regression: anybody who might create a Lease in any namespace made all commands use the default settings."""
    fake = replace(leader("aaa/gangsched", maxPriority=7), created=2.0)
    decided = rules(arguments(), led(*[fake, replace(A, created=1.0), B][::turn]), schedulers=schedulers)
    assert decided.settings.max_priority == 1
    told, of_operator = decided.notes
    assert told.startswith("The Leases sys/a, aaa/gangsched publish different settings: those of sys/a")
    assert "sys/a: maxPriority" in of_operator


def test_two_with_the_same_settings_are_believed():
    same = leader("sys/other", maxPriority=1)
    assert rules(arguments(), led(A, same)).settings.max_priority == 1


def test_of_operators_of_which_none_serves_the_default_name_one_is_to_be_named():
    other = leader("sys/x", maxPriority=3, schedulerNames=["x"])
    assert "--scheduler-name" in rules(arguments(), led(replace(B, created=1.0), other)).notes[0]
    assert rules(arguments(scheduler_name=["x"]), led(B, other)).settings.max_priority == 3


def test_an_operator_that_does_not_lead_any_more_still_says_its_settings():
    decided = rules(arguments(), Leaders(("No operator leads.",), leads=False, former=[A]))
    assert decided.settings.max_priority == 1
    assert decided.notes[0].startswith("No operator leads now: the settings are those of the last holder of")


class TestForManifests:
    def flags(self, **fields: object) -> argparse.Namespace:
        chosen = {"config": None, "scheduler_name": None, "context": None, "kubeconfig": None, "user": None}
        return argparse.Namespace(**chosen | {"user_groups": [], "user_uid": ""} | fields)

    async def test_without_a_kubeconfig_the_defaults_count_without_a_word(self):
        assert await rules_for_manifests(self.flags()) == Rules(Settings())

    async def test_a_current_context_that_does_not_answer_is_told(self, monkeypatch, tmp_path):
        config = kubeconfig(tmp_path, "https://127.0.0.1:9")
        monkeypatch.setenv("KUBECONFIG", str(config))
        (note,) = (await rules_for_manifests(self.flags())).notes
        assert note.startswith("Decided by the default settings, because no cluster can be asked")

    async def test_what_is_named_must_answer(self, monkeypatch, tmp_path):
        config = kubeconfig(tmp_path, "https://127.0.0.1:9")
        with pytest.raises(ApiUnreachable):
            await rules_for_manifests(self.flags(kubeconfig=str(config)))
        monkeypatch.setenv("KUBECONFIG", str(config))
        with pytest.raises(ApiUnreachable):
            await rules_for_manifests(self.flags(user="somebody"))
        with pytest.raises(UsageError):
            await rules_for_manifests(self.flags(user_uid="1"))


def kubeconfig(folder: Path, server: str) -> Path:
    """A kubeconfig with one context."""
    path = folder / "config"
    clusters = [{"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": True}}]
    users = [{"name": "u", "user": {"token": "t"}}]
    contexts = [{"name": "x", "context": {"cluster": "c", "user": "u"}}]
    content = {"clusters": clusters, "users": users, "contexts": contexts, "current-context": "x"}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **content}))
    return path


def test_a_file_counts_alone(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("maxPriority: 5")
    decided = rules(arguments(config=path), led(A))
    assert (decided.settings.max_priority, decided.notes) == (5, ())


@pytest.mark.parametrize(
    ("leaders", "said"),
    [
        (led(leader("sys/a")), []),
        (led(A), ["Decided by the operator's settings, from the Lease sys/a: maxPriority."]),
        (
            led(Leader("sys/a", read('{"later": 1}'))),
            [
                (
                    "Settings of the operator with the Lease sys/a that this version does not know are ignored: "
                    "later. Use the operator's version of gangsched."
                ),
            ],
        ),
        (
            led(Leader("sys/a", read("sha256:0"))),
            [
                (
                    "The settings of the operator with the Lease sys/a are too large to be published there, so the "
                    "defaults are used: name its file with --config."
                ),
            ],
        ),
        (
            Leaders(("Whether an operator leads cannot be seen.",), None),
            [
                (
                    "The operator's settings cannot be read, so the defaults are used: request the right to list "
                    "Leases in all namespaces, or name the operator's file with --config."
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
        (["{}", '{"schedulerNames":["b"]}'], False),
        (["{}"], False),
        (["{}", "{}"], True),
        (["{}", '{"schedulerNames":["b","gangsched"]}'], True),
        (['{"namespace":"a"}', "{}"], True),
        (["{}", '{"namespace":"a"}'], True),
        (['{"namespace":"a"}', '{"namespace":"b"}'], False),
        (['{"namespace":"a"}', '{"namespace":"a"}'], True),
        (['{"schedulerNames":["x","y"]}', '{"schedulerNames":["y"],"namespace":"b"}'], True),
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
    api = FakeApi.answering("GET", LEASES, body({"items": items}), body({"items": []}))
    async with serving(api) as session:
        leaders = await read_leaders(session)
    assert leaders.leads
    assert [each.lease for each in leaders.all] == [f"sys/l{number}" for number in range(len(texts))]
    assert any("More than one operator leads" in each for each in leaders.sentences) is collide


@pytest.mark.parametrize(("age_s", "leads"), [(5, True), (60, False)])
@pytest.mark.parametrize("ahead_s", [-86400, -300, 300, 86400])
async def test_whether_one_leads_is_seen_by_the_clock_of_the_api_server(age_s: int, ahead_s: int, *, leads: bool):
    """Regression: on a machine whose clock was 5 minutes fast no operator led, and all were to be installed again."""
    now = time.time() - ahead_s
    renewed = datetime.fromtimestamp(now - age_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    item = lease("l")
    item["spec"] = {"holderIdentity": "h", "renewTime": renewed, "leaseDurationSeconds": 15}

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response({"items": [item]}, headers={"Date": formatdate(now, usegmt=True)})

    api = FakeApi.answering("GET", LEASES, answer, answer)
    async with serving(api) as session:
        assert (await read_leaders(session)).leads is leads


async def test_a_right_that_is_missing_is_not_the_lack_of_an_operator():
    api = FakeApi.answering("GET", LEASES, status(403, "leases is forbidden", reason="Forbidden"))
    async with serving(api) as session:
        leaders = await read_leaders(session)
    assert leaders.leads is None
    assert "leases is forbidden" in leaders.sentences[0]


def lease(name: str, **values: object) -> dict[str, object]:
    told = {SETTINGS: published(Settings.model_validate_json(json.dumps(values)))}
    metadata = {"namespace": "n", "name": name, "annotations": told, "creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"holderIdentity": "h", "renewTime": "2999-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15}
    return {"metadata": metadata, "spec": spec}


async def read_of(*items: dict[str, object]) -> Leaders:
    api = FakeApi.answering("GET", LEASES, body({"items": list(items)}))
    api.answer("GET", LEASES, body({"items": []}))
    async with serving(api) as session:
        return await read_leaders(session)


async def test_hundreds_of_leases_of_strangers_cost_no_more_than_reading_them_and_fill_no_screen():
    """Regression: all pairs of them were compared, and each had a sentence."""
    found = await read_of(*(lease(f"l{number}", schedulerNames=[f"s{number}"]) for number in range(500)))
    assert len(found.all) == 500
    assert len(found.sentences) < 20
    assert len(rules(arguments(), led(*found.all)).notes) <= 3
    assert len("".join(rules(arguments(), led(*found.all)).notes)) < 1000


def test_settings_that_are_longer_than_any_operator_publishes_are_not_read():
    assert read(json.dumps({f"key{number}": 1 for number in range(9999)})) is None
