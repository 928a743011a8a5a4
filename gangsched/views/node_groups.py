"""The labels of a node that say where it is or of which kind, by which people group nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gangsched.core.objects.node import Node

_PLACE = re.compile(
    r"(?:^|[/._-])(?:zone|region|rack|row|block|room|superpod|pod-?set|switch|spine|leaf|clique|cell|cube|"
    r"node-?pool|node-?group|agent-?pool|pool|instance-type|island|slice)(?:$|[._-])"
)
"""Words in the label keys of cloud providers, of GPU operators, and of people who label their racks themselves."""
_FORMER = "beta.kubernetes.io/"
MOST = 12
"""Maximum number of labels of one node."""


def topology(node: Node) -> Mapping[str, str]:
    """The labels, by key; deprecated ones, which newer ones repeat, are left out."""
    found = ((key, value) for key, value in node.labels if _FORMER not in key and _PLACE.search(key))
    return dict(list(found)[:MOST])
