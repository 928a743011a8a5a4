"""Random walks of two groups through all that a gang's life knows: volumes to wait for, other schedulers that bind
members, nodes that go, declarations that contradict each other, limits, and leaders that change.
"""

from __future__ import annotations

from msgspec.structs import replace

from gangsched.core.objects.declaration import GroupKey, Role
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.podgroup import OnDegraded, TimeoutPolicy
from gangsched.core.objects.policy import NamespaceLimits, Policy
from tests.builders import claim, group, node, pod, shape
from tests.effort import seeded
from tests.harness import Harness
from tests.walks import FAST, OWNER, Happens, Walk

NAMES = ("a", "b")


class LifeWalk(Walk):
    """Two groups, with a template or none, whose pods have a controller and perhaps volumes."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        draw = self.random
        policy = Policy(
            default_max_schedule_time_s=draw.choice((20.0, 300.0)),
            pre_bind_timeout_s=draw.choice((12.0, 600.0)),
            max_hold_s=draw.choice((15.0, 600.0)),
            namespace_limits=draw.choice((NamespaceLimits(), NamespaceLimits(waiting_groups=1))),
        )
        self.harness = Harness(policy)
        self.harness.refuse_bind = self.refuse
        self.harness.disks.busy = draw.random() < 0.8
        self.harness.add(FAST)
        self.harness.add(*(node(f"n{at}", cpu=draw.randint(1, 4)) for at in range(4)))
        self.least: dict[str, int] = {}
        for name in NAMES:
            self.declare(name)

    def declare(self, name: str) -> None:
        draw = self.random
        self.least[name] = draw.randint(1, 4)
        roles = (Role("w", self.least[name], template=shape(1)),) if draw.random() < 0.4 else ()
        self.harness.add(
            group(
                name,
                min_member=self.least[name],
                roles=roles,
                uid=f"uid-{name}-{self.made}",
                created=self.harness.now,
                on_degraded=draw.choice([*OnDegraded]),
                timeout_policy=draw.choice([TimeoutPolicy.RETRY, TimeoutPolicy.RETRY, TimeoutPolicy.FAIL]),
            )
        )

    def members(self, name: str) -> list[str]:
        several = (each for each in self.harness.pods.values() if each.declaration is not None)
        return [f"default/{each.name}" for each in several if each.declaration and each.declaration.group == name]

    def control(self) -> None:
        """Create a member, or all that are missing, or delete some."""
        name = self.random.choice(NAMES)
        there = self.members(name)
        if self.random.random() < 0.3:
            self.harness.delete(*(each for each in there if self.random.random() < 0.5))
        for _ in range(self.random.choice((1, max(1, self.least[name] - len(there))))):
            self.made += 1
            member, volumes = f"{name}-{self.made}", []
            if self.random.random() < 0.8:
                volumes = [member]
                self.harness.add(claim(f"default/{member}", storage_class="fast", uid=f"claim-{member}"))
            found = self.harness.groups.get(GroupKey("default", name))
            role = "w" if found is not None and found.spec is not None and found.spec.roles else ""
            made = pod(member, group=name, role=role, owner=OWNER, created=self.harness.now, volume_claims=volumes)
            self.harness.add(made)

    def change(self) -> None:
        """Somebody changes a PodGroup, deletes it, or makes it again."""
        name = self.random.choice(NAMES)
        if GroupKey("default", name) not in self.harness.groups:
            self.declare(name)
        elif self.random.random() < 0.3:
            self.harness.delete_group(f"default/{name}")
        else:
            self.least[name] = max(1, self.least[name] + self.random.choice((-1, 1)))
            self.harness.change_spec(f"default/{name}", min_member=self.least[name])

    def contradict(self) -> None:
        """A member says something else than the others, or the same again."""
        several = [each for each in self.harness.pods.values() if each.declaration is not None and each.owner == OWNER]
        for each in several[:1]:
            if each.declaration is not None:
                least = None if each.declaration.min_member else 7
                self.harness.add(replace(each, declaration=replace(each.declaration, min_member=least)))

    def bind_elsewhere(self) -> None:
        """Another scheduler binds a member to a node on which nothing is reserved."""
        taken = {*self.harness.machine.cluster.on_node, *(each.node for each in self.harness.pods.values())}
        free = [name for name in sorted(self.harness.nodes) if name not in taken]
        waiting = [each for each in self.harness.pods.values() if not each.node and not each.terminal and each.owner]
        if free and waiting:
            self.harness.change(f"default/{self.random.choice(waiting).name}", node=free[0])

    def end(self) -> None:
        """Members end, well or badly."""
        phase = self.random.choice((PodPhase.SUCCEEDED, PodPhase.FAILED))
        for each in [*self.harness.pods.values()]:
            if each.node and each.owner == OWNER and not each.terminal and self.random.random() < 0.4:
                self.harness.change(f"default/{each.name}", phase=phase)

    def renew_nodes(self) -> None:
        """A node goes with its pods staying, or one comes."""
        if len(self.harness.nodes) > 1 and self.random.random() < 0.4:
            self.harness.delete_node(self.random.choice(sorted(self.harness.nodes)))
        else:
            self.made += 1
            self.harness.add(node(f"m{self.made}", cpu=self.random.randint(1, 4)))

    def provision(self) -> None:
        """The provisioner becomes busy, or goes on."""
        self.harness.disks.busy = not self.harness.disks.busy

    def happens(self) -> tuple[Happens, ...]:
        leaders = ((5, self.harness.restart), (3, self.harness.lead_again))
        others = ((4, self.contradict), (20, self.bind_elsewhere), (5, self.end), (8, self.renew_nodes))
        return *leaders, *others, (6, self.change), (3, self.provision), (20, self.control)


@seeded(120)
def test_the_machine_rests_and_contradicts_itself_nowhere_whatever_happens_to_gangs(seed):
    """The harness fails an exception in a gang's logic, a call that is due at once for ever, and wrong accounts."""
    walk = LifeWalk(seed)
    for _ in range(40):
        walk.step()
    walk.harness.disks.busy = False
    walk.calm(5)
    assert walk.harness.machine.validate() == []
