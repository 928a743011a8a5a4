"""Kubernetes' own groups as the API server of the tests serves them: the version, and the flags that turn them on.

Source: pkg/features/kube_features.go and pkg/controlplane/instance.go of k8s.io/kubernetes. 1.36 and 1.37 share neither
a version nor all gates, and an unknown gate or version ends kube-apiserver at its start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from testbed import binaries
from testbed.binaries import Version
from tests.integration.foreign import WORDS, Words

GROUP = "scheduling.k8s.io"


@dataclass(frozen=True, kw_only=True)
class Native:
    """What one minor version of Kubernetes knows of them; the first of `versions` is the one that is stored.

    Each of `gates` is needed by some field of a group.
    """

    versions: tuple[str, ...]
    gates: tuple[str, ...]

    def feature_gates(self, *more: str) -> tuple[str, ...]:
        """The flag of kube-apiserver and kube-controller-manager that turns on all gates, and these."""
        return (f"--feature-gates={','.join(f'{gate}=true' for gate in (*self.gates, *more))}",)

    @property
    def served(self) -> tuple[str, ...]:
        """The flag of kube-apiserver that serves the versions."""
        return (f"--runtime-config={','.join(f'{GROUP}/{version}=true' for version in self.versions)}",)

    @property
    def words(self) -> Words:
        """A group of two in the first version."""
        path = f"{GROUP}/{self.versions[0]}"
        words = WORDS["native"]
        return replace(words, path=path, body={**words.body, "apiVersion": path})


NATIVE: dict[Version, Native] = {
    (1, 36): Native(
        versions=("v1alpha2",),
        gates=(
            "GenericWorkload",
            "GangScheduling",
            "TopologyAwareWorkloadScheduling",
            "WorkloadAwarePreemption",
            "DRAWorkloadResourceClaims",
        ),
    ),
    (1, 37): Native(
        versions=("v1beta1", "v1alpha3"),
        gates=(
            "GenericWorkload",
            "TopologyAwareWorkloadScheduling",
            "CompositePodGroup",
            "PodGroupPreemptionPolicy",
            "DRAWorkloadResourceClaims",
        ),
    ),
}
"""By minor version. Older ones have no PodGroups: 1.35 has only Workloads with the groups inside, and 1.34 has none."""

JOBS = "WorkloadWithJob"
"""The gate with which the Job controller makes groups. It changes all Jobs, so tests turn it on by themselves."""


def native() -> Native:
    """That of the kube-apiserver that the tests start."""
    return NATIVE[binaries.version_of("kube-apiserver")]
