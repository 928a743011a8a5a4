"""Device selectors in the Common Expression Language (CEL).

The library is imported when the first expression is evaluated. A cluster without devices saves its 15 MB and a tenth of
a second at the start.
"""

from __future__ import annotations

from gangsched.core.objects.offered_devices import Device, Selector, SelectorResult


class CelSelector(Selector, frozen=True, gc=False):
    """An expression of a ResourceClaim or DeviceClass."""

    def evaluate(self, driver: str, device: Device) -> SelectorResult:
        """Whether the expression selects the device; see `cel_evaluation.evaluate`."""
        from gangsched.kube.cel.evaluation import evaluate  # noqa: PLC0415

        return evaluate(self.expression, driver, device.attributes, device.capacity, multiple=device.multiple)
