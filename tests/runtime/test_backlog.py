from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.demands import DemandKey, DemandObject, PoolDemand
from gangsched.core.objects.effects import (
    BindPod,
    DropDemand,
    Effect,
    EmitEvent,
    EvictPod,
    LookUpOwner,
    PatchPodCondition,
    PatchStatus,
    PutDemand,
    WithdrawBinding,
)
from gangsched.core.objects.status import GroupStatus
from gangsched.runtime.backlog import AT_FIRST, BURST, EVENTS_YIELD_S, QUIET_S, Backlog
from gangsched.runtime.write import Job, Withdrawal
from tests.runtime.fake_table import REAL, job

SLOTS = 8
PATIENCE_S = 5.0


def bind(uid: str, node: str = "n1") -> BindPod:
    return BindPod(uid=uid, namespace="ns", name=uid, node=node)


BURST_OF_BINDINGS = [bind(f"b{number}") for number in range(BURST)]


def withdraw(uid: str, node: str = "n1") -> WithdrawBinding:
    return WithdrawBinding(uid=uid, node=node)


def evict(uid: str) -> EvictPod:
    return EvictPod(uid=uid, namespace="ns", name=uid)


def look_up(uid: str) -> LookUpOwner:
    return LookUpOwner(uid=uid, namespace="ns", name=uid)


def status(name: str, members: int = 0, resource_version: str = "") -> PatchStatus:
    return PatchStatus(
        key=GroupKey("ns", name),
        uid=f"uid-{name}",
        status=GroupStatus(members=members),
        resource_version=resource_version,
    )


def condition(uid: str, reason: str = "Unschedulable") -> PatchPodCondition:
    return PatchPodCondition(uid=uid, namespace="ns", name=uid, reason=reason, message="")


def put(name: str, group: str = "batch") -> PutDemand:
    return PutDemand(DemandObject(DemandKey("ns", name), "p", "u", PoolDemand(instance_group=group, units=())))


def drop(name: str) -> DropDemand:
    return DropDemand(DemandKey("ns", name), "u")


def event(note: str) -> EmitEvent:
    return EmitEvent(
        kind="PodGroup", namespace="ns", name="a", uid="u", type="Normal", reason="R", action="A", note=note
    )


def backlog(*, patience_s: float = 1.0, events_limit: int = 100, dropped: list[None] | None = None) -> Backlog:
    drops = [] if dropped is None else dropped
    return Backlog(
        slots=SLOTS,
        patience_s=patience_s,
        informing_patience_s=PATIENCE_S * patience_s,
        events_limit=events_limit,
        on_event_dropped=lambda: drops.append(None),
    )


def holding(*effects: Effect) -> Backlog:
    """A backlog to which these were added, one after the other."""
    queue = backlog()
    for effect in effects:
        queue.add(job(effect, 0.0))
    return queue


def take_back(queue: Backlog, effect: WithdrawBinding) -> bool:
    row = REAL[WithdrawBinding]
    assert isinstance(row, Withdrawal)
    return queue.withdraw(row.key(effect)) is not None


def taken(queue: Backlog, now: float = 0.0, *, most: int = 100) -> list[Effect]:
    effects: list[Effect] = []
    while len(effects) < most and (head := queue.next(now)) is not None:
        effects.append(head.effect)
    return effects


def finish(queue: Backlog, *effects: Effect, now: float = 0.0) -> None:
    for effect in effects:
        queue.done(job(effect), now)


def in_full(queue: Backlog, now: float = 0.0) -> list[Effect]:
    """All effects in the order of sending if each write is answered at once."""
    order: list[Effect] = []
    while not queue.empty:
        if (head := queue.next(now)) is None:
            now = queue.due(now)
        else:
            order.append(head.effect)
            queue.done(head, now)
    return order


