"""ImageLocality: nodes that have more of a pod's images are preferred, by their sizes.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/imagelocality. An image counts for more if more nodes have it,
so that pods do not all go to the few that do. Nobody writes this preference: here it only orders nodes that are equal
by all else (`weight`). The size is that on the node itself, where kube-scheduler takes it from the node seen first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

import numpy as np
from msgspec.structs import replace

from gangsched.core.constraints.column import uncount
from gangsched.core.constraints.constraint import Member, NodeConstraint, World
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.node import Node
from gangsched.core.objects.soft import Images, Soft

_MIB = 1 << 20
_LEAST = 23 * _MIB
_MOST_OF_CONTAINER = 1000 * _MIB
_KEPT = 64
"""So many images have their sizes cached for all nodes; the oldest is dropped first."""


class ImageLocality(NodeConstraint):
    """The plug-in of this name, which filters nothing."""

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
        """The row has no images any more."""
        for name, _ in self._images.pop(row, ()):
            uncount(self._nodes, name)
        self._renew(row, ())

    def told(self) -> object:
        """The images by row."""
        return self._images, self._nodes

    def minded(self, soft: Soft) -> Soft:
        """Without images that no node has."""
        there = tuple(image for image in soft.images if image in self._nodes)
        return replace(soft, images=there, containers=soft.containers if there else 0)

    def prefers(self, member: Member) -> bool:
        """Whether some node has one of the images."""
        return member.soft is not None and bool(member.soft.images)

    def score(self, member: Member, rows: IntArray) -> IntArray:
        """From nothing, up to 23 MiB in all, to 1,000 MiB for each container."""
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
        """The image's size by row; 0 where it is missing."""
        sizes = self._sizes.get(image)
        if sizes is None:
            if len(self._sizes) >= _KEPT:
                del self._sizes[next(iter(self._sizes))]
            sizes = self._sizes[image] = np.zeros(self._world.nodes.size, dtype=np.int64)
            for row, images in self._images.items():
                at = bisect_left(images, (image, 0))
                if at < len(images) and images[at][0] == image:
                    sizes[row] = images[at][1]
        return sizes

    def _renew(self, row: int, images: Images) -> None:
        found = dict(images) if self._sizes else {}
        for name, sizes in list(self._sizes.items()):
            if row < len(sizes):
                sizes[row] = found.get(name, 0)
            else:
                del self._sizes[name]
