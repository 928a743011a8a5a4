from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import BindPod, Effect, EmitEvent, EvictPod
from gangsched.core.objects.events import Event, PodGone, PodSeen, Synced, TimePassed
from gangsched.core.objects.faults import Fault, FaultyStep, Omitted, Rebuilt, SetAside
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, PodBound, Refused, StatusRefused
from gangsched.core.objects.stats import Measured, Stats
from gangsched.runtime.engine import Engine
from gangsched.runtime.inbox import Inbox
from gangsched.runtime.logs import TextFormatter
from gangsched.runtime.metrics import Metrics
from tests.builders import pod

BIND = BindPod(uid="u", namespace="ns", name="p", node="n")
GONE = PodGone(uid="u")


@dataclass
class FakeMachine:
    """Returns the same effects in every scheduling cycle and records its input."""

    effects: list[Effect] = field(default_factory=list)
    deadline: float | None = None
    rivals: list[tuple[str, str]] = field(default_factory=list)
    passes: list[tuple[list[Event], float]] = field(default_factory=list)
    fails: bool = False
    faults: list[Fault | Omitted | Rebuilt | SetAside] = field(default_factory=list)
    seen: list[Event] = field(default_factory=list)
    lacks: int = 0

    def handle(self, events: Sequence[Event], now: float) -> list[Effect]:
        if self.fails:
            raise AssertionError("a bug")
        self.passes.append((list(events), now))
        return self.effects

    def take_measured(self) -> Measured:
        return Measured(waits=[(0, 0.25)], budget=0.5)

    def take_rivals(self) -> list[tuple[str, str]]:
        taken, self.rivals = self.rivals, []
        return taken

    def take_faults(self) -> list[Fault | Omitted | Rebuilt | SetAside]:
        taken, self.faults = self.faults, []
        return taken

    def set_aside(self) -> list[str]:
        return ["Node n1 (ValueError)"]

    def next_deadline(self) -> float | None:
        return self.deadline

    def lacking(self, pod: Pod) -> tuple[GroupKey, int] | None:
        return (GroupKey("ns", pod.name), self.lacks) if self.lacks else None

    def facts(self) -> list[Event]:
        return self.seen

    def stats(self) -> Stats:
        return Machine(Policy()).stats()


@dataclass
class Rig:
    machine: FakeMachine
    now: float = 1000.0
    mono: float = 0.0
    sent: list[Effect] = field(default_factory=list)
    leads: bool = True
    muted: bool = False
    heirs: list[FakeMachine] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.inbox = Inbox()
        self.metrics = Metrics()
        self.submitted = asyncio.Event()
        machines = iter([self.machine, *self.heirs])
        self.engine = Engine(
            lambda: next(machines),
            self.inbox,
            now=lambda: self.now,
            metrics=self.metrics,
            monotonic=lambda: self.mono,
        )
        if self.leads:
            self.engine.lead(None if self.muted else self.submit)
            self.inbox.clear()

    def submit(self, effects: Iterable[Effect]) -> None:
        self.sent.extend(effects)
        self.submitted.set()


@pytest.fixture(autouse=True)
def _no_freezing(monkeypatch):
    monkeypatch.setattr("gangsched.runtime.engine.gc.freeze", lambda: None)
    monkeypatch.setattr("gangsched.runtime.engine.gc.collect", lambda *_: None)
    monkeypatch.setattr("gangsched.runtime.engine.gc.get_count", lambda: (0, 0, 0))


async def test_a_burst_is_one_pass_and_its_effects_are_handed_on():
    rig = Rig(FakeMachine(effects=[BIND]))
    rig.inbox.post([GONE] * 500)
    assert await rig.engine.step() == [BIND]
    assert rig.machine.passes == [([GONE] * 500, 1000.0)]
    assert rig.sent == [BIND]


async def test_of_a_large_burst_only_so_much_is_handed_over_at_a_time_and_others_work_in_between():
    rig = Rig(FakeMachine())
    rig.inbox.post([GONE] * 1200)
    for _ in range(3):
        task = asyncio.create_task(asyncio.sleep(0))
        await rig.engine.step()
        assert task.done()
    assert [len(events) for events, _ in rig.machine.passes] == [500, 500, 200]


async def test_work_that_is_left_is_gone_on_with_at_once_though_nothing_happens(monkeypatch):
    """A deadline before the last cycle means unfinished work; one reached since then waits for the pause after it."""
    slept = []
    sleep = asyncio.sleep

    async def note(seconds):
        slept.append(seconds)
        await sleep(0)

    async def rest(_, longest_s):
        slept.append(longest_s)

    rig = Rig(FakeMachine(deadline=1000.0))
    rig.inbox.post([GONE])
    await rig.engine.step()
    monkeypatch.setattr("gangsched.runtime.engine.asyncio.sleep", note)
    monkeypatch.setattr(rig.inbox, "rest", rest)
    await rig.engine.step()
    assert max(slept) == 0.001
    slept.clear()
    rig.machine.deadline = 1000.5
    rig.now = 1000.5
    await rig.engine.step()
    assert max(slept) == pytest.approx(0.02)
    assert [events for events, _ in rig.machine.passes[1:]] == [[TimePassed()], [TimePassed()]]


