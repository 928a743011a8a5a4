"""Each story runs in up to five courses: as written, and with leader changes or events that arrive out of order.

A story opts out of a course with `@pytest.mark.without("restarts", "disorder", why="…")`; "all" leaves only the plain
one. Each case of a story that has several runs in the plain course and takes turns in the others, so that the story
runs in all of them; `make nightly` runs each case in each course. `make check` and `make mutations` run the plain
course.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from zlib import crc32

import pytest

from tests import effort
from tests.harness import Course, Harness

_FOLDER = Path(__file__).parent


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    excepted = {course for mark in metafunc.definition.iter_markers("without") for course in without(mark)}
    others = [course for course in Course if course is not Course.PLAIN and course not in excepted]
    if effort.tries(len(others)) < len(others):
        others = []
    courses = [Course.PLAIN, *(pytest.param(course, marks=pytest.mark.another_course) for course in others)]
    metafunc.parametrize("course", courses, ids=lambda course: course.value, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drop the courses of which it is not the case's turn."""
    if effort.tries(1) > 1:
        return
    stories: defaultdict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and item.path.parent == _FOLDER:
            stories[item.nodeid.partition("[")[0]].append(item)
    dropped = {item for story in stories.values() for item in _out_of_turn(story)}
    config.hook.pytest_deselected(items=[item for item in items if item in dropped])
    items[:] = [item for item in items if item not in dropped]


def _out_of_turn(story: list[pytest.Function]) -> list[pytest.Function]:
    """The runs of the story that are left out, because it is not the turn of their case."""
    # A case is known by the values of its parameters, which all courses share: pytest numbers them anew in each course.
    others = [item for item in story if item.callspec.params["course"] is not Course.PLAIN]
    runs = [
        (tuple(id(value) for name, value in params.items() if name != "course"), params["course"])
        for params in (item.callspec.params for item in others)
    ]
    return [item for item, kept in zip(others, effort.in_their_turn(runs), strict=True) if not kept]


def without(mark: pytest.Mark) -> list[Course]:
    """The courses that a mark excludes: those it names, or with "all" every course but the plain one."""
    assert mark.kwargs.get("why"), "a mark `without` says why"
    assert mark.args, "a mark `without` names courses"
    return list(Course) if mark.args == ("all",) else [Course(name) for name in mark.args]


@pytest.fixture(autouse=True)
def course(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Course:
    """The course taken by every `Harness` that the story creates."""
    course: Course = request.param
    monkeypatch.setattr(Harness, "course", course)
    # What a story asserts may hold for one order of events only; those that explore hold for any.
    first = effort.first_seed if request.node.get_closest_marker("explores") else 1
    monkeypatch.setattr(Harness, "course_seed", first + crc32(request.node.originalname.encode()))
    return course
