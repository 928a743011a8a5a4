"""A separate process that tries manifests on a copy of the cluster, or finds out what would help a group there.

``python -m gangsched.whatif.subprocess_worker MEMORY_BYTES CPU_SECONDS`` reads a `Request` and pieces of state from
standard input and prints JSON. The page starts it; `gangsched.page.child` says what it may use.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import msgspec

from gangsched.page import child

if TYPE_CHECKING:
    from gangsched.core.objects.declaration import GroupKey
    from gangsched.whatif.simulation import Decision, Outcome
    from gangsched.whatif.world.contents import World


class Request(NamedTuple):
    """The first pickle that `page.what_if` writes; the pieces of the machine's state follow.

    `settings` are those of the operator, `now` is in epoch seconds. `question` is the text of manifests to try, or the
    namespace and name of a group.
    """

    settings: Any
    now: float
    question: bytes | tuple[str, str]


def main() -> None:
    """Limit this process, read, decide and print."""
    memory, cpu_s = int(sys.argv[1]), int(sys.argv[2])
    child.limit(memory, cpu_s)
    # Only the parent writes to this pipe. The browser's part is plain data: bytes of manifests, or a group's name.
    request = Request(*pickle.load(sys.stdin.buffer))  # noqa: S301
    try:
        answer = _answer(request, _read(sys.stdin.buffer))
    except MemoryError:
        answer = {"error": child.too_much_memory(memory)}
    except Exception as error:  # noqa: BLE001 - nothing else would report it
        answer = {"error": child.failed(error)}
    sys.stdout.buffer.write(msgspec.json.encode(answer))


def _answer(request: Request, events: Sequence[Any]) -> dict[str, object]:
    if isinstance(request.question, bytes):
        return tried(request.question, events, request.settings, request.now)
    return helping(*request.question, events, request.settings, request.now)


def _read(pieces: IO[bytes]) -> Sequence[Any]:
    """The events of all pieces."""
    from gangsched.views.copied import Collected  # noqa: PLC0415 - after the limits

    collected = Collected()
    with contextlib.suppress(EOFError):
        while True:
            collected.take(pickle.load(pieces))  # noqa: S301 - as above
    return collected.events


def tried(manifests: bytes, events: Sequence[Any], settings: Any, now: float) -> dict[str, object]:  # noqa: ANN401
    """The outcome of the manifests, as a JSON object; `error` says in a sentence why there is none."""
    from gangsched.kube.workloads.workload_table import chosen  # noqa: PLC0415
    from gangsched.whatif.simulation import simulate  # noqa: PLC0415
    from gangsched.whatif.strategy_variants import by_strategy  # noqa: PLC0415
    from gangsched.whatif.world.building import build  # noqa: PLC0415
    from gangsched.whatif.world.manifests import ManifestError, manifests_of  # noqa: PLC0415
    from gangsched.whatif.world.observed_world import applied, observed  # noqa: PLC0415

    before = observed(events, now)
    try:
        objects = manifests_of(manifests.decode("utf-8-sig"), "the manifest")
        new = build(objects, chosen(settings), start=now, priority_classes=before.priority_classes)
    except UnicodeDecodeError:
        return {"error": child.NOT_TEXT}
    except ManifestError as error:
        return _error(error.problems)
    if problems := new.refused or (new.idle if not new.pods else []):
        return _error(problems)
    began, today, policy = time.process_time(), time.time(), settings.policy()
    outcome = simulate(applied(new, before), policy, today=today)
    took_s = time.process_time() - began
    mine, results = _own_results(outcome, new)
    compared = [
        {"strategy": name, **_summed(_own_results(simulate(applied(variant, before), policy, today=today), variant)[1])}
        for name, variant in (by_strategy(new) if took_s < child.COMPARED_CPU_S else ())
    ]
    return {
        "groups": results[: child.MOST_GROUPS],
        "more": max(0, len(results) - child.MOST_GROUPS),
        "elsewhere": {str(key): name for key, name in outcome.elsewhere.items() if key in mine},
        "ignored": dict(new.ignored),
        "nodes": len(new.nodes),
        "leaving": _leaving(outcome.decisions, mine),
        "strategies": compared,
    }


def _error(problems: Sequence[str]) -> dict[str, object]:
    return {"error": " ".join(f"{problem.rstrip('.')}." for problem in problems[: child.MOST_GROUPS])}


def _own_results(outcome: Outcome, new: World) -> tuple[set[GroupKey], list[dict[str, Any]]]:
    """The groups of the manifests, and the result of each of them and of each pod without a group."""
    uids = {pod.uid for pod in new.pods}
    mine = {outcome.group_of[uid] for uid in uids if uid in outcome.group_of} | {group.key for group in new.groups}
    own = (decision for decision in outcome.decisions if (key := decision.finding.key) in mine or key.pod_uid in uids)
    return mine, _results_by_group(own)


def _summed(results: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """How many groups are bound, after how many seconds the last of them, and where all of their members are."""
    whole = [result for result in results if result["whole"]]
    nodes: Counter[str] = Counter()
    for result in whole:
        nodes.update(result["nodes"])
    after = max((result["after"] for result in whole), default=0.0)
    return {"whole": len(whole), "after": after, "nodes": dict(sorted(nodes.items()))}


def helping(namespace: str, name: str, events: Sequence[Any], settings: Any, now: float) -> dict[str, object]:  # noqa: ANN401
    """What would help the group, where its members fit and when it may start, as in `gangsched explain -o json`."""
    from gangsched.core.objects.declaration import GroupKey  # noqa: PLC0415 - after the limits
    from gangsched.core.objects.events import Synced  # noqa: PLC0415
    from gangsched.views.diagnosis import from_cluster  # noqa: PLC0415
    from gangsched.views.diagnosis_json import as_object  # noqa: PLC0415

    diagnosis = from_cluster([*events, Synced()], GroupKey(namespace, name), policy=settings.policy(), now=now)
    if diagnosis is None:
        return {"error": child.NO_GROUP}
    document = as_object(diagnosis)
    return {field: document[field] for field in ("helps", "besides", "shortfall", "expectedStart")}


def _results_by_group(decisions: Iterable[Decision]) -> list[dict[str, Any]]:
    """For each group, the decision that bound it completely, else the first one: `after` is in seconds from now."""
    by_group: dict[GroupKey, Decision] = {}
    for decision in decisions:
        if decision.finding.is_whole or decision.finding.key not in by_group:
            by_group[decision.finding.key] = decision
    return [
        {
            "namespace": key.namespace,
            "name": key.name,
            "pod": decision.finding.plain,
            "whole": decision.finding.is_whole,
            "phase": decision.finding.phase,
            "reason": decision.finding.reason,
            "message": " ".join((decision.finding.message, *decision.finding.besides)),
            "members": decision.finding.members,
            "minimum": decision.finding.minimum,
            "nodes": dict(sorted(Counter(decision.finding.placements.values()).items())),
            "after": round(decision.at, 3),
        }
        for key, decision in by_group.items()
    ]


def _leaving(decisions: Iterable[Decision], mine: Collection[GroupKey]) -> dict[str, object]:
    """How many pods of how many groups leave for these, and from which nodes.

    No group is named, because they may be of other namespaces.
    """
    departures = [leaving for decision in decisions if (leaving := decision.leaving) and leaving.holder.key in mine]
    groups = {departure.group for departure in departures if not departure.group.pod_uid}
    nodes = Counter(node for departure in departures for node in departure.pods.values())
    return {"pods": nodes.total(), "groups": len(groups), "nodes": dict(sorted(nodes.items()))}


if __name__ == "__main__":
    main()