async def test_a_due_deadline_is_told_behind_what_happened_before_it():
    rig = Rig(FakeMachine(deadline=1000.0))
    rig.inbox.post([GONE])
    await rig.engine.step()
    assert rig.machine.passes == [([GONE, TimePassed()], 1000.0)]


async def test_a_deadline_to_come_is_not_told_early():
    rig = Rig(FakeMachine(deadline=1000.5))
    rig.inbox.post([GONE])
    await rig.engine.step()
    assert rig.machine.passes == [([GONE], 1000.0)]


async def test_without_events_and_deadlines_the_machine_is_left_alone_but_the_heart_beats(monkeypatch):
    monkeypatch.setattr("gangsched.runtime.engine._BEAT_S", 0.001)
    rig = Rig(FakeMachine())
    rig.mono = 25.0
    assert rig.engine.silent_s() == 25.0
    await rig.engine.step()
    assert rig.machine.passes == []
    assert rig.engine.silent_s() == 0.0


async def test_as_a_standby_it_learns_and_hands_nothing_on():
    rig = Rig(FakeMachine(effects=[BIND], rivals=[("ns/p", "n")]), leads=False)
    rig.inbox.post([GONE])
    await rig.engine.step()
    assert rig.machine.passes == [([GONE], 1000.0)]
    assert rig.sent == []
    assert rig.engine.rivals_problem() == ""


async def test_what_is_posted_before_it_leads_is_known_when_it_decides():
    rig = Rig(FakeMachine(effects=[BIND]), leads=False)
    rig.inbox.post([GONE])
    rig.engine.lead(rig.submit)
    await rig.engine.step()
    assert rig.machine.passes == [([GONE, Synced()], 1000.0)]
    assert rig.sent == [BIND]


async def test_standing_down_a_new_machine_knows_what_was_seen_and_nothing_of_what_was_decided():
    """Steps: it leads; results, a watch event and the signal to decide have arrived and are not handled yet.

    Of the results only a completed binding is kept: it is a fact that the watch may show late.
    """
    heir = FakeMachine(effects=[BIND])
    rig = Rig(FakeMachine(effects=[BIND], seen=[PodGone(uid="seen")], deadline=2000.0), heirs=[heir])
    rig.inbox.post([Synced()])
    await rig.engine.step()
    rig.sent.clear()
    refused = BindRefused(uid="u", node="n", why=Refused.FORBIDDEN, message="no")
    rig.inbox.post([GONE, StatusRefused(key=GroupKey("ns", "g"), stale=True), PodBound("b", "n"), refused, Synced()])
    rig.engine.stand_down()
    assert not rig.engine.synced
    assert b"gangsched_synced 0.0" in rig.metrics.render()
    await rig.engine.step()
    assert heir.passes == [([PodGone(uid="seen"), GONE, PodBound("b", "n")], 1000.0)]
    assert rig.sent == []
    rig.engine.lead(rig.submit)
    await rig.engine.step()
    assert rig.sent == [BIND]
    assert rig.engine.synced


async def test_standing_down_while_it_waits_for_events_the_new_machine_gets_them():
    heir = FakeMachine()
    rig = Rig(FakeMachine(deadline=1000.2), heirs=[heir])
    waiting = asyncio.create_task(rig.engine.step())
    for _ in range(5):
        await asyncio.sleep(0)
    rig.engine.stand_down()
    rig.inbox.post([GONE])
    await asyncio.wait_for(waiting, 10)
    assert rig.machine.passes == []
    assert heir.passes == [([GONE], 1000.0)]


async def test_muted_it_decides_logs_and_counts_but_hands_nothing_on(caplog):
    evict = EvictPod(uid="v", namespace="ns", name="victim")
    rig = Rig(FakeMachine(effects=[BIND, evict]), muted=True)
    rig.inbox.post([GONE])
    with caplog.at_level(logging.INFO, "gangsched"):
        assert await rig.engine.step() == [BIND, evict]
    assert rig.sent == []
    assert [(record.message, vars(record)["pod"], vars(record).get("node")) for record in caplog.records] == [
        ("would bind (dry run)", "ns/p", "n"),
        ("would evict (dry run)", "ns/victim", None),
    ]
    assert b'gangsched_effects_total{kind="BindPod"} 1.0' in rig.metrics.render()


