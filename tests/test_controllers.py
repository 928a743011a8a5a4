"""The workload controllers of the testbed, decided without building or running any."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from testbed.cache import SetupError
from testbed.controllers import build, matrix
from testbed.controllers.build import ensure, folder_of, is_built
from testbed.controllers.matrix import ANNOTATION, AUTO, BY_HAND, COLUMNS, EXPECTED, OWN, PLAYS, RACE, Seen, merged
from testbed.controllers.running import by_url
from testbed.controllers.table import CONTROLLERS
from testbed.docs import ROOT

JOBSET = CONTROLLERS["jobset"]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path


def test_a_controller_is_built_anew_exactly_if_something_of_its_recipe_changes():
    folder = folder_of(JOBSET)
    assert folder == folder_of(replace(JOBSET, arguments=("--another",)))
    assert len({folder, folder_of(replace(JOBSET, sum="h1:other")), folder_of(replace(JOBSET, package="./cmd"))}) == 3


@pytest.mark.usefixtures("cache")
def test_a_folder_without_its_program_is_not_complete():
    folder_of(JOBSET).mkdir(parents=True)
    (folder_of(JOBSET) / build.CRDS).write_text("kind: CustomResourceDefinition\n")
    assert not is_built(JOBSET)
    (folder_of(JOBSET) / JOBSET.name).touch()
    assert is_built(JOBSET)


@pytest.mark.usefixtures("cache")
def test_what_is_built_needs_neither_go_nor_a_network():
    folder_of(JOBSET).mkdir(parents=True)
    (folder_of(JOBSET) / JOBSET.name).touch()
    assert ensure(["jobset"], report=pytest.fail) == {"jobset": folder_of(JOBSET)}


class FakeGo:
    """Says that a module is in that folder, with that sum."""

    def __init__(self, folder, sum_):
        self.answer = f'{{"Dir": "{folder}", "Sum": "{sum_}"}}'

    def run(self, arguments, *, directory):
        assert arguments == ["mod", "download", "-json", "sigs.k8s.io/jobset@v0.10.1"]
        assert directory.is_dir()
        return type("Done", (), {"stdout": self.answer, "stderr": "", "returncode": 0})


@pytest.mark.parametrize(
    ("sum_", "why"), [("h1:other", "has the sum h1:other, not h1:u8Q"), (JOBSET.sum, "has no CustomResourceDefinition")]
)
def test_another_content_of_the_module_and_a_wrong_row_are_refused(cache, monkeypatch, sum_, why):
    monkeypatch.setattr(build, "find_go", lambda *_, **__: FakeGo(cache, sum_))
    with pytest.raises(SetupError, match=why):
        ensure(["jobset"], report=lambda _: None)
    assert not is_built(JOBSET)


def test_webhooks_are_called_on_this_machine_and_asked_only_about_pods_of_their_own():
    hook = {"clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/mutate"}}, "name": "one"}
    about_pods = hook | {"rules": [{"resources": ["pods"]}], "namespaceSelector": {}}
    about_sets = hook | {"rules": [{"resources": ["jobsets"]}]}
    manifest = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "mutating-webhook-configuration"},
        "webhooks": [about_pods, about_sets],
    }
    found = by_url(manifest, JOBSET, port=1234, authority=b"certificate")
    called = {"url": "https://127.0.0.1:1234/mutate", "caBundle": base64.b64encode(b"certificate").decode()}
    selector = {"matchExpressions": [{"key": JOBSET.pods_with, "operator": "Exists"}]}
    assert found["metadata"] == {"name": "jobset"}
    assert found["webhooks"] == [
        about_pods | {"clientConfig": called, "objectSelector": selector},
        about_sets | {"clientConfig": called},
    ]
    assert "service" in hook["clientConfig"]


def test_every_workload_names_a_controller_that_can_be_built_a_page_and_reasons_for_what_is_left_out():
    for row in EXPECTED.values():
        assert not row.controller or row.controller in CONTROLLERS
        assert (ROOT / matrix.PAGE.parent / row.page).is_file()
        assert set(row.not_declared) <= set(COLUMNS)
        assert {key if isinstance(key, str) else key[0] for key in row.not_played} <= set(PLAYS)
        assert RACE in row.plays(BY_HAND)


def seen(column, play, *, whole, workload="JobSet"):
    return Seen(workload=workload, column=column, play=play, whole=whole)


def test_a_run_of_some_plays_keeps_what_is_known_of_others_but_nothing_that_is_no_longer_expected():
    before = [seen(BY_HAND, RACE, whole=False), seen(AUTO, RACE, whole=True), seen(OWN, RACE, whole=True)]
    now = [seen(BY_HAND, RACE, whole=True)]
    assert merged(before, now) == [seen(AUTO, RACE, whole=True), seen(BY_HAND, RACE, whole=True)]


@pytest.fixture
def tables(tmp_path):
    """Writes what was seen; returns the rows of both tables for JobSet."""

    def write(*found):
        (tmp_path / matrix.FIGURES.parent).mkdir(parents=True, exist_ok=True)
        matrix.write(tmp_path, found)
        text = matrix.page(tmp_path, (ROOT / matrix.PAGE).read_text())
        return [line for line in text.splitlines() if line.startswith(("| [JobSet]", "| JobSet"))]

    return write


def test_the_page_tells_of_each_cell_what_was_seen_what_is_not_possible_and_what_nobody_has_played(tables):
    first, further = tables(
        seen(AUTO, RACE, whole=True),
        seen(ANNOTATION, RACE, whole=False),
        *(seen(column, "failure", whole=True) for column in (AUTO, ANNOTATION, BY_HAND)),
        seen(AUTO, "suspension", whole=True),
    )
    none = "not possible: JobSet 0.10 has no gang scheduling of its own"
    assert first == f"| [JobSet](jobset.md) (jobset 0.10.1) | whole/whole | **not whole** | {none} | not played yet |"
    scale = "not possible: a JobSet's number of jobs and their parallelism cannot be changed"
    suspension = "nothing: whole/whole; annotation, podgroup: not played yet"
    assert further == f"| JobSet | whole/whole | {scale} | {suspension} |"
