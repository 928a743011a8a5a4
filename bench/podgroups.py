"""The operator's cost for PodGroups without pods.

The operator runs with dry-run: it decides the status of each PodGroup and sends nothing. This client creates the
PodGroups and then writes their statuses as the operator would. The operator therefore sees every group twice, as in
production, without the cost of sending. The figure is the process's own processor time, independent of other work on
the machine.
"""

from __future__ import annotations

import asyncio
import json

from bench.lab import Figures, cpu_s
from bench.load import GROUPS, in_flight
from gangsched.kube.client.session import MERGE_PATCH, connect
from testbed import crds
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.workloads import pod_group

TITLE = "what a PodGroup without pods costs"
NUMBER = 10_000
_SETTLED_S = 3.0
_STATUS = {
    "phase": "Pending",
    "conditions": [
        {
            "type": "Scheduled",
            "status": "False",
            "reason": "NoMembers",
            "message": "The group has no members yet: create pods with the label gangsched.io/pod-group.",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 1,
        }
    ],
}


async def measure(number: int = NUMBER) -> Figures:
    """Milliseconds of processor time per PodGroup: for its creation, for its status, and for both."""
    with ControlPlane(controllers=False, kwok=False, not_ready_taint=False) as control_plane:
        crds.install(control_plane)
        session = await connect(kubeconfig=str(control_plane.kubeconfig))
        body = json.dumps({"status": _STATUS}).encode()
        try:
            with Operator(control_plane, "--dry-run") as operator:

                async def used(path: str, *, patch: bool) -> float:
                    before = cpu_s(operator)
                    await in_flight(
                        session.request("PATCH", f"{path}/g{each}/status", body=body, content_type=MERGE_PATCH)
                        if patch
                        else session.request(
                            "POST", path, body=json.dumps(pod_group(f"g{each}", min_member=2)).encode()
                        )
                        for each in range(number)
                    )
                    await asyncio.sleep(_SETTLED_S)
                    return (cpu_s(operator) - before) / number * 1000

                made = await used(GROUPS, patch=False)
                echoed = await used(GROUPS, patch=True)
                known = operator.metric("gangsched_watch_events_total", resource="podgroups")
        finally:
            await session.close()
    if known < 2 * number:
        raise RuntimeError(f"the operator has seen {known:.0f} events of {number} PodGroups made and written")
    return {"made_ms": made, "echo_ms": echoed, "both_ms": made + echoed}
