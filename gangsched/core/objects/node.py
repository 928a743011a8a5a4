"""A node as the core sees it."""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.objects.shape import Amounts, Labels
from gangsched.core.objects.soft import Images


class Taint(Struct, frozen=True, gc=False, cache_hash=True):
    """As in the Kubernetes API."""

    key: str
    effect: str
    value: str = ""


class Node(Struct, frozen=True, gc=False):
    """A node: its capacity, and which pods it accepts. Readiness counts only through taints, as in kube-scheduler.

    `features` are those that its kubelet declares (`status.declaredFeatures`), sorted. `images` are on its disk.
    """

    name: str
    allocatable: Amounts = ()
    labels: Labels = ()
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    features: tuple[str, ...] = ()
    images: Images = ()
