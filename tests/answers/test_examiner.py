"""The process that decides on a copy: its answers, its end, and its cost for the operator's event loop."""

from __future__ import annotations

import asyncio
import io
import pickle
import sys
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from gangsched.answers.examiner import MOST_WAITING, Examiner, NoAnswer, NoRoom
from gangsched.answers.messages import TOO_LARGE, Question, Start, framed
from gangsched.answers.worker import SKIPPED_BYTES, Worker, serve
from gangsched.config.settings import Settings
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.devices import DeviceKind
from gangsched.core.objects.events import (
    DeviceObjectsReplaced,
    Event,
    GroupsReplaced,
    NodesReplaced,
    PodsReplaced,
    Synced,
)
from gangsched.core.objects.offered_devices import Attribute, AttributeType, Device, ResourceSlice
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import PodBound
from gangsched.views.copied import MOST, Collected, Piece, pieces, weight
from gangsched.views.reach import EVERYTHING, Reach
from tests.builders import group, node, pod
from tests.cgroups import limited

NOW = 1_000_000.0
MINE = Reach(namespace="mine", node_names=False)
KEY = GroupKey("mine", "w")


def known(pods: int = 0, nodes: int = 2) -> list[Event]:
    """A standby's facts about a cluster with one waiting group and other, running pods."""
    running = [
        pod(f"theirs/r{each}", group=f"g{each // 10}", node=f"n{each % nodes}", cpu="10m") for each in range(pods)
    ]
    waiting = [pod(f"mine/w-{each}", group="w", cpu="5") for each in range(3)]
    machine = Machine(Policy())
    machine.handle(
        [
            NodesReplaced(tuple(node(f"n{each}", cpu="8", pods=200) for each in range(nodes))),
            GroupsReplaced((group("mine/w", min_member=3),)),
            PodsReplaced((*running, *waiting)),
        ],
        NOW,
    )
    return machine.facts()


Make = Callable[..., Examiner]
PATIENT_S = 200.0
"""Timeout, in seconds: the answering process has the lowest priority and may get little CPU time beside busy tests."""


@pytest.fixture
async def examiner() -> AsyncIterator[Make]:
    made: list[Examiner] = []

    def make(facts=known, settings=Settings().model_dump_json(by_alias=True), **fields) -> Examiner:  # noqa: B008
        fields.setdefault("answer_timeout_s", PATIENT_S)
        made.append(Examiner(facts, settings_json=settings, now=lambda: NOW, **fields))
        return made[-1]

    yield make
    for each in made:
        await each.close()


