"""The settings that a leader publishes, and how another version reads them."""

from __future__ import annotations

import json

import pytest

from gangsched.config.published import Published, published, read
from gangsched.config.settings import Settings


def settings(**values: object) -> Settings:
    return Settings.model_validate_json(json.dumps(values))


def understood(text: str) -> Published:
    found = read(text)
    assert found is not None
    return found


def test_defaults_say_nothing():
    assert published(Settings()) == "{}"
    assert understood("{}").settings == Settings()


@pytest.mark.parametrize(
    "values",
    [
        {"schedulerNames": ["a", "b"]},
        {"backoff": {"initial": "20s"}, "maxPriority": 7},
        {"dialects": ["gangsched"], "workloads": [], "fifo": {"instanceGroupLabel": "x"}},
        {"namespaceLimits": {"heldPlaces": 7}, "volcano": {"writePhase": ["a"]}},
        {"preemption": {"delay": "2m", "victims": "All"}},
    ],
)
def test_what_differs_from_the_defaults_is_read_back_as_it_was(values):
    found = understood(published(settings(**values)))
    assert found.settings == settings(**values)
    assert list(found.changed) == sorted(values)
    assert not found.unknown


def test_settings_that_decide_nothing_about_groups_stay_out():
    told = published(settings(listen=":1", logFormat="json", leaderElection={"resourceName": "x"}, bindConcurrency=7))
    assert told == "{}"


def test_what_would_make_the_lease_large_is_told_by_its_digest():
    large = settings(schedulerNames=[f"{number:0250}" for number in range(64)])
    told = published(large)
    assert told.startswith("sha256:")
    assert len(told) == 7 + 64
    assert told != published(settings(schedulerNames=[f"{number:0251}" for number in range(64)]))
    assert understood(told).too_large


@pytest.mark.parametrize(
    ("text", "unknown", "kept"),
    [
        ('{"later": 1, "maxPriority": 7}', ["later"], {"maxPriority": 7}),
        ('{"backoff": {"initial": "20s", "later": {"a": 1}}}', ["backoff.later"], {"backoff": {"initial": "20s"}}),
        ('{"ownerGuard": "Later", "maxPriority": 7}', ["ownerGuard"], {"maxPriority": 7}),
        ('{"dialects": ["later"]}', ["dialects"], {}),
        ('{"backoff": {"initial": "20m", "max": "1m"}}', ["backoff"], {}),
        ('{"volcano": {"schedulerLease": 3}, "later": 1}', ["later", "volcano"], {}),
    ],
)
def test_what_only_another_version_knows_is_named_and_left_out(text, unknown, kept):
    found = understood(text)
    assert list(found.unknown) == unknown
    assert found.settings == settings(**kept)


@pytest.mark.parametrize("text", ["", "[]", "{", "7", "[" * 100_000])
def test_what_is_no_such_text_is_nothing(text):
    assert read(text) is None
