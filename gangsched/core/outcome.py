"""What a call has come to for one gang."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct, field

from gangsched.core.objects.effects import BindPod, Effect


class Outcome(Struct):
    """The `effects` of a gang, which are sent only if nothing of its logic fails in this call.

    `reconciled`: it was brought up to date. `tried`: places were looked for, and `refusals` has the reason of each
    that was refused.
    """

    effects: list[Effect] = field(default_factory=list)
    reconciled: bool = False
    tried: bool = False
    refusals: list[str] = field(default_factory=list)

    def decide(self, effects: Iterable[Effect]) -> None:
        """These effects follow from what was decided about the gang."""
        self.effects += effects

    def refuse(self, reason: str, times: int = 1) -> None:
        """A place was looked for so often and refused for this reason."""
        self.refusals += [reason] * times


def joined(outcomes: Collection[Outcome]) -> list[Effect]:
    """The effects of these outcomes, in order; those on members above a minimum come after all others."""
    effects, late = list[Effect](), list[Effect]()
    for effect in [effect for outcome in outcomes for effect in outcome.effects]:
        (late if isinstance(effect, BindPod) and effect.above else effects).append(effect)
    return effects + late
