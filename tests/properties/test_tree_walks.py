"""Random walks of trees whose minima change while bindings fail, leaders change and other pods come and go."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from msgspec.structs import replace

from gangsched.core.objects.declaration import COMPOSITE, NATIVE, GroupKey
from gangsched.core.objects.effects import EvictPod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.results import EvictionRefused, Spared
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import claim, node
from tests.effort import seeded
from tests.trees import members_of
from tests.walks import FAST, OWNER, Happens, Walk


def served(dialect: str, name: str, parent: str, least: int | None, generation: int) -> ForeignGroup:
    """The object as a server shows it that serves conditions."""
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": generation}
    key = "minCount" if dialect == NATIVE else "minGroupCount"
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {key: least}} if least is not None else {"basic": {}}}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    body = {"metadata": meta | {"creationTimestamp": "1970-01-12T13:46:30Z"}, "spec": spec, "status": {}}
    return DEFAULT.kinds[dialect].read(dialect, json.dumps(body).encode(), "v1beta1")[1]


class TreeWalk(Walk):
    """A tree of two to four groups, perhaps with one below another, whose pods have a controller.

    Either leaders change or evictions are refused: a new leader does not know of which part a former one has evicted
    some members only.
    """

    rival_leaves = 0.4

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        draw = self.random
        names = [f"g{at}" for at in range(draw.randint(2, 4))]
        self.generation = 1
        self.below = names[:2] if draw.random() < 0.3 else []
        self.least = {name: draw.randint(1, 4) for name in names}
        self.lowest = dict(self.least)
        self.wanted = {name: draw.choice((least, least, least + 1, 0)) for name, least in self.least.items()}
        self.volumes = draw.choice((0.0, 0.0, 0.5))
        self.harness.add(FAST)
        self.needed = draw.randint(1, max(1, len(names) - bool(self.below)))
        self.harness.add(served(COMPOSITE, "root", "", self.needed, 1))
        if self.below:
            self.harness.add(served(COMPOSITE, "sub", "root", draw.choice((None, 1, 2)), 1))
        self.harness.add(*(served(NATIVE, name, self.parent(name), self.least[name], 1) for name in names))
        total = sum(self.wanted.values())
        self.harness.add(*(node(f"n{at}", cpu=max(1, (total + draw.randint(-2, 4)) // 3)) for at in range(3)))
        self.leaders_change = draw.random() < 0.7
        self.harness.refuse_eviction = self.refuse_eviction

    def parent(self, name: str) -> str:
        return "sub" if name in self.below else "root"

    def refuse_eviction(self, effect: EvictPod) -> EvictionRefused | None:
        why = self.random.choice((Spared.BUDGET, Spared.UNAVAILABLE))
        refused = not self.leaders_change and self.random.random() < 0.4
        return EvictionRefused(effect.uid, why, "not now") if refused else None

    def control(self) -> None:
        """Replace what is gone or leaving."""
        there = Counter(name_of(each.name) for each in self.harness.pods.values() if not each.terminating)
        for name, wanted in self.wanted.items():
            for _ in range(wanted - there[name]):
                self.made += 1
                like: dict[str, Any] = {"created": float(int(self.harness.now)), "owner": OWNER}
                if self.random.random() < self.volumes:
                    like["volume_claims"] = [f"{name}-{self.made}"]
                    self.harness.add(claim(f"default/{name}-{self.made}", storage_class="fast"))
                self.harness.add(*members_of(name, 1, first=self.made, **like))

    def change_minimum(self) -> None:
        """Raise or lower the minimum of one group or of the root."""
        self.generation += 1
        if self.random.random() < 0.3:
            self.needed = max(1, min(len(self.least), self.needed + self.random.choice((-1, 1))))
            self.harness.add(served(COMPOSITE, "root", "", self.needed, self.generation))
            return
        name = self.random.choice(sorted(self.least))
        self.least[name] = max(1, self.least[name] + self.random.choice((-1, 1, 1, 2)))
        self.lowest[name] = min(self.lowest[name], self.least[name])
        self.wanted[name] = max(self.wanted[name], self.least[name])
        before = self.harness.foreign[NATIVE, GroupKey("default", name)]
        changed = served(NATIVE, name, self.parent(name), self.least[name], self.generation)
        assert before.phase is not None
        phase = replace(before.phase, generation=self.generation)
        self.harness.add(replace(changed, created=before.created, phase=phase))

    def lose(self) -> None:
        """All pods of a part are gone. Its controller makes them again, perhaps more, or its PodGroup goes as well."""
        name = self.random.choice(sorted(self.least))
        lost = [f"default/{each.name}" for each in self.harness.pods.values() if name_of(each.name) == name]
        self.harness.delete(*lost)
        what = self.random.random()
        if what < 0.25 and len(self.least) > 2:
            self.harness.delete_foreign(NATIVE, f"default/{name}")
            for those in (self.least, self.lowest, self.wanted):
                del those[name]
        else:
            self.wanted[name] = 0 if what < 0.5 else self.least[name] + self.random.choice((0, 1, 1))

    def provision(self) -> None:
        """The provisioner becomes busy, or goes on."""
        self.harness.disks.busy = not self.harness.disks.busy

    def missing(self) -> set[str]:
        """The parts that could be bound and are not, in a tree that needs no more than there are."""
        whole = {name for name, wanted in self.wanted.items() if wanted >= self.least[name]}
        return {name for name in whole if self.bound()[name] < self.least[name]} if len(whole) >= self.needed else set()

    def happens(self) -> tuple[Happens, ...]:
        leaders = ((15 * self.leaders_change, self.harness.restart), (7 * self.leaders_change, self.lead_again))
        return *leaders, (14, self.rival), (14, self.change_minimum), (8, self.lose), (5, self.provision)

    def bound(self) -> Counter[str]:
        return Counter(name_of(each.name) for each in self.harness.pods.values() if each.node and not each.terminating)


def name_of(pod_name: str) -> str:
    return pod_name.rsplit("-", 1)[0]


@seeded(200)
def test_a_part_is_bound_whole_or_not_at_all_whatever_happens_to_a_tree(seed):
    """A part whose minimum was raised keeps what it had before; with room for all, all whole ones are bound."""
    walk = TreeWalk(seed)
    walk.control()
    for _ in range(25):
        walk.step()
    walk.harness.disks.busy = False
    walk.calm(60)
    walk.harness.settle(node("large", cpu=60))
    walk.calm(60)
    bound = walk.bound()
    assert walk.below or walk.missing() == set()
    assert {name for name, least in walk.lowest.items() if 0 < bound[name] < least} == set()
