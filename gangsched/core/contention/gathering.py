"""Gathers who may leave: the share of each gang and pod is kept, and found anew only when something of it has changed.

Law: whatever has happened, what is kept is what would be found from nothing. So each change is noted, or is found by
`_find_changes`: of claims in the ledger's journal, of gangs by `note` (those that a call has looked at, or that are
gone) and in `Dirty` (those that it has yet to look at), of disruption budgets and open plans by comparison.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain, islice

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.contention.pool import Obstacle, Pool
from gangsched.core.contention.units import Share, Shares
from gangsched.core.gang.assessment import Assessment
from gangsched.core.membership.installations import group_of
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.shape import Requirement
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.removable import Removable

_LOOKED_AT, _OF_GANG, _INDEXED, _COPIED = 30, 80, 30, 1
"""Cost, in units of the budget, of looking at a claim, of finding out what of its gang may leave, of its place in the
index, and of copying that of another one."""
_AT_ONCE = 200
"""So many changes are looked at before the call may end."""
_INDEXED_AT_ONCE = 20_000
"""The units of so many claims are put into the index at once, unless nodes have changed, for which all are."""
_NOTHING = Share()
_FOLLOWER = "Gathering"

_Owner = GroupKey | str
"""A gang, or the UID of a pod that is in none."""


class Gathering:
    """All shares, and the pool that follows from them; `version` grows with each pool.

    It `follows` the ledger's journal until it is to `rest`. Without that it is good for one moment.
    """

    def __init__(
        self,
        cluster: Cluster,
        members: Members,
        assessments: Mapping[GroupKey, Assessment],
        policy: Policy,
        *,
        follows: bool = False,
    ) -> None:
        if follows:
            cluster.ledger.journal.take(_FOLLOWER)
        self._unseen = dict.fromkeys(cluster.ledger.claims)
        self.version = 0
        self._follows = follows
        self._cluster = cluster
        self._members = members
        self._sources = assessments, policy
        self._shares = Shares(cluster, assessments, policy, members.foreign)
        self._kept: dict[_Owner, Share] = {}
        self._claims: dict[_Owner, dict[str, Claim]] = {}
        self._owners: dict[str, _Owner] = {}
        self._terminating: dict[str, Claim] = {}
        # When these should be gone, of those of whom that is known.
        self._gone_by: dict[str, float] = {}
        self._leaving: dict[_Owner, tuple[Claim, ...]] = {}
        self._others_leave = True
        self._stale: dict[_Owner, None] = {}
        self._promised: frozenset[str] = frozenset()
        self._drawing: dict[str, tuple[tuple[Requirement, ...] | None, bool]] = {}
        self._budgets_seen = self._jobs_seen = 0
        self._obstacles: Counter[Obstacle] = Counter()
        # Those whose members may belong elsewhere by now.
        self._noted: dict[GroupKey, None] = {}
        # The shares that are part of the pool, where they differ from those that are kept.
        self._pooled: dict[_Owner, Share] = {}
        self._pool = Pool(Removable.of(cluster, ()), {}, {}, float("inf"), {}, cluster.node_changes)

    def note(self, key: GroupKey) -> None:
        """Something may have changed about this gang, or it is gone."""
        if key in self._claims:
            self._stale[key] = self._noted[key] = None

    def rest(self) -> None:
        """Follow nothing any more."""
        self._cluster.ledger.journal.forget(_FOLLOWER)

    @property
    def is_stale(self) -> bool:
        """Whether something has been noted since the pool was found."""
        return bool(self._stale)

    def pool(self, budget: Budget) -> Pool | None:
        """All that may leave at present; None if the budget has ended before that was found."""
        self._find_changes()
        for charge in chain(self._look_at_claims(), self._find_shares(), self._index()):
            budget.charge(charge)
            if not budget and (self._unseen or self._stale or self._pooled):
                return None
        pool = self._renewed()
        return pool if budget else None

    def _find_changes(self) -> None:
        """Note changes of which nobody tells."""
        ledger, budgets = self._cluster.ledger, self._cluster.budgets
        if self._follows:
            self._unseen.update(dict.fromkeys(ledger.journal.take(_FOLLOWER) or ()))
        for key in self._members.dirty:
            self.note(key)
        promised = ledger.promised()
        if promised is not self._promised:
            self._stale.update((self._owners[uid], None) for uid in promised ^ self._promised if uid in self._owners)
            self._promised = promised
        if self._members.foreign.jobs != self._jobs_seen:
            self._jobs_seen = self._members.foreign.jobs
            of_jobs = (
                owner for owner, claims in self._claims.items() if any(_is_of_job(claim) for claim in claims.values())
            )
            self._stale.update(dict.fromkeys(of_jobs))
        if budgets.changes != self._budgets_seen:
            before, self._budgets_seen = self._drawing, budgets.changes
            self._drawing = {budget.key: (budget.selector, budget.counts_unready) for budget in budgets.all()}
            keys = before.keys() | self._drawing.keys()
            spaces = {key.partition("/")[0] for key in keys if before.get(key) != self._drawing.get(key)}
            for owner, claims in self._claims.items() if spaces else ():
                if next(iter(claims.values())).pod.namespace in spaces:
                    self._stale[owner] = None

    def _look_at_claims(self) -> Iterator[int]:
        """Find out whose the claims are that have changed; yields what it takes of the budget."""
        while self._unseen:
            uids = [self._unseen.popitem()[0] for _ in range(min(_AT_ONCE, len(self._unseen)))]
            for uid in uids:
                self._look_at_claim(uid)
            yield _LOOKED_AT * len(uids)

    def _look_at_claim(self, uid: str) -> None:
        owner = self._owners.pop(uid, None)
        if owner is not None:
            self._stale[owner] = None
            del self._claims[owner][uid]
        elif self._terminating.pop(uid, None) is not None:
            self._others_leave = True
            self._gone_by.pop(uid, None)
        claim = self._cluster.ledger.claims.get(uid)
        if claim is None or not claim.counts:
            return
        if claim.pod.terminating:
            self._terminating[uid], self._others_leave = claim, True
            if claim.pod.gone_by:
                self._gone_by[uid] = claim.pod.gone_by
            return
        owner = self._owners[uid] = self._owner_of(claim.pod)
        self._claims.setdefault(owner, {})[uid] = claim
        self._stale[owner] = None

    def _owner_of(self, pod: Pod) -> _Owner:
        """Whose the pod is; a placeholder is its group's even while that has no gang."""
        gang = self._members.gang_of(pod.uid)
        if gang is not None:
            return gang.key
        return group_of(pod) if pod.declaration is not None and not pod.name else pod.uid

    def _find_shares(self) -> Iterator[int]:
        """Find the shares of those about which something has changed."""
        for key in self._noted:
            for uid, claim in [*self._claims.get(key, {}).items()]:
                if self._owner_of(claim.pod) != key:
                    self._look_at_claim(uid)
        self._noted.clear()
        while self._stale:
            spent = 0
            for owner in [*islice(self._stale, _AT_ONCE)]:
                spent += _OF_GANG * (1 + len(self._claims.get(owner, ())))
                self._keep(owner)
                del self._stale[owner]
            yield spent

    def _keep(self, owner: _Owner) -> None:
        claims, share = self._claims.get(owner), _NOTHING
        if not claims:
            self._claims.pop(owner, None)
        elif isinstance(owner, str):
            share = self._shares.of_pod(claims[owner], self._promised)
        elif owner in self._members.gangs:
            share = self._shares.of_gang(self._members.gangs[owner], [*claims.values()], self._promised)
        before = self._kept.get(owner, _NOTHING)
        self._others_leave |= share.leaving != self._leaving.get(owner, ())
        if share.leaving:
            self._leaving[owner] = share.leaving
        else:
            self._leaving.pop(owner, None)
        if share == before:
            return
        if share.obstacles != before.obstacles:
            self._obstacles.subtract(dict(before.obstacles))
            self._obstacles.update(dict(share.obstacles))
        if (share.units, share.victims) != (before.units, before.victims):
            self._pooled.setdefault(owner, before)
        if share != _NOTHING:
            self._kept[owner] = share
        else:
            del self._kept[owner]

    def _index(self) -> Iterator[int]:
        """Put into the pool what has changed since it was found; yields what it takes of the budget."""
        while self._pooled or self._pool.nodes != self._cluster.node_changes:
            pool, nodes, claims, changed = self._pool, self._cluster.node_changes, 0, dict[_Owner, Share]()
            while self._pooled and (claims < _INDEXED_AT_ONCE or pool.nodes != nodes):
                owner, share = self._pooled.popitem()
                changed[owner] = share
                claims += len(self._claims.get(owner, ()))
            new = [self._kept.get(owner, _NOTHING) for owner in changed]
            gone = [unit.name for share in changed.values() for unit in share.units]
            victims = {**pool.victims}
            for name in gone:
                del victims[name]
            for share in new:
                victims.update(zip((unit.name for unit in share.units), share.victims, strict=True))
            if pool.nodes == nodes:
                removable = pool.removable.changed(gone, [unit for share in new for unit in share.units])
            else:
                removable = Removable.of(self._cluster, [unit for share in self._kept.values() for unit in share.units])
            self._pool = pool._replace(removable=removable, victims=victims, nodes=nodes)
            self.version += 1
            yield _INDEXED * claims + _COPIED * len(self._owners)

    def _renewed(self) -> Pool:
        """The pool, into which everything has been put, with the pods that leave at present."""
        if self._others_leave:
            self._others_leave = False
            leaving = {**self._terminating}
            for claims in self._leaving.values():
                leaving.update([(claim.pod.uid, claim) for claim in claims])
            if self._pool.leaving != leaving:
                self.version += 1
                gone_by = min(self._gone_by.values(), default=float("inf"))
                self._pool = self._pool._replace(leaving=leaving, gone_by=gone_by)
        if self._pool.obstacles != self._obstacles:
            self._pool = self._pool._replace(obstacles=+self._obstacles)
        return self._pool

    def whole(self) -> Pool:
        """All that may leave at present."""
        self._find_changes()
        for _ in chain(self._look_at_claims(), self._find_shares(), self._index()):
            pass
        return self._renewed()

    def validate(self) -> list[str]:
        """Contradictions, each as a sentence."""
        kept, anew = self.whole(), Gathering(self._cluster, self._members, *self._sources).whole()
        pairs = (
            ("units", kept.removable.units, anew.removable.units),
            ("index of units", kept.removable.facts(), anew.removable.facts()),
            ("victims", kept.victims, anew.victims),
            ("pods that leave", kept.leaving, anew.leaving),
            ("obstacles", kept.obstacles, anew.obstacles),
        )
        return [f"who may leave: the {part} kept differ from those of now" for part, old, new in pairs if old != new]


def _is_of_job(claim: Claim) -> bool:
    owner = claim.pod.owner
    return owner is not None and owner.kind == "Job"
