"""What was stored about a gang since it was last brought up to date, for `core.gang.news` to apply.

Whoever stores an event puts down here, in order, what it means for the gang, and runs none of the gang's logic. The
objects themselves are in `Observed` and in the cluster at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from gangsched.core.cluster.avoidance import Tries
from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.foreign import Foreign
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Minima
from gangsched.core.objects.results import Result


class Context(Struct, frozen=True):
    """What is known besides the gang while its news are applied; `now` is in epoch seconds."""

    cluster: Cluster
    foreign: Foreign
    policy: Policy
    now: float


class News(Struct, frozen=True, gc=False):
    """Something that was stored about the gang."""

    @property
    def told(self) -> str:
        """What the gang's story calls it."""
        return type(self).__name__


class Entered(News, frozen=True):
    """The gang is decided about from now on: it starts from the record in its PodGroup's status."""


class Former(Struct, frozen=True):
    """What was under way in the gang `named` so, to which a member belonged before.

    `quorum` are the minima of its quorum under way. Beside it, the member's role, with others, `needs` so many if it is
    bound together with them. Some of its quorum have been bound since `partial_since`, 0.0 if none. `withdrawn`: the
    member's binding was to be withdrawn.
    """

    named: str
    quorum: Minima | None
    needs: Mapping[str, int]
    partial_since: float
    withdrawn: bool


class Joined(News, frozen=True):
    """The pod has come from another gang, `former`, in which its role was `role`."""

    pod: Pod
    former: Former
    role: str


class Renewed(News, frozen=True):
    """A member has come when none of the gang's members was alive any more."""


class Left(News, frozen=True):
    """The pod is none of the gang's any more, and had this form last; `gone`: it no longer exists."""

    pod: Pod
    gone: bool = False


class NodeShown(News, frozen=True):
    """The watch shows that the pod is on this node, on which it was not before."""

    uid: str
    node: str


class Answered(News, frozen=True):
    """The API server's answer to one of the gang's writes; `tries` are those of a binding that was refused for good."""

    result: Result
    tries: Tries = Tries(0, 0)

    @property
    def told(self) -> str:
        """The kind of result."""
        return type(self.result).__name__


class Declared(News, frozen=True):
    """The PodGroup was created, changed or deleted; None if there was, or is, none."""

    old: Group | None
    new: Group | None


class Redeclared(News, frozen=True):
    """Another system's object declares the gang from now on, or none does.

    `over`: the run of the former one has ended; bound members stay (rule 10).
    """

    over: bool


class TermsChanged(News, frozen=True):
    """Another system's object that declares the gang asks for something else."""


class TermsShown(News, frozen=True):
    """Another system's objects can be read again, and may show what could not be inferred when the gang was entered."""


class ClaimsChanged(News, frozen=True):
    """Objects that waiting members use, such as volumes, have changed."""


class Inbox(Struct):
    """News in the order in which they came. Only these methods change it."""

    _news: list[News] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self._news)

    def put(self, news: News) -> None:
        """Add news, which come after all others."""
        self._news.append(news)

    def take_all(self) -> list[News]:
        """Remove and return all news, in order."""
        news, self._news = self._news, []
        return news
