"""Pods that fail at once, and the growing pause that follows on the node, or everywhere.

A controller replaces such a pod at once, so without a pause the loop of binding and failing would be as fast as the
controller. It does not matter whether the kubelet rejected the pod or its containers ended: the next pod of the same
maker probably fails there too. A maker is a group, or the controller of pods without a group; other makers are not
affected. The pause on a node doubles with each further failure there, and at most MOST_FAILURES pods of a maker fail on
it within WINDOW_S, unless a single attempt has more. If pods of the maker have failed on several nodes and ran on none,
the cause is probably in the pods, and the pause holds everywhere.

What ends it: pods that run there for longer than AT_ONCE_S, or another spec of the PodGroup. Pods of a template of
which none has failed are not affected. A change of the node lets the maker try again as soon as MOST_FAILURES permits.
After a restart it is learned again from the failed pods that still exist.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable

from msgspec import Struct, field

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.duration import doubled, format_duration
from gangsched.core.objects.indexes import drop_oldest
from gangsched.core.objects.pause import OPEN, Pause
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.wording import first_named

AT_ONCE_S = 10.0
"""A pod whose containers ran for no longer than this, in seconds, before it failed has failed at once."""
FIRST_S = 10.0
LONGEST_S = 1920.0
"""The first pause in seconds, and the longest. Failures are remembered for another LONGEST_S."""
MOST_FAILURES = 5
WINDOW_S = 310.0
"""At most so many pods of a maker fail on a node within this time, in seconds, unless a single attempt has more. It is
somewhat more than five minutes, because the API server writes times in whole seconds and kubelets take a moment."""
TRIAL_S = 15.0
"""After a pause, pods without a group are tried there one by one, this many seconds apart, until one runs."""
MOST_MAKERS = 10_000
MOST_NODES = 100
MOST_TEMPLATES = 16
MOST_PODS = 10_000
"""Bounds on what is remembered: makers, nodes and templates of a maker, and failed pods. Beyond them, the oldest are
dropped."""
NAMED = 3
"""Maximum number of nodes that a message names."""
_REVISIONS = frozenset({"controller-revision-hash", "pod-template-hash"})
Maker = Hashable


def failed_at_once(pod: Pod) -> bool:
    """Whether the kubelet rejected the pod, or it failed after its containers had run for at most AT_ONCE_S."""
    if pod.phase is not PodPhase.FAILED or not pod.node:
        return False
    return pod.rejected or (pod.failure is not None and pod.failure.ran_s <= AT_ONCE_S)


def failed_when(pod: Pod) -> float:
    """When the pod failed at once, in epoch seconds, as far as it says; infinity for other pods."""
    if not failed_at_once(pod):
        return float("inf")
    return (pod.failure.at if pod.failure is not None else 0.0) or pod.bound_at


def maker_of(pod: Pod) -> Maker:
    """What makes the pod, and would replace it: its group, else its controller, else whoever uses its name."""
    if pod.declaration is not None:
        return GroupKey(pod.namespace, pod.declaration.group)
    return pod.owner.uid if pod.owner is not None else (pod.namespace, pod.name)


def _template_of(pod: Pod) -> Hashable:
    """What all pods of one template have in common, and pods of another one probably have not."""
    workload = pod.workload.identity if pod.workload is not None else pod.owner
    return pod.shape, workload, tuple(label for label in pod.labels if label[0] in _REVISIONS)


class _Failing(Struct):
    """Failures in one place, which is closed `until` then, for the `times`-th time in a row.

    A pod is on `trial` until that time, and no other one is bound meanwhile. `recent` are the times of the last few, in
    epoch seconds, and `batch` is how many the last attempt had.
    """

    until: float = 0.0
    trial: float = 0.0
    times: int = 0
    batch: int = 0
    recent: list[float] = field(default_factory=list)

    def add(self, at: float) -> None:
        """A pod has failed: begin a pause, or prolong that of the same attempt."""
        if at >= self.until:
            self.times, self.batch = self.times + 1, 0
        self.batch += 1
        self.trial = 0.0
        self.recent = sorted([*(earlier for earlier in self.recent if earlier > at - WINDOW_S), at])[-MOST_FAILURES:]
        self.until = max(at + doubled(FIRST_S, self.times, longest=LONGEST_S), self.permitted)

    @property
    def permitted(self) -> float:
        """When an attempt of the same size, in epoch seconds, exceeds MOST_FAILURES no more."""
        beyond = min(len(self.recent) + self.batch - MOST_FAILURES, len(self.recent))
        return self.recent[beyond - 1] + WINDOW_S if beyond > 0 else 0.0

    def forgive(self, now: float) -> None:
        """Pods run here: end the pause, unless even one more failure would exceed MOST_FAILURES."""
        self.times, self.batch, self.trial = 0, 1, 0.0
        self.shorten(now)

    def shorten(self, now: float) -> None:
        """End the pause as soon as MOST_FAILURES permits."""
        self.until = min(self.until, max(now, self.permitted))

    @property
    def closed_until(self) -> float:
        """When the next pod may be bound, in epoch seconds."""
        return max(self.until, self.trial)

    @property
    def lasts_s(self) -> float:
        """The length of the pause, in seconds, from the last failure."""
        return self.until - self.recent[-1]


class _Record(Struct):
    """What is known of a maker: the `templates` of its pods that have failed, and their failures by node and in all.

    `started` is when pods last started on a node where none has failed since, `message` that of the last failed one,
    and `waiting` are the gangs that wait because of it.
    """

    templates: dict[Hashable, None] = field(default_factory=dict)
    nodes: dict[str, _Failing] = field(default_factory=dict)
    everywhere: _Failing = field(default_factory=_Failing)
    started: dict[str, float] = field(default_factory=dict)
    message: str = ""
    waiting: dict[GroupKey, None] = field(default_factory=dict)

    def sound(self, now: float) -> list[str]:
        """The nodes on which pods of the maker run: none has failed at once since they started."""
        return [node for node, at in self.started.items() if at + AT_ONCE_S <= now]

    def doubtful(self, now: float) -> bool:
        """Whether the cause is probably in the pods: they failed on several nodes, and lately ran on none."""
        failing = sum(place.times > 0 for place in self.nodes.values())
        return failing > 1 and not any(now <= self.started[node] + WINDOW_S for node in self.sound(now))

    def forgive(self, now: float) -> None:
        """Pods of the maker run: nothing is wrong on their nodes any more, and hardly with the pods."""
        sound = self.sound(now)
        for node in sound:
            if node in self.nodes:
                self.nodes[node].forgive(now)
        if any(self.started[node] > self.everywhere.recent[-1] for node in sound):
            self.everywhere.forgive(now)

    def decided_at(self, now: float) -> float:
        """When the first of the pods that have just started will have run for long enough, in epoch seconds."""
        return min((at + AT_ONCE_S for at in self.started.values() if at + AT_ONCE_S > now), default=float("inf"))


class Failures:
    """The makers whose pods have failed at once; `eased` are gangs whose pause may have ended early since."""

    def __init__(self) -> None:
        self._now = 0.0
        self._records: dict[Maker, _Record] = {}
        self._failing_on: dict[str, dict[Maker, None]] = {}
        self._counted: dict[str, None] = {}
        self.eased: dict[GroupKey, None] = {}

    def note_time(self, now: float) -> None:
        """Set the present time, in epoch seconds."""
        self._now = now

    def prune(self) -> None:
        """Forget makers whose last pause ended long ago."""
        ended = self._now - LONGEST_S
        self._records = {maker: record for maker, record in self._records.items() if record.everywhere.until > ended}
        self._failing_on = {}
        for maker, record in self._records.items():
            for node in record.nodes:
                self._failing_on.setdefault(node, {})[maker] = None

    def failed(self, pod: Pod, at: float | None = None) -> None:
        """The pod has failed at once, `at` this time in epoch seconds, or now. Repeated reports of it count once."""
        at = self._now if at is None else min(at, self._now)
        if pod.uid in self._counted or at + LONGEST_S < self._now:
            return
        self._counted[pod.uid] = None
        drop_oldest(self._counted, MOST_PODS)
        maker = maker_of(pod)
        self._records[maker] = record = self._records.pop(maker, None) or _Record()
        drop_oldest(self._records, MOST_MAKERS)
        if record.nodes:
            record.forgive(at)
        record.templates[_template_of(pod)] = None
        drop_oldest(record.templates, MOST_TEMPLATES)
        record.started.pop(pod.node, None)
        record.nodes.setdefault(pod.node, _Failing()).add(at)
        record.everywhere.add(at)
        self._failing_on.setdefault(pod.node, {})[maker] = None
        record.message = pod.failure.message if pod.failure is not None else "the kubelet rejected it"
        drop_oldest(record.nodes, MOST_NODES)

    def started(self, pod: Pod, at: float | None = None) -> None:
        """The pod runs, since this time in epoch seconds, or now; if it goes on, that ends the pause on its node."""
        record, at = self._records.get(maker_of(pod)), self._now if at is None else at
        if record is None or (pod.node in record.nodes and at < record.nodes[pod.node].recent[-1]):
            return
        if pod.node not in record.started:
            self.eased |= record.waiting
        record.started[pod.node] = max(at, record.started.get(pod.node, 0.0))
        drop_oldest(record.started, MOST_NODES)

    def tried(self, pod: Pod, node: str) -> None:
        """A pod without a group is about to be bound: the maker's other pods wait until it runs or fails."""
        record = self._records.get(maker_of(pod))
        for failing in (record.nodes.get(node), record.everywhere) if record is not None else ():
            if failing is not None:
                failing.trial = self._now + TRIAL_S

    def closed(self, key: GroupKey, live: Callable[[], Iterable[Pod]]) -> Pause:
        """Where those of the gang's live pods that wait may not be bound now; `take_eased` tells if that may change."""
        pods = [pod for pod in live() if not pod.node] if self._records else []
        record = self._records.get(maker_of(pods[0])) if pods else None
        if record is None or record.templates.keys().isdisjoint(map(_template_of, pods)):
            return OPEN
        record.forgive(now := self._now)
        nodes = {node: failing for node, failing in record.nodes.items() if failing.closed_until > now}
        everywhere = record.everywhere.closed_until > now and record.doubtful(now)
        failed_on, again = (
            frozenset(node for node, failing in record.nodes.items() if failing.times > times) for times in (0, 1)
        )
        if not (nodes or everywhere):
            return Pause(doubted=failed_on, failed_again=again)
        record.waiting[key] = None
        drop_oldest(record.waiting, MOST_PODS)
        closing = [record.everywhere] if everywhere else [*nodes.values()]
        until = min(record.decided_at(now), *(failing.closed_until for failing in closing))
        lasts_s = max(failing.lasts_s for failing in closing)
        note = _note(sorted(failed_on if everywhere else nodes), record.message, lasts_s, everywhere=everywhere)
        return Pause(frozenset(nodes), until, note, everywhere=everywhere, doubted=failed_on, failed_again=again)

    def forget(self, maker: Maker) -> None:
        """The maker's spec has changed."""
        record = self._records.pop(maker, None)
        self.eased |= record.waiting if record is not None else {}

    def node_changed(self, node: str) -> None:
        """The node has changed, so pods may be accepted there."""
        for maker in self._failing_on.pop(node, ()):
            record = self._records.get(maker)
            if record is not None and (failing := record.nodes.get(node)) is not None:
                for place in (failing, record.everywhere):
                    place.shorten(self._now)
                self.eased |= record.waiting
                record.waiting = {}

    def take_eased(self, gangs: Container[GroupKey]) -> list[GroupKey]:
        """Those of these gangs whose pause may have ended early since the last call."""
        eased, self.eased = self.eased, {}
        return [key for key in eased if key in gangs]


def _note(nodes: list[str], message: str, lasts_s: float, *, everywhere: bool) -> str:
    """Where pods failed and how, without a full stop."""
    named = first_named(nodes, NAMED)
    which = f"node {named}" if len(nodes) == 1 else f"nodes {named}"
    where = "anywhere" if everywhere else "there"
    return (
        f'Such pods failed at once on {which}, the last with "{message}", so none is bound {where} for '
        f"{format_duration(round(lasts_s))}, longer each time: find the cause on the node or in the pods; a change of "
        "either ends this"
    )
