"""A dialect is one row in the registry and one file; integration/test_new_dialect.py derives the rest from them."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

from documentation.dialects import with_tables
from gangsched.config.dialects import DIALECTS, NAMES
from gangsched.config.settings import Settings
from gangsched.kube import dialects


def test_each_row_has_a_file_and_each_file_a_row():
    modules = [import_module(f"{dialects.__name__}.{each.name}") for each in pkgutil.iter_modules(dialects.__path__)]
    files = {module.__name__.rpartition(".")[2] for module in modules if hasattr(module, "dialect")}
    assert files == {name.replace("-", "_") for name in NAMES}


def test_the_settings_that_a_row_names_exist():
    known = {field.alias or name for name, field in Settings.model_fields.items()}
    assert {key for row in DIALECTS.values() for key in row.settings} == {"pfnet", "spark", "fifo", "native", "volcano"}
    assert {key for row in DIALECTS.values() for key in row.settings} <= known


def test_a_page_that_has_lost_the_place_of_a_table_is_told():
    with pytest.raises(ValueError, match=r"Table of dialects, .* is found 0 times"):
        with_tables("# Groups\n")
