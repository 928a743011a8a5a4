"""Several installations of gangsched on one in-memory API server, whose events reach every installation."""

from __future__ import annotations

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import Event, Synced
from gangsched.core.objects.policy import Policy
from tests.harness import Harness

_SHARED = ("pods", "nodes", "groups", "foreign", "namespaces")


class Installation(Harness):
    """One installation, with its own machine; `peers` holds all of them, in the order of their creation."""

    def __init__(self, *names: str, beside: Installation | None = None, seed: int | None = None) -> None:
        super().__init__(Policy(scheduler_names=names), seed=seed)
        self.peers: list[Installation] = [self]
        if beside is not None:
            for what in _SHARED:
                setattr(self, what, getattr(beside, what))
            self.peers = [*beside.peers, self]
            for each in self.peers:
                each.peers = self.peers
            self.now = beside.now
            self.inbox = []
            self._hand_over([*self.lists(), Synced()])
        self._version = 1_000_000 * len(self.peers)

    def report(self, event: Event) -> None:
        for each in getattr(self, "peers", [self]):
            Harness.report(each, event)

    def settle_all(self, *, rounds: int = 2000) -> None:
        """Step the installations in turn until nothing more happens at the current time."""
        for _ in range(rounds):
            busy = [each for each in self.peers if each.busy()]
            if not busy:
                for each in self.peers:
                    each.check_accounts()
                return
            for each in busy:
                each.step()
        raise AssertionError(f"no rest after {rounds} rounds")

    def answer(self, effect: BindPod) -> None:
        """A binding in flight arrives."""
        self._bind(effect)

    def busy(self) -> bool:
        """Whether something has arrived, or is due."""
        deadline = self.machine.next_deadline()
        return bool(self.inbox) or (deadline is not None and deadline <= self.now)

    def wait_all(self, seconds: float) -> None:
        """Let time pass for all installations, stopping at every deadline."""
        end = self.now + seconds
        self.settle_all()
        while (moment := min(each.next_moment() for each in self.peers)) <= end:
            for each in self.peers:
                each.now = max(each.now, moment)
            self.settle_all()
            check_owners(self)
        for each in self.peers:
            each.now = max(each.now, end)
        self.settle_all()
        check_owners(self)

    def has(self, name: str) -> bool:
        """Whether the group is this installation's."""
        return GroupKey(*name.split("/")) in self.machine.gangs


def check_owners(one: Installation) -> None:
    """Check that at rest each group has one owner, or its scheduler name has no installation; all must agree on it."""
    keys = {*one.groups, *(key for each in one.peers for key in each.machine.gangs if not key.pod_uid)}
    for key in keys:
        owners = [each for each in one.peers if key in each.machine.gangs]
        assert len(owners) <= 1, f"{key} has {len(owners)} owners"
        others = [each for each in one.peers if each not in owners]
        said = {
            found.owner for each in others if (found := each.machine.elsewhere(key.namespace, key.name)) is not None
        }
        assert len(said) <= 1, f"{key} belongs to {said}"
        served = {name: each for each in one.peers for name in each.policy.scheduler_names}
        if owners and said:
            assert served[said.pop()] is owners[0]
        elif not owners:
            assert not said & served.keys(), f"{key} belongs to {said}, and has no owner"