def stuck(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.mark.parametrize("number", [0, 1, 2, 500, 2_000])
def test_events_arrive_as_they_were_sent(number):
    sent: list[Event] = [
        NodesReplaced((node(),)),
        PodsReplaced(tuple(pod(f"mine/p{each}") for each in range(number))),
        PodBound("uid", "n1"),
        Synced(),
    ]
    told = list(pieces(sent))
    assert all(sum(map(weight, each.values or ())) <= MOST for each in told)
    collected = Collected()
    for each in told:
        collected.take(each)
    assert collected.events == sent


@pytest.mark.slow
def test_a_piece_is_cut_by_what_is_in_its_values():
    """A piece of this weight takes some milliseconds to make, and 500 ResourceSlices of 64 devices take a second."""
    attributes = tuple(Attribute(f"gpu.example/a{each}", AttributeType.STRING, f"v{each}") for each in range(12))
    devices = tuple(Device(f"gpu-{each}", attributes, (("memory", "80Gi"),)) for each in range(64))
    slices = tuple(ResourceSlice(f"s{each}", "gpu.example", "n", node="n", devices=devices) for each in range(500))
    told = list(pieces([DeviceObjectsReplaced(DeviceKind.SLICE, slices)]))
    weights = [sum(map(weight, each.values or ())) for each in told]
    assert max(weights) <= MOST
    assert min(weights[:-1]) > MOST / 2
    assert sum(weights) > 64 * 12 * 500
    assert [each.last for each in told] == [False] * (len(told) - 1) + [True]


def test_a_value_that_weighs_more_is_a_piece_of_its_own():
    large = node("large", labels={f"label-{each}": "x" for each in range(MOST)})
    told = list(pieces([NodesReplaced((node("a"), large, node("b")))]))
    assert [piece.values for piece in told] == [(node("a"),), (large,), (node("b"),)]


def test_a_worker_answers_about_what_it_was_told():
    worker = Worker()
    worker.take(Start(Settings().model_dump_json(by_alias=True), NOW))
    for each in pieces(known()):
        worker.take(each)
    assert msgspec.json.decode(worker.take(Question(KEY, MINE)) or b"")["shortfall"]["fits"] == 2
    assert worker.take(Question(GroupKey("mine", "none"), MINE)) == b"?"


def test_every_event_of_a_start_has_what_it_has_many_of_last():
    for each in known(pods=20):
        assert type(msgspec.structs.astuple(each)[-1]) is tuple
    assert all(isinstance(each, Piece) for each in pieces(known()))


@pytest.mark.slow
class TestItsProcess:
    async def test_it_says_why_a_group_waits_and_knows_which_there_are_not(self, examiner):
        asked = examiner()
        answer = msgspec.json.decode(await asked.explain(KEY, MINE) or b"")
        assert (answer["phase"], answer["shortfall"]["fits"], answer["shortfall"]["wanted"]) == ("Queued", 2, 3)
        assert await asked.explain(GroupKey("mine", "none"), MINE) is None

    async def test_one_copy_answers_everybody_for_some_seconds_and_then_ends(self, examiner):
        looks = []

        def facts():
            looks.append(1)
            return known()

        asked = examiner(facts, copy_ttl_s=1.0)
        await asyncio.gather(*(asked.explain(KEY, each) for each in (MINE, EVERYTHING, MINE)))
        assert len(looks) == 1
        async with asyncio.timeout(PATIENT_S):
            while asked.is_running:  # noqa: ASYNC110 - it ends by a timer
                await asyncio.sleep(0.05)
        assert await asked.explain(KEY, MINE)
        assert len(looks) == 2
        await asked.close()
        assert not asked.is_running

    async def test_too_many_questions_are_refused_at_once(self, examiner):
        asked = examiner(command=stuck("import time; time.sleep(60)"), answer_timeout_s=2.0)
        questions = [asyncio.create_task(asked.explain(KEY, MINE)) for _ in range(MOST_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(NoAnswer):
            await asked.explain(KEY, MINE)
        found = await asyncio.gather(*questions, return_exceptions=True)
        assert [type(each) for each in found] == [NoAnswer] * MOST_WAITING
        assert not asked.is_running

    @pytest.mark.parametrize(
        "code",
        [
            "pass",
            "import time; time.sleep(60)",
            "import sys; sys.stdout.buffer.write(b'\\xff' * 100); sys.stdout.flush(); sys.stdin.read()",
        ],
        ids=["ends", "hangs", "talks nonsense"],
    )
    async def test_a_process_that_fails_gives_no_answer_and_is_ended(self, examiner, code):
        asked = examiner(command=stuck(code), answer_timeout_s=1.0)
        with pytest.raises(NoAnswer):
            await asked.explain(KEY, MINE)
        assert not asked.is_running

    async def test_a_container_with_little_memory_left_gets_no_copy(self, examiner, tmp_path):
        asked = examiner(cgroup=limited(tmp_path, str(500 << 20), 400 << 20))
        with pytest.raises(NoRoom):
            await asked.explain(KEY, MINE)
        assert not asked.is_running

    async def test_a_copy_that_needs_more_than_is_left_ends_with_its_process_and_nothing_else(self, examiner, tmp_path):
        labels = {f"example.com/label-{each}": "x" * 63 for each in range(MOST)}
        facts = [NodesReplaced(tuple(node(f"n{each}", labels=labels) for each in range(200))), Synced()]
        asked = examiner(lambda: facts, cgroup=limited(tmp_path, str(180 << 20), 0), answer_timeout_s=PATIENT_S)
        with pytest.raises(NoRoom):
            await asked.explain(KEY, MINE)
        assert not asked.is_running
        asked = examiner(cgroup=limited(tmp_path, str(1 << 30), 0), answer_timeout_s=PATIENT_S)
        assert await asked.explain(KEY, MINE)

    def test_what_cannot_be_read_for_want_of_memory_is_passed_over_and_said(self):
        """Regression: the process ended, and tenants saw a fault instead of the remedy."""

        class Tight(io.BytesIO):
            def read(self, size: int | None = -1, /) -> bytes:
                if size is not None and size > SKIPPED_BYTES:
                    raise MemoryError
                return super().read(size)

        large = Piece(PodsReplaced, (), ("x" * 3 * SKIPPED_BYTES,), last=True)
        sent = [Start(Settings().model_dump_json(), 0.0), large, Question(KEY, MINE)]
        answers = io.BytesIO()
        serve(Tight(b"".join(framed(pickle.dumps(each)) for each in sent)), answers)
        assert answers.getvalue() == framed(TOO_LARGE)

    async def test_it_imports_nothing_from_the_folder_in_which_the_operator_was_started(
        self, examiner, tmp_path, monkeypatch
    ):
        (tmp_path / "pickle.py").write_text("raise SystemExit(3)")
        monkeypatch.chdir(tmp_path)
        assert await examiner().explain(KEY, MINE)

    async def test_a_failure_of_ours_is_logged_on_one_line(self, examiner, caplog):
        asked = examiner(settings="nonsense\n\x1b[2J")
        with pytest.raises(NoAnswer):
            await asked.explain(KEY, MINE)
        assert "ValidationError" in caplog.records[-1].error
        assert "\n" not in caplog.records[-1].error
        assert "\x1b" not in caplog.records[-1].error

    async def test_the_loop_goes_on_while_a_large_cluster_is_examined(self, examiner, record_property):
        facts = known(pods=10_000, nodes=1_000)
        asked = examiner(lambda: facts, answer_timeout_s=PATIENT_S)
        longest, last = 0.0, asyncio.get_running_loop().time()
        question = asyncio.create_task(asked.explain(KEY, MINE))
        began = last
        while not question.done():
            await asyncio.sleep(0.001)
            now = asyncio.get_running_loop().time()
            longest, last = max(longest, now - last), now
        assert await question
        await asked.close()
        told = f"an answer about 10,000 pods on 1,000 nodes took {last - began:.1f} s; making its longest piece took "
        told += f"{asked.longest_piece_s * 1e3:.0f} ms; the loop stood still for at most {longest * 1e3:.0f} ms"
        record_property("measured", told)
        assert asked.longest_piece_s < 0.1
