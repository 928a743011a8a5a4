from gangsched.core.cluster.journal import Journal


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
