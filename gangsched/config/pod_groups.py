"""Settings about PodGroups themselves: when those that are finished are deleted."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from gangsched.config.part import Duration, SettingsPart

MOST_A_SECOND = 40
"""The largest number of finished PodGroups that are deleted in a second."""


class PodGroups(SettingsPart):
    """The deletion of finished PodGroups."""

    delete_finished: bool = Field(
        default=False,
        description="Whether a PodGroup is deleted once it has been Succeeded or Failed for as long as its "
        f"`spec.ttlAfterFinished` says, unless a pod that names it lives. The leader deletes at most {MOST_A_SECOND} a "
        "second. The chart grants the right to delete PodGroups only then. false: none is deleted, and the field has "
        "no effect.",
    )
    ttl_after_finished: Duration | None = Field(
        default=None,
        description="`spec.ttlAfterFinished` of PodGroups that do not set it, as a duration from 1s to 168h. It needs "
        "`podGroups.deleteFinished`. None: such a PodGroup stays.",
    )

    @model_validator(mode="after")
    def _allowed(self) -> Self:
        if self.ttl_after_finished is not None and not self.delete_finished:
            message = "ttlAfterFinished has no effect without deleteFinished: set podGroups.deleteFinished to true"
            raise PydanticCustomError("permission", message)
        return self