@pytest.mark.parametrize(
    ("severity", "action", "logged"),
    [("Warning", "Scheduling", True), ("Normal", "Scheduling", False), ("Warning", "Waiting", False)],
)
async def test_a_refusal_is_logged_once_for_a_group_and_not_for_each_member(caplog, severity, action, logged):
    told = EmitEvent("PodGroup", "ns", "g", "u", severity, "Unschedulable", action, "No node has room.")
    rig = Rig(FakeMachine(effects=[told]))
    rig.inbox.post([GONE])
    with caplog.at_level(logging.INFO, "gangsched"):
        await rig.engine.step()
    assert [TextFormatter().format(record).partition("engine: ")[2] for record in caplog.records] == (
        ['refused kind=PodGroup object=ns/g reason=Unschedulable why="No node has room."'] if logged else []
    )


async def test_it_is_synced_once_the_machine_was_told_so_and_then_freezes_what_was_listed_once(monkeypatch):
    frozen: list[None] = []
    monkeypatch.setattr("gangsched.runtime.engine.gc.freeze", lambda: frozen.append(None))
    rig = Rig(FakeMachine())
    rig.inbox.post([GONE])
    await rig.engine.step()
    assert not rig.engine.synced
    for _ in range(2):
        rig.inbox.post([Synced()])
        await rig.engine.step()
    assert rig.engine.synced
    assert len(frozen) == 1
    assert b"gangsched_synced 1.0" in rig.metrics.render()


async def test_pods_that_somebody_else_binds_are_told_once_a_batch_and_are_a_problem_for_a_minute(caplog):
    rig = Rig(FakeMachine(rivals=[(f"ns/p{number}", "n") for number in range(5)]))
    assert rig.engine.rivals_problem() == ""
    rig.inbox.post([GONE])
    await rig.engine.step()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert vars(record)["count"] == 5
    assert vars(record)["pods"] == "ns/p0 to n, ns/p1 to n, ns/p2 to n"
    assert b"gangsched_rival_bindings_total 5.0" in rig.metrics.render()
    rig.mono = 59.0
    assert "59 s ago: another scheduler, or a second gangsched without leader election" in rig.engine.rivals_problem()
    rig.inbox.post([GONE])
    await rig.engine.step()
    assert len(caplog.records) == 1
    rig.mono = 60.0
    assert rig.engine.rivals_problem() == ""


async def test_a_replica_that_leads_no_longer_takes_its_successors_bindings_for_no_rivals():
    """A process that was stopped for a while sees them before it learns that another replica has the Lease."""
    rig = Rig(FakeMachine(rivals=[("ns/p", "n")]), heirs=[FakeMachine()])
    rig.inbox.post([GONE])
    await rig.engine.step()
    assert rig.engine.rivals_problem() != ""
    rig.engine.stand_down()
    assert rig.engine.rivals_problem() == ""


async def test_muted_whoever_binds_our_pods_is_no_rival(caplog):
    rig = Rig(FakeMachine(rivals=[("ns/p", "n")]), muted=True)
    rig.inbox.post([GONE])
    await rig.engine.step()
    assert rig.machine.rivals == []
    assert caplog.records == []
    assert rig.engine.rivals_problem() == ""


async def test_a_fault_over_one_group_is_logged_with_its_traceback_and_counted_and_the_engine_goes_on(caplog):
    with pytest.raises(ValueError, match="evil") as raised:
        int("evil\nname")
    fault = Fault("ns/g", FaultyStep.CYCLE, raised.value, 60.0, ((1.5, "NodeShown"), (2.0, "the quorum is bound")))
    rig = Rig(FakeMachine(effects=[BIND], faults=[fault, Rebuilt(("n1 has 2 cpu too many",))]))
    rig.inbox.post([GONE])
    assert await rig.engine.step() == [BIND]
    told, rebuilt = (record for record in caplog.records if record.levelno == logging.ERROR)
    line = TextFormatter().format(told)
    assert 'group=ns/g step=Cycle parked_s=60.0 story="1.500 NodeShown; 2.000 the quorum is bound"\n    Trace' in line
    assert line.endswith("\n    ValueError: invalid literal for int() with base 10: 'evil\\nname'")
    assert vars(rebuilt)["found"] == "n1 has 2 cpu too many"
    shown = rig.metrics.render()
    assert b'gangsched_group_faults_total{step="Cycle"} 1.0' in shown
    assert b"gangsched_accounts_rebuilt_total 1.0" in shown


