"""What all parts of the settings have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Part(BaseModel):
    """Keys in camelCase as in Kubernetes' own configuration; unknown ones are errors, and nothing changes later."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True, validate_default=True)
