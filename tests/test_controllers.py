"""The workload controllers of the testbed, tested without building or running any."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from documentation import matrix
from documentation.generate import ROOT
from documentation.matrix import Seen, merged
from testbed.cache import SetupError
from testbed.controllers import build
from testbed.controllers.build import ensure, folder_of, is_built
from testbed.controllers.expected import ANNOTATION, AUTO, BY_HAND, COLUMNS, EXPECTED, OWN, PLAYS, RACE
from testbed.controllers.table import CONTROLLERS
from tests.workloads.made import expanded, unlike
from tests.workloads.settings import SETTINGS
from tests.workloads.sides import group_of

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


class FakeGo:
    """Reports that a module is in that folder, with that sum."""

    def __init__(self, folder, sum_):
        self.answer = f'{{"Dir": "{folder}", "Sum": "{sum_}"}}'

    def run(self, arguments, *, directory):
        assert arguments == ["mod", "download", "-json", "sigs.k8s.io/jobset@v0.12.0"]
        assert directory.is_dir()
        return type("Done", (), {"stdout": self.answer, "stderr": "", "returncode": 0})


@pytest.mark.parametrize(
    ("sum_", "why"), [("h1:other", "has the sum h1:other, not h1:YYP"), (JOBSET.sum, "has no CustomResourceDefinition")]
)
def test_another_content_of_the_module_and_a_wrong_row_are_refused(cache, monkeypatch, sum_, why):
    monkeypatch.setattr(build, "find_go", lambda *_, **__: FakeGo(cache, sum_))
    with pytest.raises(SetupError, match=why):
        ensure(["jobset"], report=lambda _: None)
    assert not is_built(JOBSET)


def test_each_page_names_the_version_with_which_its_workloads_are_played():
    for row in EXPECTED.values():
        if row.controller:
            page = (ROOT / matrix.PAGE.parent / row.file).read_text()
            assert CONTROLLERS[row.controller].version.removeprefix("v") in page.partition("\n## ")[0], row.file


STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: bert}
spec:
  replicas: 1
  template:
    metadata: {labels: {app: bert}}
    spec: {schedulerName: gangsched, containers: [{name: worker, resources: {requests: {cpu: "1"}}}]}
"""


