"""Random walks of a PodGroup of ours whose minima change while bindings fail and members come and go."""

from __future__ import annotations

from collections import Counter
from random import Random

from gangsched.core.objects.declaration import Role
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.pod import Owner, role_of
from gangsched.core.objects.results import BindRefused, Refused
from tests.builders import group, node, pod
from tests.effort import seeded
from tests.harness import Harness

OWNER = Owner("ReplicaSet", "rs", "uid-rs", "apps")
FAULTS = (None, None, None, Refused.UNAVAILABLE, Refused.UNAVAILABLE, Refused.FORBIDDEN, Refused.DENIED)


class Walk:
    """A group with two roles or none, whose pods have a controller."""

    def __init__(self, seed: int) -> None:
        self.random, self.harness, self.made = Random(seed), Harness(), 0
        draw = self.random
        self.least = draw.choice(({"x": draw.randint(1, 3), "y": draw.randint(0, 2)}, {"": draw.randint(1, 4)}))
        self.more = 0
        self.wanted = {role: least + draw.choice((0, 0, 1)) for role, least in self.least.items()}
        self.faults: dict[str, Refused | None] = {}
        self.harness.refuse_bind = self.refuse
        self.harness.lose_answer = lambda _: self.random.random() < 0.05
        self.harness.withhold = lambda _: self.random.random() < 0.08
        self.leaders_change = draw.random() < 0.6
        roles = self.roles()
        self.harness.add(group("a", min_member=sum(self.least.values()), roles=roles))
        self.harness.add(*(node(f"n{at}", cpu=draw.randint(2, 4)) for at in range(3)))

    def roles(self) -> tuple[Role, ...]:
        return tuple(Role(role, min_member=least) for role, least in sorted(self.least.items()) if role)

    def refuse(self, effect: BindPod) -> BindRefused | None:
        why = self.faults.setdefault(effect.name, self.random.choice(FAULTS))
        if why is None or (why is Refused.UNAVAILABLE and self.random.random() < 0.2):
            return None
        return BindRefused(effect.uid, effect.node, why, "no")

    def members(self, role: str) -> list[str]:
        several = [each for each in self.harness.pods.values() if each.declaration and not each.terminating]
        return [f"default/{each.name}" for each in several if role_of(each) == role]

    def control(self) -> None:
        """Create and delete as many pods of each role as its replicas say."""
        for role, wanted in self.wanted.items():
            there = self.members(role)
            self.harness.delete(*there[wanted:])
            for _ in range(wanted - len(there)):
                self.made += 1
                created = float(int(self.harness.now))
                self.harness.add(pod(f"a-{self.made}", role=role, created=created, owner=OWNER))

    def change_minimum(self) -> None:
        role, draw = self.random.choice(sorted(self.least)), self.random
        self.least[role] = max(int(not role), self.least[role] + draw.choice((-1, 1, 1, 2)))
        self.more = int(bool(role) and draw.random() < 0.3)
        least = self.least[role]
        self.wanted[role] = max(self.wanted[role], least) if draw.random() < 0.7 else least
        total = max(1, sum(self.least.values())) + self.more
        self.wanted[role] += max(0, total - sum(self.wanted.values()))
        self.harness.change_spec("default/a", min_member=total, roles=self.roles())
        if draw.random() < 0.7:
            self.control()

    def rival(self) -> None:
        """A pod of another scheduler takes room, or one leaves."""
        rivals = [each for each in self.harness.pods.values() if each.name.startswith("rival")]
        if rivals and self.random.random() < 0.5:
            self.harness.delete(f"default/{self.random.choice(rivals).name}")
            return
        found = self.random.choice([*self.harness.nodes.values()])
        if sum(each.node == found.name for each in self.harness.pods.values()) < dict(found.allocatable)["cpu"] // 1000:
            self.made += 1
            self.harness.add(pod(f"rival-{self.made}", group="", node=found.name, scheduler="other"))

    def lose(self) -> None:
        """A bound member is deleted and replaced."""
        bound = [each.name for each in self.harness.pods.values() if each.declaration and each.node]
        if bound:
            self.harness.delete(f"default/{self.random.choice(bound)}")
            self.control()

    def step(self) -> None:
        happens = (
            (6 * self.leaders_change, self.harness.restart),
            (4 * self.leaders_change, self.harness.lead_again),
            (10, self.rival),
            (14, self.change_minimum),
            (6, self.harness.send_withheld),
            (6, self.harness.run_pods),
            (8, self.lose),
            (10, self.control),
            (10, self.harness.end_terminating),
        )
        weights, several = zip(*happens, strict=True)
        self.random.choices(several, weights)[0]()
        self.harness.wait(self.random.choice((0, 0.3, 1, 3, 9, 25)))

    def calm(self) -> None:
        """Nothing fails any more, and there is room for all."""
        self.harness.refuse_bind = lambda _: None
        self.harness.lose_answer = self.harness.withhold = lambda _: False
        self.harness.send_withheld()
        self.harness.add(node("large", cpu=40))
        for _ in range(50):
            self.harness.wait(10)
            self.harness.end_terminating()
            self.control()
        self.harness.wait(60)


@seeded(80)
def test_all_members_are_bound_in_the_end_whatever_happened_and_the_machine_rests(seed):
    """The harness fails a call that is due at once for ever."""
    walk = Walk(seed)
    walk.control()
    for _ in range(20):
        walk.step()
    walk.calm()
    waiting = Counter(role_of(each) for each in walk.harness.pods.values() if each.declaration and not each.node)
    assert walk.harness.bound()
    assert waiting == {}
