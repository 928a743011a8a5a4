"""Spark applications: a driver, which says how many executors it needs and how large, and executors that come later.

Both dialects hold places for the executors from the moment at which the driver is bound, so the group's name must be
one that a PodGroup can have. What an executor's place takes is what the driver says; what a pod takes is what the pod
itself asks for. The success of the driver is that of the application.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from gangsched.config.spark import PrioritizedNodeLabel, Spark
from gangsched.core.gang.making import OBJECT_NAME
from gangsched.core.objects.declaration import PACKED, Declaration, Placing, Preference, Role, Topology
from gangsched.core.objects.quantity import InvalidQuantity, amount, milli
from gangsched.core.objects.shape import Amounts, Shape
from gangsched.kube.dialects.dialect import Dialect, Key, quoted, sentence
from gangsched.kube.dialects.kind import MOST_MEMBERS

DRIVER, EXECUTOR = "driver", "executor"
MOST_DIGITS = 10
_ROLE = Key("spark-role", label=True)
_GPU = "nvidia.com/gpu"
_ZONE = "topology.kubernetes.io/zone"
_STRATEGIES = {
    "distribute-evenly": Placing("Spread"),
    "tightly-pack": Placing("Pack"),
    "az-aware-tightly-pack": Placing("Pack", topology=Topology(_ZONE, required=False)),
    "single-az-tightly-pack": Placing("Pack", topology=Topology(_ZONE)),
    "single-az-minimal-fragmentation": Placing("MinimalFragmentation", topology=Topology(_ZONE)),
}
"""palantir's packers, as strategies."""


@dataclass(frozen=True, kw_only=True)
class SparkDialect(Dialect, ABC):
    """What both have in common. `placing` is where members go, the preferences those of drivers and executors."""

    placing: Placing = PACKED
    driver_prefer: tuple[Preference, ...] = ()
    executor_prefer: tuple[Preference, ...] = ()
    in_turn: bool = False

    def parse(self, base: Declaration, said: Mapping[Key, str]) -> Declaration | None:
        if base.role not in (DRIVER, EXECUTOR):
            found = quoted(base.role) if base.role else "missing"
            raise ValueError(f"{sentence(_ROLE)} is {found}: write {DRIVER} or {EXECUTOR}.")
        if base.role == EXECUTOR:
            return replace(base, placement=self.placing, leading=DRIVER)
        least, most = self.executors(said)
        if least and not OBJECT_NAME.fullmatch(base.group):
            raise ValueError(
                f"The application's name {quoted(base.group)} cannot be that of a PodGroup, in which places for its "
                "executors must stand: write at most 63 small letters, digits, '-' and '.', with a letter or digit at "
                "both ends."
            )
        template = Shape(requests=self.requests(said))
        return replace(
            base,
            roles=(
                Role(DRIVER, 1, 1, prefer=self.driver_prefer),
                Role(EXECUTOR, least, most, template, like_declarer=True, prefer=self.executor_prefer),
            ),
            leading=DRIVER,
            placement=self.placing,
            in_turn=self.in_turn,
        )

    @abstractmethod
    def executors(self, said: Mapping[Key, str]) -> tuple[int, int]:
        """The least and the largest number of executors that the driver says.

        Raises:
            ValueError: it does not say, or cannot be read.
        """

    @abstractmethod
    def requests(self, said: Mapping[Key, str]) -> Amounts:
        """What one executor takes, as the driver says.

        Raises:
            ValueError: it does not say, or cannot be read.
        """


_COUNT = Key("spark-executor-count")
_DYNAMIC = Key("spark-dynamic-allocation-enabled")
_LEAST = Key("spark-dynamic-allocation-min-executor-count")
_MOST = Key("spark-dynamic-allocation-max-executor-count")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")
"""What Go, in which palantir's scheduler is written, reads as true and false."""
_EXECUTOR_REQUESTS = {
    "cpu": Key("spark-executor-cpu"),
    "memory": Key("spark-executor-mem"),
    _GPU: Key(f"spark-executor-{_GPU}"),
}


class PalantirDialect(SparkDialect):
    """The annotations that palantir's k8s-spark-scheduler reads of drivers."""

    def executors(self, said: Mapping[Key, str]) -> tuple[int, int]:
        dynamic = said.get(_DYNAMIC, "false")
        if dynamic not in _TRUE + _FALSE:
            raise ValueError(f"{sentence(_DYNAMIC)} is {quoted(dynamic)}: write true or false.")
        if dynamic in _FALSE:
            number = _whole_quantity(_COUNT, said)
            return number, number
        least, most = _whole_quantity(_LEAST, said), _whole_quantity(_MOST, said)
        if most < least:
            raise ValueError(f"{sentence(_MOST)} is {most}, less than {least} in {_LEAST}: raise it.")
        return least, most

    def requests(self, said: Mapping[Key, str]) -> Amounts:
        found = []
        for resource, key in _EXECUTOR_REQUESTS.items():
            text = said.get(key, "0" if resource == _GPU else None)
            if text is None:
                raise ValueError(f"{sentence(key)} is missing: say what one executor takes, such as 2 or 4Gi.")
            found.append((resource, _amount(key, resource, text)))
        return tuple(sorted((resource, value) for resource, value in found if value))


