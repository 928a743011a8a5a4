"""Each story runs in up to five courses: as written, and with leader changes or events that arrive out of order.

A story opts out of a course with `@pytest.mark.without("restarts", "disorder", why="…")`; "all" leaves only the plain
one. `make check` runs the plain course and one other, which is derived from the story's name.
"""

from __future__ import annotations

from random import Random
from zlib import crc32

import pytest

from tests import effort
from tests.harness import Course, Harness


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    excepted = {course for mark in metafunc.definition.iter_markers("without") for course in without(mark)}
    others = [course for course in Course if course is not Course.PLAIN and course not in excepted]
    if effort.tries(len(others)) < len(others):
        others = Random(metafunc.function.__name__).sample(others, 1)
    courses = [Course.PLAIN, *(pytest.param(course, marks=pytest.mark.another_course) for course in others)]
    metafunc.parametrize("course", courses, ids=lambda course: course.value, indirect=True)


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
    monkeypatch.setattr(Harness, "course_seed", effort.first_seed + crc32(request.node.originalname.encode()))
    return course
