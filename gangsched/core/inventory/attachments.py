"""The volumes that VolumeAttachments attach to nodes, whether or not a known pod uses them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from gangsched.core.objects.indexes import count, enter
from gangsched.core.objects.shape import Attachment
from gangsched.core.objects.volumes import StorageKey, StorageKind, StorageObject, Volume, VolumeAttachment

_NO_ATTACHMENTS: Mapping[VolumeAttachment, None] = {}
_NOTHING: Collection[Attachment] = frozenset()


class Attachments:
    """The attachments of each node. As in kube-scheduler, only volumes of CSI drivers count.

    `known` are the objects by kind and key; `change` must be called before they are updated.
    """

    def __init__(self, known: Mapping[StorageKind, Mapping[StorageKey, StorageObject]]) -> None:
        self._known = known
        self._by_volume: dict[str, dict[VolumeAttachment, None]] = {}
        self._by_node: dict[str, Counter[Attachment]] = {}

    def of(self, node: str) -> Collection[Attachment]:
        """What is attached to the node of this name, or about to be."""
        return self._by_node.get(node, _NOTHING)

    def change(self, old: StorageObject | None, new: StorageObject | None) -> set[str]:
        """An object is added, changed or removed. Returns the nodes whose attachments may have changed."""
        return self._enter(old, -1) | self._enter(new, 1) if old != new else set()

    def contradictions(self) -> list[str]:
        """A sentence if the attachments do not match the objects."""
        fresh = Attachments(self._known)
        for found in self._known[StorageKind.ATTACHMENT].values():
            fresh.change(None, found)
        same = (fresh._by_node, fresh._by_volume) == (self._by_node, self._by_volume)
        return [] if same else ["what is attached to nodes is not what the VolumeAttachments say"]

    def _enter(self, found: StorageObject | None, sign: int) -> set[str]:
        if isinstance(found, Volume):
            several = list(self._by_volume.get(found.name, _NO_ATTACHMENTS))
            for each in several:
                self._count(each, found, sign)
            return {each.node for each in several}
        if not isinstance(found, VolumeAttachment):
            return set()
        enter(self._by_volume, found.volume, found, sign)
        self._count(found, self._known[StorageKind.VOLUME].get(("", found.volume)), sign)
        return {found.node}

    def _count(self, by: VolumeAttachment, volume: StorageObject | None, sign: int) -> None:
        if not isinstance(volume, Volume) or volume.attachment is None or volume.in_tree or not by.driver:
            return
        attachment = (by.driver, volume.attachment[1])
        there = self._by_node.setdefault(by.node, Counter())
        count(there, attachment, sign)
        if not there:
            del self._by_node[by.node]
