"""Device selectors in the Common Expression Language (CEL).

The library is the extra `devices`. It is imported when the first expression is evaluated: a cluster without devices
saves its 19 MB.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec

from gangsched.core.objects.offered_devices import Device, Selector, SelectorResult


class CelSelector(Selector, frozen=True, gc=False):
    """An expression of a ResourceClaim or DeviceClass."""

    def evaluate(self, driver: str, device: Device) -> SelectorResult:
        """Whether the expression selects the device; see `evaluation.evaluate`."""
        if not _installed():
            return SelectorResult.ERROR
        from gangsched.kube.cel.evaluation import evaluate  # noqa: PLC0415

        return evaluate(self.expression, driver, device.attributes, device.capacity, multiple=device.multiple)

    def failure(self) -> str:
        """The expression, or what to install if none can be evaluated."""
        if _installed():
            return self.expression
        return f"{self.expression} (no expression can be evaluated: pip install 'gangsched[devices]')"


@lru_cache(maxsize=1)
def _installed() -> bool:
    return find_spec("cel_expr_python") is not None
