"""Creates odd objects on a real API server, as a process of its own: `python flood.py KUBECONFIG SEED COUNT`.

Prints one JSON line: how many were created and refused, with the first refusal of each kind and quirk.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator

import msgspec

from gangsched.kube.client.errors import KubeError
from gangsched.kube.client.session import ApiSession, connect
from tests.faults.hostile import Hostility, Odd

IN_FLIGHT = 16


async def main(kubeconfig: str, seed: int, count: int) -> None:
    """Create `count` odd objects and print the outcome."""
    session = await connect(kubeconfig=kubeconfig)
    hostility = Hostility(seed, served=True)
    odds = (hostility.any() for _ in range(count))
    answers: Counter[str] = Counter()
    refusals: dict[str, str] = {}
    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(IN_FLIGHT):
                workers.create_task(_create_all(session, odds, answers, refusals))
    finally:
        await session.close()
    outcome = {"created": answers["created"], "refused": answers["refused"], "refusals": refusals}
    sys.stdout.write(json.dumps(outcome) + "\n")


async def _create_all(
    session: ApiSession, odds: Iterator[Odd], answers: Counter[str], refusals: dict[str, str]
) -> None:
    for odd in odds:
        try:
            answer = await session.request("POST", _path(odd), body=msgspec.json.encode(odd.manifest), timeout_s=60)
        except KubeError as error:
            refusals.setdefault("unanswered", str(error))
            answers["refused"] += 1
            continue
        answers["created" if answer.ok else "refused"] += 1
        if not answer.ok:
            for quirk in odd.quirks:
                refusals.setdefault(f"{odd.kind}: {quirk}", str(answer.error())[:200])


def _path(odd: Odd) -> str:
    namespace = odd.manifest["metadata"].get("namespace")
    match odd.kind:
        case "Node":
            return "/api/v1/nodes"
        case "Pod":
            return f"/api/v1/namespaces/{namespace}/pods"
        case _:
            return f"/apis/gangsched.io/v1alpha1/namespaces/{namespace}/podgroups"


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
