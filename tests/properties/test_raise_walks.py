"""Random walks of a PodGroup of ours whose minima change while bindings fail and members come and go."""

from __future__ import annotations

from collections import Counter

from gangsched.core.objects.declaration import Role
from gangsched.core.objects.pod import role_of
from tests.builders import group, node, pod
from tests.effort import seeded
from tests.walks import OWNER, Happens, Walk


class RaiseWalk(Walk):
    """A group with two roles or none, whose pods have a controller."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        draw = self.random
        self.least = draw.choice(({"x": draw.randint(1, 3), "y": draw.randint(0, 2)}, {"": draw.randint(1, 4)}))
        self.wanted = {role: least + draw.choice((0, 0, 1)) for role, least in self.least.items()}
        self.leaders_change = draw.random() < 0.6
        roles = self.roles()
        self.harness.add(group("a", min_member=sum(self.least.values()), roles=roles))
        self.harness.add(*(node(f"n{at}", cpu=draw.randint(2, 4)) for at in range(3)))

    def roles(self) -> tuple[Role, ...]:
        return tuple(Role(role, min_member=least) for role, least in sorted(self.least.items()) if role)

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
        more = int(bool(role) and draw.random() < 0.3)
        least = self.least[role]
        self.wanted[role] = max(self.wanted[role], least) if draw.random() < 0.7 else least
        total = max(1, sum(self.least.values())) + more
        self.wanted[role] += max(0, total - sum(self.wanted.values()))
        self.harness.change_spec("default/a", min_member=total, roles=self.roles())
        if draw.random() < 0.7:
            self.control()

    def lose(self) -> None:
        """A bound member is deleted and replaced."""
        bound = [each.name for each in self.harness.pods.values() if each.declaration and each.node]
        if bound:
            self.harness.delete(f"default/{self.random.choice(bound)}")
            self.control()

    def happens(self) -> tuple[Happens, ...]:
        leaders = ((6 * self.leaders_change, self.harness.restart), (4 * self.leaders_change, self.harness.lead_again))
        return *leaders, (10, self.rival), (14, self.change_minimum), (8, self.lose)


@seeded(80)
def test_all_members_are_bound_in_the_end_whatever_happened_and_the_machine_rests(seed):
    """The harness fails a call that is due at once for ever."""
    walk = RaiseWalk(seed)
    walk.control()
    for _ in range(20):
        walk.step()
    walk.harness.add(node("large", cpu=40))
    walk.calm(50)
    walk.harness.wait(60)
    waiting = Counter(role_of(each) for each in walk.harness.pods.values() if each.declaration and not each.node)
    assert walk.harness.bound()
    assert waiting == {}
