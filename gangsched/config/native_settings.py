"""Settings of the dialect native: whether gangsched writes the condition of Kubernetes' own PodGroups."""

from __future__ import annotations

from pydantic import Field

from gangsched.config.part import SettingsPart


class Native(SettingsPart):
    """Settings of the dialect native."""

    write_condition: bool = Field(
        default=True,
        description="Whether gangsched writes the condition that says whether a PodGroup of scheduling.k8s.io was "
        "scheduled (PodGroupInitiallyScheduled, in Kubernetes 1.36 PodGroupScheduled), as kube-scheduler does for its "
        "own groups. It never writes to a group of which another scheduler has pods. The chart grants the right if the "
        "dialect native is in its value `dialects`. false: the PodGroups are only read.",
    )
