"""The workload controllers of the testbed, tested without building or running any."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import yaml

from documentation import matrix
from documentation.generate import ROOT
from documentation.matrix import Seen, merged
from testbed.controllers.build import folder_of
from testbed.controllers.expected import ANNOTATION, AUTO, BY_HAND, COLUMNS, EXPECTED, OWN, PLAYS, RACE
from testbed.controllers.table import CONTROLLERS
from tests.workloads.pages import blocks
from tests.workloads.settings import SETTINGS

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
    assert argo.endswith("| whole/whole with recorded pods ([test](../../tests/integration/test_argo.py)) |")
    assert not any(line.startswith(("| CronJob |", "| Argo")) for line in text.splitlines())


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
