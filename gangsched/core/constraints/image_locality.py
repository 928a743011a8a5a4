"""ImageLocality: prefers nodes that already have a pod's images, weighed by image size.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/imagelocality. An image counts for more if more nodes have it,
so that pods do not all go to the few nodes that do. Users do not ask for this preference, so here it only orders nodes
that are otherwise equal (`weight`). The size is the one on the node itself; kube-scheduler takes that of the node seen
first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

import numpy as np
from msgspec.structs import replace

from gangsched.core.constraints.constraint import Member, NodeConstraint, World
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.indexes import drop_oldest, uncount
from gangsched.core.objects.node import Node
from gangsched.core.objects.shape import Images, Soft

_MIB = 1 << 20
_LEAST = 23 * _MIB
_MOST_OF_CONTAINER = 1000 * _MIB
_KEPT = 64
"""Limit for the number of images whose sizes on all nodes are cached; the oldest is evicted first."""


class ImageLocality(NodeConstraint):
    """The plug-in of this name, which filters nothing."""

    about = frozenset({"soft"})
    words = ()

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._images: dict[int, Images] = {}
        self._nodes: Counter[str] = Counter()
        self._sizes: dict[str, IntArray] = {}

    def set_node(self, row: int, node: Node) -> None:
        """Set the images of the row."""
        if self._images.get(row) != node.images:
            self.remove_node(row)
            self._nodes.update(name for name, _ in node.images)
            self._renew(row, node.images)
        self._images[row] = node.images

    def remove_node(self, row: int) -> None:
        """Remove the images of the row."""
        for name, _ in self._images.pop(row, ()):
            uncount(self._nodes, name)
        self._renew(row, ())

    def state(self) -> object:
        """The images by row, and the number of nodes by image."""
        return self._images, self._nodes

    def relevant(self, soft: Soft) -> Soft:
        """The preferences without images that no node has."""
        images = tuple(image for image in soft.images if image in self._nodes)
        return replace(soft, images=images, containers=soft.containers if images else 0)

    def prefers(self, member: Member) -> bool:
        """Whether some node has one of the images."""
        return member.soft is not None and bool(member.soft.images)

    def score(self, member: Member, rows: IntArray) -> IntArray:
        """0 up to 23 MiB in all, rising to 100 at 1,000 MiB for each container."""
        sums: IntArray = np.zeros(len(rows), dtype=np.int64)
        if member.soft is None:
            return sums
        for image in member.soft.images:
            spread = self._nodes[image] / max(1, len(self._images))
            sums += (self._size(image)[rows] * spread).astype(np.int64)
        most = _MOST_OF_CONTAINER * max(1, member.soft.containers)
        scores: IntArray = 100 * (np.clip(sums, _LEAST, most) - _LEAST) // (most - _LEAST)
        return scores

    def _size(self, image: str) -> IntArray:
        """The size of the image by row; 0 where it is missing."""
        sizes = self._sizes.get(image)
        if sizes is None:
            sizes = self._sizes[image] = np.zeros(self._world.nodes.size, dtype=np.int64)
            drop_oldest(self._sizes, _KEPT)
            for row, images in self._images.items():
                at = bisect_left(images, (image, 0))
                if at < len(images) and images[at][0] == image:
                    sizes[row] = images[at][1]
        return sizes

    def _renew(self, row: int, images: Images) -> None:
        present = dict(images) if self._sizes else {}
        for name, sizes in list(self._sizes.items()):
            if row < len(sizes):
                sizes[row] = present.get(name, 0)
            else:
                del self._sizes[name]
