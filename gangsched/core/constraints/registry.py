"""All constraints, one line each, in the order in which kube-scheduler runs its filters."""

from __future__ import annotations

from gangsched.core.constraints.constraint import Constraint, NodeConstraint, Words
from gangsched.core.constraints.csi_drivers import CsiDrivers
from gangsched.core.constraints.dynamic_resources import DynamicResources
from gangsched.core.constraints.image_locality import ImageLocality
from gangsched.core.constraints.inter_pod_affinity import InterPodAffinity
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.constraints.node_declared_features import NodeDeclaredFeatures
from gangsched.core.constraints.node_ports import NodePorts
from gangsched.core.constraints.node_resources import NodeResources
from gangsched.core.constraints.node_unschedulable import NodeUnschedulable
from gangsched.core.constraints.node_volume_limits import NodeVolumeLimits
from gangsched.core.constraints.pod_preferences import PodPreferences
from gangsched.core.constraints.taint_toleration import TaintToleration
from gangsched.core.constraints.topology_spread import TopologySpread
from gangsched.core.constraints.volume_binding import VolumeBinding
from gangsched.core.constraints.volume_restrictions import VolumeRestrictions
from gangsched.core.constraints.volume_zone import VolumeZone

CONSTRAINTS: list[type[Constraint]] = [
    NodeUnschedulable,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResources,
    VolumeRestrictions,
    CsiDrivers,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    DynamicResources,
    TopologySpread,
    InterPodAffinity,
    PodPreferences,
    NodeDeclaredFeatures,
    ImageLocality,
]


def words_of(reason: str) -> Words | None:
    """The wording of this reason in messages to users; None if no constraint has the reason."""
    return next((words for kind in CONSTRAINTS for words in kind.words if words.reason == reason), None)


def is_of_node(reason: str) -> bool:
    """Whether nodes that refuse for this reason do so regardless of the pods on them."""
    of_node = [kind for kind in CONSTRAINTS if issubclass(kind, NodeConstraint)]
    return any(words.reason == reason for kind in of_node for words in kind.words)
