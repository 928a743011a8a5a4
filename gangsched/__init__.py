"""A Kubernetes gang scheduler: all pods of a group are bound together, or none is.

For Python programs: `gangsched.simulate(nodes, pods)` says what the scheduler would decide, without a cluster. Its
parameters and results are defined in `gangsched.whatif.decisions`, which is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gangsched.config.invalid_config import InvalidConfig
    from gangsched.whatif.decisions import Decision, Decisions, simulate
    from gangsched.whatif.world.manifests import ManifestError

__all__ = ["Decision", "Decisions", "InvalidConfig", "ManifestError", "simulate"]

_HOMES = {
    "Decision": "gangsched.whatif.decisions",
    "Decisions": "gangsched.whatif.decisions",
    "InvalidConfig": "gangsched.config.settings",
    "ManifestError": "gangsched.whatif.world.manifests",
    "simulate": "gangsched.whatif.decisions",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