class TestOrder:
    def test_bindings_go_before_everything_that_only_tells_people(self):
        queue = holding(event("e"), condition("p"), status("g"), bind("b1"), bind("b2"))
        assert taken(queue, most=2) == [bind("b1"), bind("b2")]

    def test_bindings_above_a_minimum_wait_for_all_others_but_not_for_ever(self):
        queue = backlog(patience_s=5.0)
        above = [BindPod(f"x{number}", "ns", f"x{number}", "n1", above=True) for number in range(6)]
        for number in range(6):
            queue.add(job(above[number], 0.0))
            queue.add(job(bind(f"b{number}"), 0.0))
        assert taken(queue, most=2) == [bind("b0"), bind("b1")]
        assert taken(queue, now=5.0, most=4) == [above[0], above[1], bind("b2"), bind("b3")]
        finish(queue, above[0])
        assert taken(queue, now=5.0, most=2) == [above[2], bind("b4")]
        assert take_back(queue, withdraw("x4"))
        assert queue.waiting(BindPod) == 3
        assert taken(queue, now=5.0) == [bind("b5"), above[3], above[5]]
        assert queue.empty

    def test_a_reservation_goes_before_bindings_because_bindings_wait_for_it(self):
        queue = holding(bind("b"), status("g", resource_version="7"))
        assert taken(queue) == [status("g", resource_version="7"), bind("b")]

    def test_informing_takes_the_oldest_first_but_events_yield_for_a_while(self):
        queue = backlog()
        queue.add(job(event("e"), 1.0))
        queue.add(job(status("g"), 3.0))
        queue.add(job(condition("p"), 2.0))
        queue.add(job(status("late"), 1.0 + EVENTS_YIELD_S + 0.1))
        order = []
        for _ in range(4):
            oldest = queue.next(3.0)
            assert oldest is not None
            order.append(oldest.effect)
            queue.done(oldest, 3.0)
        assert order == [condition("p"), status("g"), event("e"), status("late")]

    def test_a_burst_grows_with_the_answers_and_the_next_begins_small_again(self):
        queue = holding(*(bind(str(number)) for number in range(1000)))
        sent = taken(queue)
        assert len(sent) == AT_FIRST
        assert taken(queue) == []
        waves = []
        while sent:
            following = []
            for effect in sent:
                finish(queue, effect)
                following += taken(queue)
            waves.append(len(following))
            sent = following
        assert waves == [96, 144, 216, 324, 1000 - 64 - 96 - 144 - 216 - 324, 0]
        for number in range(1000):
            queue.add(job(bind(str(number)), 0.0))
        assert len(taken(queue)) == AT_FIRST

    def test_informing_waits_during_a_burst_of_bindings_and_a_moment_longer(self):
        queue = holding(*BURST_OF_BINDINGS, *(event(str(number)) for number in range(10)))
        assert taken(queue) == BURST_OF_BINDINGS
        assert queue.due(0.0) == QUIET_S
        assert taken(queue, 1.0) == []
        finish(queue, *BURST_OF_BINDINGS, now=1.0)
        assert taken(queue, 1.0) == []
        assert queue.due(1.0) == 1.0 + QUIET_S
        assert taken(queue, 1.0 + QUIET_S) == [event(str(number)) for number in range(SLOTS // 2)]

    def test_a_few_bindings_leave_informing_two_slots(self):
        few = BURST_OF_BINDINGS[1:]
        queue = holding(*few, *(event(str(number)) for number in range(10)))
        assert taken(queue) == [*few, event("0"), event("1")]
        finish(queue, *few)
        assert taken(queue) == [event("2"), event("3")]

    def test_informing_that_has_waited_long_takes_a_quarter_of_the_slots_during_a_burst(self):
        queue = holding(*BURST_OF_BINDINGS, *(event(str(number)) for number in range(10)))
        assert taken(queue, PATIENCE_S - 0.1) == BURST_OF_BINDINGS
        assert queue.due(PATIENCE_S - 0.05) == PATIENCE_S
        assert taken(queue, PATIENCE_S) == [event(str(number)) for number in range(SLOTS // 4)]

    @given(st.floats(0, 1e7))
    def test_what_is_due_can_be_taken_then_however_the_time_is_rounded(self, since):
        queue = backlog()
        for effect in (*BURST_OF_BINDINGS, event("e")):
            queue.add(job(effect, since))
        taken(queue, since)
        while (due := queue.due(since)) < float("inf") and not taken(queue, due):
            since = due
        assert queue.empty

    def test_the_end_does_not_wait_for_bindings(self):
        queue = holding(*BURST_OF_BINDINGS, status("g"))
        taken(queue)
        queue.close()
        assert taken(queue) == [status("g")]

    def test_nothing_is_due_without_a_write_that_yields(self):
        assert holding(bind("b"), evict("p")).due(0.0) == float("inf")

    def test_reservations_are_not_limited_to_half_of_the_slots(self):
        queue = holding(*(status(str(number), resource_version="1") for number in range(SLOTS)))
        assert len(taken(queue)) == SLOTS
        for number in range(SLOTS):
            finish(queue, status(str(number), resource_version="1"))
        queue.add(job(event("e"), 0.0))
        assert taken(queue) == [event("e")]

    def test_evictions_and_look_ups_go_behind_bindings_and_before_what_only_tells_people(self):
        queue = holding(event("e"), look_up("j"), evict("p"), bind("b"))
        assert in_full(queue) == [bind("b"), look_up("j"), evict("p"), event("e")]

    def test_evictions_and_look_ups_take_at_most_a_quarter_of_the_slots(self):
        queue = holding(*(evict(str(number)) for number in range(SLOTS)))
        queue.add(job(look_up("j"), 0.0))
        assert taken(queue) == [evict(str(number)) for number in range(SLOTS // 4)]
        finish(queue, evict("0"))
        assert taken(queue) == [evict(str(SLOTS // 4))]

    def test_evictions_do_not_starve_while_bindings_never_end(self):
        queue = backlog(patience_s=1.0)
        queue.add(job(evict("p"), 0.0))
        for number in range(20):
            queue.add(job(bind(str(number)), 0.0))
        assert evict("p") not in taken(queue, 0.9, most=10)
        assert taken(queue, 1.0, most=1) == [evict("p")]

    def test_impatient_evictions_take_at_most_two_slots_from_waiting_bindings_beside_those_of_informing(self):
        queue = backlog(patience_s=1.0)
        for number in range(20):
            queue.add(job(event(str(number)), 0.0))
            queue.add(job(evict(str(number)), 0.0))
            queue.add(job(bind(str(number)), 0.0))
        kinds = [type(effect) for effect in taken(queue, 100.0, most=8)]
        assert [kinds.count(kind) for kind in (EvictPod, EmitEvent, BindPod)] == [2, 2, 4]


class TestWithdrawing:
    def test_a_binding_that_waits_for_its_pods_condition_is_not_sent(self):
        queue = holding(condition("a"))
        assert taken(queue) == [condition("a")]
        queue.add(job(bind("a"), 0.0))
        assert take_back(queue, withdraw("a"))
        assert queue.empty
        assert not queue.superseded(job(condition("a")))
        finish(queue, condition("a"))
        assert taken(queue) == []

    @pytest.mark.parametrize("behind", [False, True])
    def test_one_to_another_node_is_sent(self, behind):
        queue = backlog()
        if behind:
            queue.add(job(condition("a"), 0.0))
            taken(queue)
        queue.add(job(bind("a", "n1"), 0.0))
        assert not take_back(queue, withdraw("a", "n2"))
        if behind:
            finish(queue, condition("a"))
        assert taken(queue) == [bind("a", "n1")]


class TestOnce:
    @pytest.mark.parametrize("effect", [evict("p"), look_up("j")])
    def test_a_second_one_while_the_first_waits_or_is_in_flight_is_not_sent(self, effect):
        queue = holding(effect)
        queue.add(job(effect, 1.0))
        assert queue.waiting(type(effect)) == 1
        assert taken(queue) == [effect]
        queue.add(job(effect, 2.0))
        assert queue.empty
        finish(queue, effect)
        queue.add(job(effect, 3.0))
        assert taken(queue) == [effect]

    def test_asking_again_does_not_forget_how_often_it_was_tried(self):
        queue = holding(look_up("j"))
        first = queue.next(0.0)
        assert first is not None
        queue.done(first, 0.0)
        queue.add_again(first)
        queue.add(job(look_up("j"), 1.0))
        assert queue.next(1.0) == first._replace(attempt=1)


class TestNewestWins:
    @pytest.mark.parametrize(
        ("older", "newer"),
        [
            (status("g", 1), status("g", 2)),
            (condition("p", "Old"), condition("p", "New")),
            (put("d", "old"), put("d", "new")),
            (put("d"), drop("d")),
        ],
    )
    def test_of_several_decisions_one_is_in_flight_at_a_time_and_only_the_newest_is_sent(self, older, newer):
        queue = holding(older)
        queue.add(job(newer, 1.0))
        assert taken(queue) == [newer]
        queue.add(job(older, 2.0))
        queue.add(job(newer, 3.0))
        assert taken(queue) == []
        assert queue.superseded(job(newer))
        finish(queue, newer)
        assert taken(queue) == [newer]

    def test_a_group_that_keeps_changing_is_not_told_later_for_it(self):
        queue = holding(status("g", 1))
        queue.add(job(condition("p"), 1.0))
        queue.add(job(status("g", 2), 2.0))
        assert taken(queue, most=1) == [status("g", 2)]

    def test_nor_is_one_that_changes_while_it_is_being_told(self):
        queue = holding(status("g", 1))
        taken(queue)
        queue.add(job(status("g", 2), 1.0))
        queue.add(job(condition("p"), 2.0))
        queue.add(job(status("g", 3), 3.0))
        finish(queue, status("g", 1))
        assert taken(queue, most=1) == [status("g", 3)]

    def test_an_unconditional_status_takes_the_place_of_a_waiting_reservation(self):
        queue = holding(status("g", 1, resource_version="7"), status("g", 2), bind("b"))
        assert in_full(queue) == [bind("b"), status("g", 2)]


class TestEvents:
    def test_beyond_the_limit_the_oldest_is_dropped_and_counted(self):
        dropped: list[None] = []
        queue = backlog(events_limit=2, dropped=dropped)
        for note in "abc":
            queue.add(job(event(note), 0.0))
        assert taken(queue) == [event("b"), event("c")]
        assert len(dropped) == 1


def test_closing_keeps_statuses_and_events_and_forgets_everything_else():
    queue = holding(bind("b"), evict("x"), evict("y"), look_up("j"), condition("p"), put("d"), status("g"), event("e"))
    queue.add(job(status("r", resource_version="7"), 0.0))
    assert queue.close() == {"BindPod": 1, "EvictPod": 2, "LookUpOwner": 1}
    assert taken(queue) == [status("r", resource_version="7"), status("g"), event("e")]


EFFECTS = st.one_of(
    st.builds(bind, st.sampled_from("abc")),
    st.builds(withdraw, st.sampled_from("abc")),
    st.builds(evict, st.sampled_from("xy")),
    st.builds(look_up, st.sampled_from("jk")),
    st.builds(status, st.sampled_from("gh"), st.integers(0, 9), st.sampled_from(["", "7"])),
    st.builds(condition, st.sampled_from("pq"), st.sampled_from(["X", "Y"])),
    st.builds(put, st.sampled_from("vw"), st.sampled_from("12")),
    st.builds(drop, st.sampled_from("vw")),
    st.builds(event, st.sampled_from("mn")),
)


def subject(effect: Effect) -> object:
    """The object that may have at most one write in flight; None for bindings and Events."""
    match effect:
        case PatchStatus(key=key) | PutDemand(key=key) | DropDemand(key=key):
            return key
        case PatchPodCondition(uid=uid) | EvictPod(uid=uid) | LookUpOwner(uid=uid):
            return uid
        case _:
            return None


INFORMING = EmitEvent | PatchPodCondition | PutDemand | DropDemand


class Sender:
    """Takes and finishes jobs and checks the invariants at every moment."""

    def __init__(self, queue: Backlog, now: float) -> None:
        self.queue, self.now = queue, now
        self.in_flight: list[Job] = []
        self.last: dict[object, Effect] = {}

    def take(self) -> bool:
        taken = self.queue.next(self.now) if len(self.in_flight) < SLOTS else None
        if taken is None:
            return False
        about = subject(taken.effect)
        assert about is None or about not in [subject(other.effect) for other in self.in_flight]
        self.last[about] = taken.effect
        self.in_flight.append(taken)
        informing = [other for other in self.in_flight if isinstance(other.effect, INFORMING)]
        assert len(informing) <= SLOTS // 2
        actions = [other for other in self.in_flight if isinstance(other.effect, EvictPod | LookUpOwner)]
        assert len(actions) <= SLOTS // 4
        return True

    def wait(self) -> bool:
        """Let time pass until something is due, if anything is."""
        until = self.queue.due(self.now)
        waits, self.now = self.now < until < float("inf"), until
        return waits

    def finish_oldest(self) -> bool:
        if self.in_flight:
            self.queue.done(self.in_flight.pop(0), self.now)
            return True
        return False


@given(st.lists(st.one_of(EFFECTS, st.sampled_from(["next", "done"]))), st.floats(0, 10))
def test_everything_is_sent_in_the_end_and_never_two_of_one_group_or_pod_at_once(steps, now):
    sender = Sender(backlog(), now)
    newest: dict[object, Effect] = {}
    for step in steps:
        if step == "next":
            sender.take()
        elif step == "done":
            sender.finish_oldest()
        elif isinstance(step, WithdrawBinding):
            waiting = sender.queue.waiting(BindPod)
            withdrawn = take_back(sender.queue, step)
            assert sender.queue.waiting(BindPod) == waiting - withdrawn
        else:
            sender.queue.add(job(step, now))
            newest[subject(step)] = step
    while sender.take() or sender.finish_oldest() or sender.wait():
        pass
    assert sender.queue.empty
    assert sender.queue.in_flight == 0
    newest.pop(None, None)
    sender.last.pop(None, None)
    assert sender.last == newest


def test_a_binding_drops_the_condition_that_waits_for_its_pod():
    """Sent after the binding, it would report PodScheduled=False for a bound pod."""
    queue = holding(condition("a"), condition("b"), bind("a"))

    assert in_full(queue) == [bind("a"), condition("b")]


def test_a_binding_waits_for_its_pods_condition_in_flight_which_is_not_tried_again():
    """Steps: the condition is with the server, a newer one and the binding are decided, the server answers 503."""
    queue = holding(condition("a"))
    sent = taken(queue)
    queue.add(job(condition("a", "Newer"), 0.0))
    queue.add(job(bind("a"), 0.0))
    meanwhile = taken(queue)
    superseded = queue.superseded(job(condition("a")))
    finish(queue, condition("a"))

    assert sent == [condition("a")]
    assert meanwhile == []
    assert superseded
    assert taken(queue) == [bind("a")]


def test_what_only_tells_people_can_be_forgotten_and_what_is_in_flight_may_end():
    queue = holding(status("in flight"))
    sent = taken(queue)
    queue.add(job(bind("a"), 0.0))
    sent += taken(queue)
    acting = queue.acting
    waiting = status("in flight"), status("waits"), status("reserved", resource_version="7"), event("1"), event("2")
    for each in waiting:
        queue.add(job(each, 0.0))
    unsent = queue.clear()
    assert (len(sent), acting, unsent) == (2, 1, 5)
    assert queue.empty
    for effect in sent:
        finish(queue, effect)
    assert queue.acting == queue.in_flight == 0
    assert taken(queue) == []
