"""The memory that a container has left."""

from __future__ import annotations

from gangsched.runtime.memory import free_memory
from tests.cgroups import limited


def test_pages_of_files_count_as_free(tmp_path):
    assert free_memory(limited(tmp_path, "1000", 700, 200)) == 500
    assert free_memory(limited(tmp_path, "max", 700)) > 1 << 60
    assert free_memory(tmp_path / "missing") > 1 << 60
