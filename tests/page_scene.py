"""A cluster worth looking at, played on a real machine: 40 nodes in 5 racks, 25 gangs, and an hour of their life.

Gangs run, start, leave, wait and never fit; a plan preempts one of them for another, and a driver holds places for its
executors. `played` yields after each minute, so that whoever keeps the past can note it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from gangsched.core.objects.declaration import Role
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.policy import Policy, Preemption
from tests.builders import GPU, group, node, pod, shape
from tests.harness import Harness
from tests.preempting import SET

END = 1_795_167_660.0
"""2026-11-20 09:41 UTC, when the scene ends."""
MINUTES, LAST_S = 55, 48.0
"""Its length, and that of its last minute in seconds."""
BEGIN = END - 60 * (MINUTES - 1) - LAST_S
RACKS, IN_RACK, GPUS = 5, 8, 8


class Play(NamedTuple):
    """A gang that comes in this minute. Its pods run two minutes after they are bound, unless `fate` says otherwise."""

    minute: int
    name: str
    members: int
    gpus: int
    fate: str = ""
    priority_class: str = ""


PLAYS = (
    Play(0, "research/llama-pretrain", 8, 8, priority_class="high"),
    Play(1, "vision/detr-finetune", 2, 8),
    Play(1, "speech/whisper-xl", 4, 8),
    Play(2, "infra/nccl-burnin", 2, 8, "ends 21"),
    Play(3, "nlp/rlhf-ppo-12", 3, 8),
    Play(4, "nlp/sft-batch-7", 4, 2),
    Play(5, "research/vit-sweep-3", 4, 4),
    Play(6, "vision/diffusion-v4", 4, 8),
    Play(8, "nlp/eval-nightly", 6, 1, "ends 30"),
    Play(9, "speech/tts-small", 4, 1),
    Play(11, "vision/sam-distill", 2, 4),
    Play(13, "research/gnn-large", 2, 4),
    Play(16, "research/moe-ablate", 4, 8),
    Play(19, "infra/bench-alltoall", 2, 8, "ends 44"),
    Play(22, "nlp/embed-refresh", 8, 1),
    Play(25, "speech/vad-search", 6, 1),
    Play(28, "vision/yolo-search", 16, 1),
    Play(33, "research/big-moe", 8, 16),
    Play(36, "research/clip-pretrain", 6, 8),
    Play(43, "nlp/rerank-train", 2, 8),
    Play(46, "vision/depth-est", 2, 4, "image"),
    Play(48, "nlp/qa-sweep", 4, 2, "incomplete"),
    Play(50, "speech/wav2vec-ft", 2, 8),
    Play(54, "nlp/dpo-llama-70b", 4, 8, priority_class="high"),
)
SPARK = "infra/etl-spark"


def played() -> Iterator[Harness]:
    """The scene after each of its minutes; the last is the one to look at."""
    harness = Harness(Policy(preemption=Preemption(min_runtime_s=0.0)))
    harness.now = BEGIN
    harness.put_class("high", 1000)
    harness.settle(*nodes())
    starts: dict[str, float] = {}
    for minute in range(MINUTES):
        for play in PLAYS:
            if play.minute == minute:
                harness.add(*_gang(play, harness.now))
            if play.fate == f"ends {minute}":
                _all_pods(harness, play, lambda found: harness.add(replace(found, phase=PodPhase.SUCCEEDED)))
        if minute == MINUTES - 8:
            harness.add(*_spark(harness.now))
        harness.settle()
        _run(harness, starts)
        harness.wait(60 if minute < MINUTES - 1 else LAST_S)
        yield harness


def nodes() -> Iterator[Any]:
    """The nodes: two of them are closed."""
    for rack in range(RACKS):
        for number in range(IN_RACK):
            name = f"gpu-{'abcde'[rack]}{number + 1}"
            labels = {
                "topology.kubernetes.io/zone": f"eu-1{'ab'[rack // 3]}",
                "example.com/rack": f"rack-{'abcde'[rack]}",
                "node.kubernetes.io/instance-type": "h100x8",
            }
            taints = ["node.kubernetes.io/not-ready:NoSchedule"] if name == "gpu-e8" else []
            yield node(
                name, cpu=96, memory="1Ti", gpu=GPUS, labels=labels, taints=taints, unschedulable=name == "gpu-c6"
            )


def _gang(play: Play, now: float) -> Iterator[Any]:
    spec: dict[str, Any] = {"max_schedule_time_s": 9999.0, "priority_class": play.priority_class}
    yield group(play.name, min_member=play.members, created=now, **spec)
    namespace, _, name = play.name.partition("/")
    requests: dict[str, str | int | float] = {"cpu": play.gpus * 4, "memory": f"{play.gpus * 64}Gi", GPU: play.gpus}
    there = play.members - 1 if play.fate == "incomplete" else play.members
    for number in range(there):
        yield pod(f"{namespace}/{name}-{number}", group=name, requests=requests, created=now, owner=SET)


def _spark(now: float) -> Iterator[Any]:
    """A driver, whose executors do not exist yet: their places are held."""
    executors = Role("executor", 4, template=shape(8, gpu=1))
    yield group(SPARK, min_member=5, roles=(Role("driver", 1), executors), max_schedule_time_s=9999.0, created=now)
    yield pod(f"{SPARK}-driver", group="etl-spark", role="driver", cpu=8, created=now)


def _run(harness: Harness, starts: dict[str, float]) -> None:
    """Start the containers of pods that were bound two minutes ago, except where an image is missing."""
    for found in list(harness.pods.values()):
        if not found.node or found.phase is not PodPhase.PENDING:
            continue
        if found.name == "depth-est-1":
            harness.add(replace(found, lifetime=replace(found.lifetime, not_started="ImagePullBackOff")))
        elif harness.now - starts.setdefault(found.uid, harness.now) >= 120:
            lifetime = replace(found.lifetime, ready=True, start=harness.now)
            harness.add(replace(found, phase=PodPhase.RUNNING, lifetime=lifetime))


def _all_pods(harness: Harness, play: Play, do: Callable[[Any], None]) -> None:
    for found in list(harness.pods.values()):
        if f"{found.namespace}/{found.name}".startswith(f"{play.name}-"):
            do(found)
