"""Which worker runs which file: two of them run none that needs the control plane, which each other one starts once."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

_INTEGRATION = "tests/integration/"
_COMPUTING = 2
"""So many workers only compute: as many as there are processors where `make test` has to be fast."""


class FilesByKind(LoadFileScheduling):  # type: ignore[misc] # xdist has no types
    """Each worker gets the files of its kind in the order in which they were collected, and then others if it may."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        computes = int(node.gateway.id.removeprefix("gw")) < min(_COMPUTING, self.numnodes - 1)
        own = (scope for scope in self.workqueue if scope.startswith(_INTEGRATION) is not computes)
        scope = next(own, None)
        if scope is not None:
            self.workqueue.move_to_end(scope, last=False)
        elif computes:
            node.shutdown()
            return
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Use it for `--dist loadfile`."""
    return FilesByKind(config, log) if config.getoption("dist") == "loadfile" else None
