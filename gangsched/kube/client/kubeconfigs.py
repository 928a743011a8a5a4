"""Loads the part of kubernetes_asyncio that reads kubeconfigs and service accounts, without the rest.

Importing any module of that library imports all of it first: some 700 model classes, a client of each API, a watch.
They would cost every process 38 MB and a quarter of a second (ADR 42).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubernetes_asyncio.client.configuration import Configuration
    from kubernetes_asyncio.config import exec_provider, incluster_config, kube_config
    from kubernetes_asyncio.config.config_exception import ConfigException

__all__ = ["ConfigException", "Configuration", "exec_provider", "incluster_config", "kube_config"]

_LIBRARY = "kubernetes_asyncio"
_CLIENT = f"{_LIBRARY}.client"


def _parts() -> tuple[object, ...]:
    """The names that this module exports, imported through packages that skip the library's own `__init__`.

    Afterwards `sys.modules` no longer contains these packages, so that a plug-in that imports the library gets all of
    it.
    """
    found = find_spec(_LIBRARY)
    if found is None:
        raise ModuleNotFoundError(f"No module named {_LIBRARY!r}", name=_LIBRARY)
    before = _forget_library()
    try:
        folders = found.submodule_search_locations or ()
        _add_package(_LIBRARY, folders)
        client = _add_package(_CLIENT, [f"{folder}/client" for folder in folders])
        configuration = import_module(f"{_CLIENT}.configuration").Configuration
        vars(client).update(Configuration=configuration, ApiClient=object)
        config = import_module(f"{_LIBRARY}.config")
        return config.ConfigException, configuration, config.exec_provider, config.incluster_config, config.kube_config
    finally:
        _forget_library()
        sys.modules.update(before)


def _add_package(name: str, folders: Iterable[str]) -> ModuleType:
    package = sys.modules[name] = ModuleType(name)
    package.__path__ = list(folders)
    return package


def _forget_library() -> dict[str, ModuleType]:
    """Remove all modules of the library from `sys.modules` and return them."""
    names = [name for name in sys.modules if name.partition(".")[0] == _LIBRARY]
    return {name: sys.modules.pop(name) for name in names}


if not TYPE_CHECKING:
    ConfigException, Configuration, exec_provider, incluster_config, kube_config = _parts()
