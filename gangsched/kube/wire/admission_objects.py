"""The objects by which the API server changes pods that are created: LimitRanges and RuntimeClasses."""

from __future__ import annotations

from msgspec import Struct, field

from gangsched.kube.wire.pod_objects import Toleration
from gangsched.kube.wire.shared_parts import Meta, Quantities, Strings


class Limit(Struct, gc=False, rename="camel"):
    type: str = ""
    default: Quantities | None = None
    default_request: Quantities | None = None
    max: Quantities | None = None
    min: Quantities | None = None


class Limits(Struct, gc=False):
    limits: list[Limit] | None = None


class LimitRange(Struct, gc=False):
    metadata: Meta
    spec: Limits | None = None


class TimedToleration(Toleration, gc=False):
    seconds: int | None = field(name="tolerationSeconds", default=None)


class Overhead(Struct, gc=False, rename="camel"):
    pod_fixed: Quantities | None = None


class Scheduling(Struct, gc=False, rename="camel"):
    node_selector: Strings | None = None
    tolerations: list[TimedToleration] | None = None


class RuntimeClass(Struct, gc=False):
    metadata: Meta
    overhead: Overhead | None = None
    scheduling: Scheduling | None = None