_EXECUTORS = Key("executors", label=True)
_CPU = Key("exec-cpu", label=True)
_MEMORY = Key("exec-mem", label=True)


class CosminDialect(SparkDialect):
    """The labels that cosmin-ionita's scheduler reads, all of them whole numbers: CPUs, GiB and executors."""

    def nameless_group(self, labels: Mapping[str, str], *, pod: str, owner: str) -> str:
        """The driver's name, which a pod that it has made knows from its owner: these labels name no application."""
        return pod if labels.get(_ROLE.name) == DRIVER else owner

    @property
    def marks(self) -> tuple[Key, ...]:
        # Spark itself gives a role and an application's name to all of its pods.
        return (_EXECUTORS, _CPU)

    def executors(self, said: Mapping[Key, str]) -> tuple[int, int]:
        number = _whole_number(_EXECUTORS, said)
        return number, number

    def requests(self, said: Mapping[Key, str]) -> Amounts:
        cpu, memory = _whole_number(_CPU, said), _whole_number(_MEMORY, said)
        found = (("cpu", _amount(_CPU, "cpu", str(cpu))), ("memory", _amount(_MEMORY, "memory", f"{memory}Gi")))
        return tuple((resource, value) for resource, value in found if value)


def _whole_number(key: Key, said: Mapping[Key, str]) -> int:
    """The whole number under the key.

    Raises:
        ValueError: there is none, or it is none from 0 to 2³¹-1.
    """
    text = _number_text(key, said)
    if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS and int(text) <= MOST_MEMBERS:
        return int(text)
    raise ValueError(f"{sentence(key)} is {quoted(text)}: write a whole number without a unit.")


def _whole_quantity(key: Key, said: Mapping[Key, str]) -> int:
    """The whole number under the key, which may be written as a quantity: palantir's scheduler reads its counts so.

    It rounds a fraction up; half an executor is more likely a mistake.

    Raises:
        ValueError: there is none, or it is none from 0 to 2³¹-1.
    """
    text = _number_text(key, said)
    try:
        thousandths = milli(text)
    except InvalidQuantity:
        thousandths = -1
    if thousandths % 1000 or not 0 <= thousandths <= MOST_MEMBERS * 1000:
        raise ValueError(f"{sentence(key)} is {quoted(text)}: write a whole number.")
    return thousandths // 1000


def _number_text(key: Key, said: Mapping[Key, str]) -> str:
    text = said.get(key)
    if text is None:
        raise ValueError(f"{sentence(key)} is missing: write a whole number.")
    return text


def palantir(chosen: Spark, *, in_turn: bool) -> PalantirDialect:
    """Palantir's dialect with the packer and the node labels of the configuration."""
    return PalantirDialect(
        source="palantir",
        group=(Key("spark-app-id", label=True),),
        minimum=_COUNT,
        role=(_ROLE,),
        others=(_DYNAMIC, _LEAST, _MOST, *_EXECUTOR_REQUESTS.values()),
        placing=_STRATEGIES[chosen.binpack],
        driver_prefer=_wishes(chosen.driver_prioritized_node_label),
        executor_prefer=_wishes(chosen.executor_prioritized_node_label),
        in_turn=in_turn,
    )


COSMIN = CosminDialect(
    source="cosmin",
    group=(Key("spark-app-selector", label=True),),
    minimum=_EXECUTORS,
    role=(_ROLE,),
    others=(_CPU, _MEMORY),
    placing=Placing("Pack", prefer=(Preference("cost", "Ascending"),)),
)


def _wishes(label: PrioritizedNodeLabel | None) -> tuple[Preference, ...]:
    return () if label is None else (Preference(label.label_name, values=label.label_values_descending_priority),)


def _amount(key: Key, resource: str, text: str) -> int:
    try:
        found = amount(resource, text)
    except InvalidQuantity:
        raise ValueError(f"{sentence(key)} is {quoted(text)}: write a quantity, such as 2, 500m or 4Gi.") from None
    if found < 0:
        raise ValueError(f"{sentence(key)} is {quoted(text)}: write a quantity that is not negative.")
    return found
