"""Selectors of devices in the Common Expression Language.

The library is imported for the first expression that is evaluated: where nobody uses devices, its 15 MB and a tenth of
a second at the start are saved.
"""

from __future__ import annotations

from gangsched.core.objects.devices import Device, Selector, Verdict


class CelSelector(Selector, frozen=True, gc=False):
    """An expression as claims and classes have it."""

    def verdict(self, driver: str, device: Device) -> Verdict:
        """Whether it selects the device: what does not compile, fails, or is no truth value is an error."""
        from gangsched.kube.cel_verdicts import verdict  # noqa: PLC0415 - see the module

        return verdict(self.expression, driver, device.attributes, device.capacity)
