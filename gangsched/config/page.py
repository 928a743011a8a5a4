"""Settings of the page that the operator serves."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gangsched.config.part import SettingsPart


class Page(SettingsPart):
    """The page that shows groups and nodes: docs/dashboard.md."""

    enabled: bool = Field(
        default=False,
        description="Whether every replica serves the page that `gangsched dashboard` serves. Anyone who opens it sees "
        "all namespaces and nodes. The operator logs the address, whose token works in one browser. The chart's value "
        "`page.enabled` sets this.",
    )
    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        default=8090,
        description="Port of the page, on 127.0.0.1 only: it is reached by a port-forward to the pod. 0 means a free "
        "port, which is logged.",
    )
