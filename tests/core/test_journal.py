from gangsched.core.cluster.changes import Journal
from tests.builders import node
from tests.preempting import alone, cluster, holder, is_whole


def test_each_takes_what_was_noted_since_it_began_to_follow():
    journal = Journal()
    journal.note("a")
    assert journal.take("one") is None
    journal.note("b")
    assert journal.take("two") is None
    journal.note("c")
    assert [*(journal.take("one") or ())] == ["b", "c"]
    assert [*(journal.take("two") or ())] == ["c"]
    assert journal.take("one") == {}


def test_who_has_forgotten_begins_anew():
    journal = Journal()
    journal.take("one")
    journal.note("a")
    journal.forget("one")
    assert journal.take("one") is None


def test_nobody_follows_who_has_no_plan():
    """Regression: while an eviction of an ended plan had no answer, plans began to follow, and noted every pod."""
    harness = cluster(node(cpu=2), *(alone(f"a{at}") for at in range(2)))
    harness.eviction_takes_s = lambda _: 3.0
    harness.wait(0.5, *holder(2))
    harness.delete("default/high-0", "default/high-1")
    harness.delete_group("default/high")
    harness.wait(60)
    assert not is_whole(harness, "high", 2)
    assert not harness.machine.plans
    assert harness.machine.cluster.ledger.journal.take("Plans") is None
