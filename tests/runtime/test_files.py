"""The number of connections that the process may open."""

from __future__ import annotations

import resource

import pytest

from gangsched.config.invalid_config import InvalidConfig
from gangsched.runtime.files import SPARE_FILES, allow_connections

SLOTS = 1024


@pytest.mark.parametrize(
    ("limits", "raised_to"),
    [
        ((1024, 4096), SLOTS + SPARE_FILES),
        ((4096, 4096), 4096),
        ((1024, resource.RLIM_INFINITY), SLOTS + SPARE_FILES),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), resource.RLIM_INFINITY),
    ],
)
def test_the_process_raises_its_own_limit_of_open_files_where_it_is_too_low(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], raised_to: int
) -> None:
    now = [limits]
    monkeypatch.setattr(resource, "getrlimit", lambda _: now[0])
    monkeypatch.setattr(resource, "setrlimit", lambda _, chosen: now.append(chosen))
    allow_connections(SLOTS)
    assert now[-1] == (raised_to, limits[1])


def test_a_limit_that_only_an_administrator_can_raise_is_told_with_the_key_and_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1024))
    allow_connections(32)
    with pytest.raises(InvalidConfig, match=r"bindConcurrency: 1024 .* need 1152 open files, .* may have 1024: raise"):
        allow_connections(1024)
