"""The counts of pods by question equal a recount, whatever changes in whichever order."""

from __future__ import annotations

from collections import Counter
from random import Random

from msgspec.structs import replace

from gangsched.core.constraints import tally
from gangsched.core.constraints.tally import Question, Tallies
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PodTerm, Requirement
from tests.builders import pod
from tests.effort import seeded

SELECTORS = (
    (),
    None,
    (Requirement("app", "In", ("a", "b")),),
    (Requirement("app", "In", ("a",)), Requirement("tier", "Exists")),
    (Requirement("tier", "Exists"),),
    (Requirement("app", "NotIn", ("a",)),),
    (Requirement("tier", "DoesNotExist"), Requirement("app", "In", ("b",))),
)
SCOPES = (("x",), ("x", "y")), (None, (), (Requirement("team", "In", ("t",)),))


def any_question(random: Random) -> Question:
    terms = (
        PodTerm("", random.choice(SELECTORS), random.choice(SCOPES[0]), random.choice(SCOPES[1]))
        for _ in range(random.choice((1, 1, 2)))
    )
    return Question(tuple(terms), staying=random.random() < 0.5)


def any_pod(random: Random, uid: str) -> Pod:
    labels = {key: random.choice("abc") for key in ("app", "tier") if random.random() < 0.7}
    return pod(f"{random.choice('xy')}/{uid}", uid=uid, labels=labels, terminating=random.random() < 0.3)


@seeded(80)
def test_counts_are_those_of_a_recount(seed, monkeypatch):
    monkeypatch.setattr(tally, "MOST_CACHED", 4)
    random = Random(seed)
    there: dict[str, tuple[Pod, int]] = {}
    namespaces: dict[str, dict[str, str]] = {}
    tallies = Tallies(namespaces, there.values)
    for _ in range(200):
        uid, did = f"p{random.randrange(8)}", random.random()
        if did < 0.4:
            if uid in there:
                tallies.remove(*there.pop(uid))
            else:
                there[uid] = any_pod(random, uid), random.randrange(3)
                tallies.add(*there[uid])
        elif did < 0.6 and uid in there:
            old, row = there[uid]
            tallies.remove(old, row)
            there[uid] = replace(any_pod(random, uid), namespace=old.namespace), row
            tallies.add(*there[uid])
        elif did < 0.7:
            namespaces[random.choice("xy")] = random.choice(({}, {"team": "t"}))
            tallies.namespaces_changed()
        elif did < 0.9:
            asked = [any_question(random) for _ in range(random.randrange(3))]
            assert tallies.of(asked) == {each: recount(each, there, namespaces) for each in asked}
        assert tallies.contradictions() == []


def recount(question: Question, there: dict[str, tuple[Pod, int]], namespaces: dict[str, dict[str, str]]) -> object:
    return Counter(
        row
        for each, row in there.values()
        if question.matches(each, namespaces) and not (question.staying and each.terminating)
    )
