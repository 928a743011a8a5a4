"""What is seen of a gang: who declares it, its members and owners, and what its workload wants."""

from __future__ import annotations

from dataclasses import dataclass, field

from gangsched.core.declarations.ownership import UNDISPUTED, Ownership
from gangsched.core.declarations.waves import Wave
from gangsched.core.declarations.workloads import Idle
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group


@dataclass(slots=True)
class Observed:
    """Nothing in it is remembered: after a restart the lists show the same. Changed by its methods alone.

    `group` is the PodGroup, `resource_version` its version, also of one that another reader has seen first. `pods` are
    the members and `strangers` pods that only name the gang, both by UID. `ownership` says which owners claim the gang.
    Of the workload in the record, `wave` is what it still owes if its pods come in waves, and `idle` says why it wants
    none, None if it does. `all_anew`: when a member is lost it makes all of them anew. `comes_back`: all were lost and
    have been made again, and the quorum is planned before others (`core.membership.restarts`). `contradicted`: members
    declare the gang differently (contract rule 15). `complete_since` is when its last member was seen, `short_since`
    since when a scheduled gang has been below its minimum; 0.0 if it is not complete or not short.
    """

    group: Group | None = None
    resource_version: str = ""
    pods: dict[str, Pod] = field(default_factory=dict)
    strangers: dict[str, Pod] = field(default_factory=dict)
    ownership: Ownership = UNDISPUTED
    wave: Wave | None = None
    idle: Idle | None = None
    all_anew: bool = False
    comes_back: bool = False
    contradicted: bool = False
    complete_since: float = 0.0
    short_since: float = 0.0

    @property
    def empty(self) -> bool:
        """Whether no pod names the gang."""
        return not (self.pods or self.strangers)

    def declare(self, group: Group | None) -> None:
        """This PodGroup declares the gang from now on; None: none does."""
        self.group = group
        self.resource_version = group.resource_version if group is not None else self.resource_version

    def now_at(self, resource_version: str) -> None:
        """The PodGroup has this version now."""
        self.resource_version = resource_version

    def note_pod(self, pod: Pod, *, stranger: bool = False) -> None:
        """The pod is a member, or, as a `stranger`, only names the gang."""
        ours, others = (self.strangers, self.pods) if stranger else (self.pods, self.strangers)
        ours[pod.uid] = pod
        others.pop(pod.uid, None)

    def forget_pod(self, uid: str) -> None:
        """The pod is neither a member nor a stranger any more."""
        self.pods.pop(uid, None)
        self.strangers.pop(uid, None)

    def note_owners(self, ownership: Ownership) -> None:
        """These owners claim the gang."""
        self.ownership = ownership

    def note_workload(self, wave: Wave | None, idle: Idle | None, *, all_anew: bool) -> None:
        """What the workload wants."""
        self.wave, self.idle, self.all_anew = wave, idle, all_anew

    def note_contradiction(self, *, contradicted: bool) -> None:
        """Whether members declare the gang differently."""
        self.contradicted = contradicted

    def note_return(self, *, comes_back: bool) -> None:
        """Whether the quorum is to be planned before others, because its members were lost and made again."""
        self.comes_back = comes_back

    def note_complete(self, since: float) -> None:
        """The gang has been complete since then; 0.0: it is not."""
        self.complete_since = since

    def note_shortness(self, since: float) -> None:
        """A scheduled gang has been below its minimum since then; 0.0: it is not."""
        self.short_since = since
