"""Settings of the operator's answers to tenants."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gangsched.config.part import Part


class Answers(Part):
    """Answers to users who may not list the whole cluster: docs/answers.md."""

    enabled: bool = Field(
        default=False,
        description="Whether every replica answers `gangsched explain --ask-operator-as` for users who may get the "
        "PodGroups of a namespace. It needs the rights to create TokenReviews and SubjectAccessReviews. While it "
        "answers, it needs about twice the operator's usual memory. The chart's value `answers.enabled` sets this and "
        "grants the rights.",
    )
    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        default=9443,
        description="Port of the answers, on 127.0.0.1 only: it is reached by a port-forward to the pod. 0 means a "
        "free port, which is logged.",
    )
