"""Settings of the dialect pfnet."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from gangsched.config.part import SettingsPart
from gangsched.core.objects.duration import LONGEST_S

_PREFIX = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def _prefix(text: str) -> str:
    if not _PREFIX.fullmatch(text):
        message = "{prefix} is not a valid annotation prefix: write DOMAIN/NAME, such as example.com/gang"
        raise PydanticCustomError("prefix", message, {"prefix": repr(text)})
    return text


Seconds = Annotated[int, Field(ge=1, le=LONGEST_S)]


class Pfnet(SettingsPart):
    """Arguments of pfnet's gang plug-in, with the names from its README."""

    gang_annotation_prefix: Annotated[
        str,
        Field(max_length=253, json_schema_extra={"pattern": f"^{_PREFIX.pattern}$"}),
        AfterValidator(_prefix),
    ] = Field(
        default="gang-scheduling.preferred.jp/gang",
        description="Prefix of the pod annotations `-name`, `-size` and `-schedule-timeout-seconds`. Pods with another "
        "prefix name no group and are scheduled one by one.",
    )
    gang_schedule_timeout_seconds_limit: Seconds = Field(
        default=100,
        description="Longest time-out, in seconds, that a pod may request; a longer one is reduced to this. Larger: a "
        "group may wait longer before it backs off.",
    )
    gang_schedule_default_timeout_seconds: Seconds = Field(
        default=30,
        description="Time-out, in seconds, of gangs whose pods request none or a text that is not a number. It must "
        "not exceed the limit. Smaller: waiting groups time out and back off sooner.",
    )
    gang_schedule_timeout_jitter_seconds: Annotated[int, Field(ge=0, le=LONGEST_S)] = Field(
        default=30,
        description="Random jitter, in seconds, added to each time-out; 0 for none. Larger: groups that began to wait "
        "together time out further apart.",
    )

    @model_validator(mode="after")
    def _within_limit(self) -> Self:
        if self.gang_schedule_default_timeout_seconds > self.gang_schedule_timeout_seconds_limit:
            message = (
                "gangScheduleDefaultTimeoutSeconds must not be above gangScheduleTimeoutSecondsLimit: lower the "
                "default or raise the limit"
            )
            raise PydanticCustomError("order", message)
        return self
