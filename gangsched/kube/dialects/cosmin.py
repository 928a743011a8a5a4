"""cosmin-ionita's scheduler for Spark: labels of drivers."""

from __future__ import annotations

from collections.abc import Mapping

from gangsched.config.dialects import DialectRow, Key
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import Placing, Preference
from gangsched.core.objects.shape import Amounts
from gangsched.kube.dialects.dialect import Dialect, Texts, quoted, sentence
from gangsched.kube.dialects.dialect_fields import honoured, needless
from gangsched.kube.dialects.dialect_kind import MOST_MEMBERS
from gangsched.kube.dialects.spark import DRIVER, SparkDialect, number_text, resource_amount

_MOST_DIGITS = 10
_CPU = Key("exec-cpu", label=True)
_MEMORY = Key("exec-mem", label=True)


_OWN_SIZE = "the driver's own requests count"
_TEXTS = (
    honoured(_CPU, "CPUs of one executor, for its place until it exists"),
    honoured(_MEMORY, "GiB of one executor, for its place until it exists"),
    needless(Key("driver-cpu", label=True), _OWN_SIZE),
    needless(Key("driver-mem", label=True), _OWN_SIZE),
)


class CosminDialect(SparkDialect):
    """The labels of cosmin-ionita's scheduler, all of them whole numbers: CPUs, GiB and executors."""

    def nameless_group(self, labels: Texts, annotations: Texts, *, pod: str, owner: str) -> str:  # noqa: ARG002 - all are labels
        """The driver's name, because these labels name no application. An executor's owner is the driver."""
        return pod if labels.get(self.row.role[0].name) == DRIVER else owner

    @property
    def marks(self) -> tuple[Key, ...]:
        # Spark itself gives all of its pods a role and an application name, so these are no marks.
        return (*self.row.minimum, _CPU)

    def executors(self, texts: Mapping[Key, str]) -> tuple[int, int]:
        number = _whole_number(self.row.minimum[0], texts)
        return number, number

    def requests(self, texts: Mapping[Key, str]) -> Amounts:
        cpu, memory = _whole_number(_CPU, texts), _whole_number(_MEMORY, texts)
        amounts = (
            ("cpu", resource_amount(_CPU, "cpu", str(cpu))),
            ("memory", resource_amount(_MEMORY, "memory", f"{memory}Gi")),
        )
        return tuple((resource, value) for resource, value in amounts if value)


def _whole_number(key: Key, texts: Mapping[Key, str]) -> int:
    """The whole number under the key.

    Raises:
        ValueError: there is none, or it is not a whole number from 0 to 2³¹-1.
    """
    text = number_text(key, texts)
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and int(text) <= MOST_MEMBERS:
        return int(text)
    raise ValueError(f"{sentence(key)} is {quoted(text)}: write a whole number without a unit.")


def dialect(row: DialectRow, _: Settings) -> Dialect:
    return CosminDialect(row=row, texts=_TEXTS, placing=Placing("Pack", prefer=(Preference("cost", "Ascending"),)))
