"""`gangsched snapshot` writes the objects of the kinds that the operator's settings describe."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from gangsched.cli import main
from gangsched.config.published import published
from gangsched.config.settings import validated
from gangsched.kube.client.lease import LABEL, SETTINGS, VALUE
from tests.kube.fake_api import FakeApi, body, page, serving, status

LEASES = "/apis/coordination.k8s.io/v1/leases"
FARMS = {"name": "farm", "apiVersion": "example.com/v1", "kind": "Farm", "plural": "farms", "replicas": "spec.n"}
SETTINGS_OF_FARMS = {"workloads": {"kinds": [], "custom": [FARMS]}}
FARM = {"metadata": {"name": "f", "namespace": "n"}, "spec": {"n": 3, "token": "s3cr3t"}}
JOB = {"metadata": {"name": "j", "namespace": "n"}, "spec": {"parallelism": 2}}


class Cluster(FakeApi):
    """Serves nothing but what it has answers for."""

    def __init__(self) -> None:
        super().__init__()
        versions = [{"versions": [{"groupVersion": each}]} for each in ("example.com/v1", "batch/v1")]
        self.answer("GET", "/apis", body({"groups": versions}))
        self.answer("GET", "/apis/example.com/v1/farms", page([FARM], 1))
        self.answer("GET", "/apis/batch/v1/jobs", page([JOB], 1))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if not self._answers[request.method, request.path]:
            self.answer(request.method, request.path, status(404, reason="NotFound"))
        return await super().handle(request)


def lease(values: dict[str, Any]) -> dict[str, Any]:
    renewed = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    annotations = {SETTINGS: published(validated(values, origin="f"))}
    metadata = {"name": "gangsched", "namespace": "sys", "labels": {LABEL: VALUE}, "annotations": annotations}
    return {"metadata": metadata, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": renewed}}


def written(api: FakeApi, monkeypatch: pytest.MonkeyPatch, *flags: str) -> int:
    monkeypatch.setattr("gangsched.cli.snapshot.connected", lambda _: serving(api))
    return main(["snapshot", *flags])


def kept(text: str) -> dict[str, Any]:
    return {each["metadata"]["name"]: each["spec"] for each in json.loads(text)["items"]}


def test_objects_of_the_operators_custom_kinds_are_written_with_what_is_read_of_them(monkeypatch, capsys):
    """Regression: they were left out. All other kinds are written, whichever the operator watches."""
    api = Cluster()
    api.answer("GET", LEASES, page([lease(SETTINGS_OF_FARMS)], 1), page([], 1))
    assert written(api, monkeypatch) == 0
    assert kept(capsys.readouterr().out) == {"f": {"n": 3}, "j": {"parallelism": 2}}


def test_the_kinds_may_come_from_a_file(monkeypatch, capsys, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(SETTINGS_OF_FARMS))
    assert written(Cluster(), monkeypatch, "--config", str(file)) == 0
    assert set(kept(capsys.readouterr().out)) == {"f", "j"}


@pytest.mark.parametrize(
    ("answer", "notes"),
    [(status(403, reason="Forbidden"), 1), (page([lease({"maxPriority": 1})], 1), 0), (page([], 1), 0)],
    ids=["no right", "other settings", "no operator"],
)
def test_without_custom_kinds_there_is_nothing_to_say_unless_they_cannot_be_seen(monkeypatch, capsys, answer, notes):
    api = Cluster()
    api.answer("GET", LEASES, answer, page([], 1))
    assert written(api, monkeypatch) == 0
    said = capsys.readouterr()
    assert set(kept(said.out)) == {"j"}
    assert said.err.count("The operator's settings cannot be read") == len(said.err.splitlines()) == notes