def real(**labels):
    """The pod that the StatefulSet's controller makes, with these labels."""
    owner = {"kind": "StatefulSet", "name": "bert", "controller": True}
    spec = {"schedulerName": "gangsched", "containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    return {"metadata": {"name": "bert-0", "labels": labels, "ownerReferences": [owner]}, "spec": spec}


LABELS = {"app": "bert", "apps.kubernetes.io/pod-index": "0", "statefulset.kubernetes.io/pod-name": "bert-0"}
HASH = {"controller-revision-hash": "bert-5cb4d8d467"}


@pytest.mark.parametrize(
    ("labels", "varies", "same"),
    [
        (LABELS | HASH, "", True),
        (LABELS, "", False),
        (LABELS | HASH | {"app": "other"}, "", False),
        (LABELS | HASH | {"app": "bert"}, "bert(?=-0)", True),
        (LABELS | HASH | {"app": "other"}, "other|bert", True),
    ],
)
def test_pods_are_compared_by_all_labels_but_hashes_only_by_their_presence(tmp_path, labels, varies, same):
    """Regression: a controller derives its hash from its own form of the template, which simulate has not."""
    (tmp_path / "bert.yaml").write_text(STATEFUL_SET)
    found = unlike([real(**labels)], expanded(tmp_path / "bert.yaml", "default"), varies=varies)
    assert len(found) == (0 if same else 2)


def test_every_workload_names_a_controller_that_can_be_built_a_page_and_reasons_for_what_is_left_out():
    for row in EXPECTED.values():
        assert not row.controller or row.controller in CONTROLLERS
        assert all((ROOT / test).is_file() for test in row.recorded.values())
        assert (ROOT / matrix.PAGE.parent / row.file.partition("#")[0]).is_file()
        assert {*row.not_declared, *row.recorded, *row.noted} <= set(COLUMNS)
        assert {key if isinstance(key, str) else key[0] for key in row.not_played} <= set(PLAYS)
        assert all(RACE in row.plays(column) for column in row.columns())


def seen(column, play, *, whole, workload="JobSet"):
    return Seen(workload=workload, column=column, play=play, whole=whole)


def test_a_run_of_some_plays_keeps_what_is_known_of_others_but_nothing_that_is_no_longer_expected():
    before = [seen(BY_HAND, RACE, whole=False), seen(AUTO, RACE, whole=True), seen(OWN, RACE, whole=True)]
    now = [seen(BY_HAND, RACE, whole=True)]
    assert merged(before, now) == [seen(AUTO, RACE, whole=True), seen(BY_HAND, RACE, whole=True)]


@pytest.fixture
def tables(tmp_path):
    """Write the observations; return the rows of both tables for JobSet."""

    def write(*found):
        (tmp_path / matrix.FIGURES.parent).mkdir(parents=True, exist_ok=True)
        matrix.write(tmp_path, found)
        text = matrix.page(tmp_path, (ROOT / matrix.PAGE).read_text())
        return [line for line in text.splitlines() if line.startswith(("| [JobSet]", "| JobSet |"))]

    return write


def test_the_page_tells_of_each_cell_what_was_seen_what_is_not_possible_and_what_nobody_has_played(tables):
    first, further = tables(
        seen(AUTO, RACE, whole=True),
        seen(ANNOTATION, RACE, whole=False),
        *(seen(column, "failure", whole=True) for column in (AUTO, ANNOTATION, BY_HAND)),
        seen(AUTO, "suspension", whole=True),
    )
    none = "not possible: JobSet 0.12 has no gang scheduling of its own"
    assert first == f"| [JobSet](jobset.md) (jobset 0.12.0) | whole/whole | **not whole** | {none} | not played yet |"
    scale = "not possible: a JobSet's number of jobs and their parallelism cannot be changed"
    suspension = "nothing: whole/whole; annotation, podgroup: not played yet"
    assert further == f"| JobSet | whole/whole | {scale} | {suspension} |"


def test_a_cell_says_what_must_be_known_beside_how_it_ended_and_where_recorded_pods_are_played(tmp_path):
    (tmp_path / matrix.FIGURES.parent).mkdir(parents=True)
    matrix.write(tmp_path, [seen(BY_HAND, RACE, whole=True, workload="CronJob")])
    text = matrix.page(tmp_path, (ROOT / matrix.PAGE).read_text())
    cron, argo = (
        next(line for line in text.splitlines() if line.startswith(f"| [{kind}")) for kind in ("Cron", "Argo")
    )
    assert cron.endswith("| whole/whole, by the annotation `gangsched.io/group-by` |")
    assert argo.endswith("| whole/whole with recorded pods ([test](../../tests/integration/test_recorded.py)) |")
    assert not any(line.startswith(("| CronJob |", "| Argo")) for line in text.splitlines())


def test_one_worker_runs_all_that_shares_a_control_plane_or_a_port():
    def group(named):
        return group_of(f"tests/workloads/test_workloads.py::test_it_ends_whole[{named}]")

    assert group("JobSet-nothing-race") == group("JobSet-nothing-failure") == "jobset-nothing"
    assert group("JobSet, dependsOn-nothing-race") == "jobset-nothing-late"
    assert group("Job-nothing-race") == "kubernetes-nothing"
    assert group("Job, WorkloadWithJob-own-race") == "kubernetes-own-gated"
    columns = ("nothing", "annotation", "own", "podgroup")
    assert {group(f"MPIJob-{column}-race") for column in columns} == {"mpi-operator"}
    assert group("MPIJob, WaitForWorkersReady-nothing-race") == "mpi-operator"
    assert group_of("tests/workloads/test_phase.py::test_it[now]") == "tests/workloads/test_phase.py"
    assert group_of("tests/workloads/test_phase.py::test_it") == "tests/workloads/test_phase.py"


def test_every_workload_that_can_be_declared_is_played_in_the_order_of_the_table():
    assert [setting.kind for setting in SETTINGS] == [row.kind for row in EXPECTED.values() if row.columns()]


def test_every_section_of_every_page_is_one_that_is_played():
    folder = (ROOT / matrix.PAGE).parent
    played = {(row.file, row.section(column)) for row in EXPECTED.values() for column in row.columns()}
    told = {
        (page.name, title)
        for page in folder.glob("*.md")
        if page.name != matrix.PAGE.name
        for title in re.findall(r"^## (.+)$", page.read_text(), flags=re.MULTILINE)
    }
    assert told == played