async def test_an_object_that_is_set_aside_is_logged_with_the_traceback_and_the_engine_goes_on(caplog):
    with pytest.raises(ValueError, match="evil") as raised:
        int("evil")
    rig = Rig(FakeMachine(effects=[BIND], faults=[SetAside("Node n1", raised.value)]))
    rig.inbox.post([GONE])
    assert await rig.engine.step() == [BIND]
    (told,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert vars(told)["object"] == "Node n1"
    assert "ValueError: invalid literal" in TextFormatter().format(told)
    assert rig.engine.set_aside() == ["Node n1 (ValueError)"]


async def test_a_part_that_failed_and_decides_nothing_is_logged_and_the_engine_goes_on(caplog):
    rig = Rig(FakeMachine(effects=[BIND], faults=[Omitted("expected starts", ValueError("evil"), 3600.0)]))
    rig.inbox.post([GONE])
    assert await rig.engine.step() == [BIND]
    (told,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert (vars(told)["part"], vars(told)["pause_s"]) == ("expected starts", 3600.0)


async def test_a_bug_in_the_machine_ends_the_engine_and_the_log_names_only_kinds_and_numbers(caplog):
    rig = Rig(FakeMachine(fails=True))
    rig.inbox.post([PodGone(uid="secret-uid"), GONE, Synced()])
    with pytest.raises(AssertionError, match="a bug"):
        await rig.engine.run()
    (record,) = caplog.records
    assert record.levelno == logging.CRITICAL
    assert vars(record)["events"] == "PodGone 2, Synced 1"
    assert "secret-uid" not in caplog.text


async def test_passes_are_measured_and_their_events_counted_by_type():
    rig = Rig(FakeMachine())
    rig.inbox.post([GONE, GONE, Synced()])
    await rig.engine.step()
    page = rig.metrics.render().decode()
    assert 'gangsched_inputs_total{type="PodGone"} 2.0' in page
    assert "gangsched_pass_duration_seconds_count 1.0" in page
    assert 'gangsched_gang_wait_seconds_sum{priority="0"} 0.25' in page
    assert 'gangsched_pass_budget_used_bucket{le="0.5"} 1.0' in page


async def test_between_passes_events_gather_but_one_that_comes_while_nothing_happens_does_not_wait(monkeypatch):
    rests: list[tuple[float, float]] = []

    async def rest(least_s: float, longest_s: float) -> None:
        rests.append((round(least_s, 3), round(longest_s, 3)))

    rig = Rig(FakeMachine())
    monkeypatch.setattr(rig.inbox, "rest", rest)
    for mono in (100.0, 100.004, 200.0):
        rig.mono = mono
        rig.inbox.post([GONE])
        await rig.engine.step()
    assert [each for each in rests if each[1] > 0] == [(-0.001, 0.016)]


@pytest.mark.parametrize(("old", "frozen"), [(4, 0), (5, 1)])
async def test_what_lives_long_is_spared_before_the_collector_would_look_at_everything(monkeypatch, old, frozen):
    rig = Rig(FakeMachine(effects=[BIND]))
    rig.inbox.post([Synced()])
    await rig.engine.step()
    freezes: list[None] = []
    monkeypatch.setattr("gangsched.runtime.engine.gc.freeze", lambda: freezes.append(None))
    monkeypatch.setattr("gangsched.runtime.engine.gc.get_count", lambda: (0, 0, old))
    rig.inbox.post([GONE])
    await rig.engine.step()
    assert len(freezes) == frozen


async def test_a_pass_that_decides_nothing_leaves_the_collector_alone(monkeypatch):
    """Most cycles only receive the writes of kubelets: a garbage collection in each would be their largest cost."""
    rig = Rig(FakeMachine())
    rig.inbox.post([Synced()])
    await rig.engine.step()
    collections: list[int] = []
    monkeypatch.setattr("gangsched.runtime.engine.gc.collect", collections.append)
    rig.inbox.post([GONE])
    await rig.engine.step()
    assert collections == []


@pytest.mark.parametrize(
    ("lacks", "before", "come", "at_once"),
    [
        pytest.param(3, [], ["a", "a", "a"], True, id="the last member"),
        pytest.param(3, [], ["a", "a"], False, id="not the last yet"),
        pytest.param(3, [], ["a", "b", "a"], False, id="members of two gangs"),
        pytest.param(0, [], ["a", "a"], False, id="a gang that lacks none"),
        pytest.param(3, ["a", "a"], ["a"], False, id="who came before the last pass is counted in it"),
    ],
)
async def test_a_gang_whose_last_member_comes_does_not_wait_for_the_rest_between_two_passes(
    monkeypatch, lacks, before, come, at_once
):
    monkeypatch.setattr("gangsched.runtime.engine._REST_S", 60.0)
    rig = Rig(FakeMachine(lacks=lacks))
    rig.mono = 100.0
    rig.inbox.post(map(seen, before or ["other"]))
    await rig.engine.step()
    rig.inbox.post(map(seen, come))
    try:
        async with asyncio.timeout(5 if at_once else 0.1):
            await rig.engine.step()
    except TimeoutError:
        assert not at_once
    else:
        assert at_once


def seen(gang: str) -> PodSeen:
    return PodSeen(pod(gang))
