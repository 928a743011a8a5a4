"""The workload controllers of the testbed, tested without building or running any."""

from __future__ import annotations

import base64
import re
from dataclasses import replace

import pytest
import yaml

from documentation import matrix
from documentation.generate import ROOT
from documentation.matrix import Seen, merged
from testbed.cache import SetupError
from testbed.control_plane import ControlPlane, ControlPlaneError
from testbed.controllers import build
from testbed.controllers import running as launching
from testbed.controllers.build import ensure, folder_of, is_built
from testbed.controllers.expected import ANNOTATION, AUTO, BY_HAND, COLUMNS, EXPECTED, OWN, PLAYS, RACE
from testbed.controllers.running import by_url, running, with_conversion
from testbed.controllers.table import CONTROLLERS
from tests.workloads.made import expanded, unlike
from tests.workloads.pages import blocks
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


@pytest.mark.parametrize(
    ("asked", "built"), [([], list(CONTROLLERS)), (["--quick"], ["jobset", "lws"]), (["--quick", "kueue"], ["kueue"])]
)
def test_all_are_built_unless_the_quick_ones_or_names_are_asked_for(monkeypatch, capsys, asked, built):
    monkeypatch.setattr("sys.argv", ["build", *asked])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(build, "ensure", lambda names, **_: {name: name for name in names})
    assert build.main() == 0
    assert capsys.readouterr().out.split() == built


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


class FakeChild:
    """A process that runs until the test ends it."""

    def __init__(self):
        self.status = None

    def poll(self):
        return self.status

    def log_tail(self, _):
        return ""

    def stop(self):
        self.status = 0


class FakeControlPlane(ControlPlane):
    """Starts only the parts that a controller's start needs."""

    def __init__(self, folder):
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.started = []
        (folder / "certificates").mkdir()
        for suffix in ("crt", "key"):
            (folder / "certificates" / f"apiserver.{suffix}").touch()

    def spawn(self, *_, **__):
        self.started.append(FakeChild())
        return self.started[-1]


def test_a_controller_that_has_ended_is_started_again_where_tests_ask_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr(launching, "is_built", lambda _: True)
    monkeypatch.setattr(launching, "_install", lambda *_: None)
    monkeypatch.setattr(launching, "_is_ok", lambda _: True)
    control_plane = FakeControlPlane(tmp_path)
    with running(control_plane, "kuberay") as revive:
        revive()
        [first] = control_plane.started
        first.status = 1
        revive()
        _, second = control_plane.started
        assert second.status is None
    assert second.status == 0


def test_one_that_is_not_ready_in_time_is_ended_before_the_next_start(tmp_path, monkeypatch):
    """Regression: the next one found its ports taken, and the end of its log told of that instead of the cause."""
    monkeypatch.setattr(launching, "is_built", lambda _: True)
    monkeypatch.setattr(launching, "_install", lambda *_: None)
    monkeypatch.setattr(launching, "_is_ok", lambda _: False)
    monkeypatch.setattr(launching, "_READY_WITHIN_S", 0)
    control_plane = FakeControlPlane(tmp_path)
    with pytest.raises(ControlPlaneError, match="kuberay did not become ready"), running(control_plane, "kuberay"):
        pass
    assert [child.status for child in control_plane.started] == [0, 0, 0]


def test_only_kinds_of_several_versions_get_a_conversion():
    """Regression: Kueue 0.19 does not start before it has set a certificate in the conversion of its kinds."""
    one, two = ({"kind": "C", "spec": {"versions": [{}] * number}} for number in (1, 2))
    assert with_conversion(one) == one
    found = with_conversion(two)["spec"]["conversion"]
    assert (found["strategy"], set(found["webhook"]["clientConfig"])) == ("Webhook", {"url"})
    assert "conversion" not in two["spec"]


def written(folder, monkeypatch, name):
    """The configuration file with which the controller starts."""
    monkeypatch.setattr(launching, "is_built", lambda _: True)
    monkeypatch.setattr(launching, "_install", lambda *_: None)
    monkeypatch.setattr(launching, "_is_ok", lambda _: True)
    monkeypatch.setattr(launching, "_listens", lambda _: True)
    monkeypatch.setattr("testbed.controllers.running._Run._register", lambda _: None)
    folder.mkdir()
    with running(FakeControlPlane(folder), name):
        return yaml.safe_load((folder / name / "config.yaml").read_text())


def test_a_configuration_has_only_fields_that_its_controller_knows(tmp_path, monkeypatch):
    """Regression: Trainer 2.3 reads its settings from a file, refuses unknown fields, and did not start."""
    monkeypatch.setitem(CONTROLLERS, "trainer", replace(CONTROLLERS["trainer"], beside=()))
    jobset = written(tmp_path / "one", monkeypatch, "jobset")
    trainer = written(tmp_path / "other", monkeypatch, "trainer")
    addresses = {"apiVersion", "kind", "health", "metrics", "webhook", "leaderElection"}

    assert (jobset["apiVersion"], jobset["kind"]) == ("config.jobset.x-k8s.io/v1alpha1", "Configuration")
    assert set(jobset) == addresses | {"internalCertManagement"}
    assert set(jobset["webhook"]) == {"host", "port", "certDir"}
    assert trainer["apiVersion"] == "config.trainer.kubeflow.org/v1alpha1"
    assert set(trainer) == addresses | {"certManagement"}
    assert set(trainer["webhook"]) == {"host", "port"}
    assert trainer["certManagement"] == {"enable": False}


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


def test_the_readme_has_a_line_for_each_controller_that_is_played(tmp_path):
    (tmp_path / matrix.FIGURES.parent).mkdir(parents=True)
    matrix.write(tmp_path, [seen(AUTO, RACE, whole=True), seen(AUTO, "failure", whole=False)])
    text = matrix.with_controllers(tmp_path, (ROOT / "README.md").read_text())
    assert "| jobset 0.12.0 | JobSet | 1 of 18 |\n" in text
    assert not re.search(r"^\| (Argo|Spark|Grove)", text, re.MULTILINE)


def test_a_cell_says_what_must_be_known_beside_how_it_ended_and_where_recorded_pods_are_played(tmp_path):
    (tmp_path / matrix.FIGURES.parent).mkdir(parents=True)
    matrix.write(tmp_path, [seen(BY_HAND, RACE, whole=True, workload="CronJob")])
    text = matrix.page(tmp_path, (ROOT / matrix.PAGE).read_text())
    cron, argo = (
        next(line for line in text.splitlines() if line.startswith(f"| [{kind}")) for kind in ("Cron", "Argo")
    )
    assert cron.endswith("| whole/whole, by the annotation `gangsched.io/group-by` |")
    assert argo.endswith("| whole/whole with recorded pods ([test](../../tests/integration/test_argo.py)) |")
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


@pytest.mark.parametrize("row", [row for row in EXPECTED.values() if row.columns()], ids=lambda row: row.kind)
def test_each_section_of_a_page_is_one_manifest_and_three_commands(row):
    for column in row.columns():
        text, commands = blocks(row, column)
        assert list(yaml.safe_load_all(text))
        assert len(commands) == 3
        assert "kubectl apply --filename bert.yaml" in commands


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
