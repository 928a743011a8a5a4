"""palantir's k8s-spark-scheduler: annotations of drivers, and the packers and node labels of its configuration."""

from __future__ import annotations

from collections.abc import Mapping

from gangsched.config.dialect_settings import PrioritizedNodeLabel
from gangsched.config.dialects import DialectRow, Key
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import Placing, Preference, Topology
from gangsched.core.objects.quantity import InvalidQuantity, milli
from gangsched.core.objects.shape import Amounts
from gangsched.kube.dialects.dialect import Dialect, quoted, sentence
from gangsched.kube.dialects.dialect_fields import honoured, needless
from gangsched.kube.dialects.dialect_kind import MOST_MEMBERS
from gangsched.kube.dialects.spark import SparkDialect, number_text, resource_amount

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

_DYNAMIC = Key("spark-dynamic-allocation-enabled")
_LEAST = Key("spark-dynamic-allocation-min-executor-count")
_MOST = Key("spark-dynamic-allocation-max-executor-count")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")
"""The texts for true and false in Go, the language of palantir's scheduler."""
_EXECUTOR_REQUESTS = {
    "cpu": Key("spark-executor-cpu"),
    "memory": Key("spark-executor-mem"),
    _GPU: Key(f"spark-executor-{_GPU}"),
}


_TEXTS = (
    honoured(_DYNAMIC, "whether the two numbers below count in place of `spark-executor-count`"),
    honoured(_LEAST, "the executors for which places are held"),
    honoured(_MOST, "the most executors"),
    *(
        honoured(key, f"{name} of an executor, for its place until it exists")
        for name, key in _EXECUTOR_REQUESTS.items()
    ),
    *(
        needless(Key(f"spark-driver-{name}"), "the driver's own requests count")
        for name in ("cpu", "mem", "nvidia.com/gpu")
    ),
)


class PalantirDialect(SparkDialect):
    """The annotations that palantir's k8s-spark-scheduler reads from drivers."""

    def executors(self, texts: Mapping[Key, str]) -> tuple[int, int]:
        dynamic = texts.get(_DYNAMIC, "false")
        if dynamic not in _TRUE + _FALSE:
            raise ValueError(f"{sentence(_DYNAMIC)} is {quoted(dynamic)}: write true or false.")
        if dynamic in _FALSE:
            number = _whole_quantity(self.row.minimum[0], texts)
            return number, number
        least, most = _whole_quantity(_LEAST, texts), _whole_quantity(_MOST, texts)
        if most < least:
            raise ValueError(f"{sentence(_MOST)} is {most}, less than {least} in {_LEAST}: raise it.")
        return least, most

    def requests(self, texts: Mapping[Key, str]) -> Amounts:
        requests = []
        for resource, key in _EXECUTOR_REQUESTS.items():
            text = texts.get(key, "0" if resource == _GPU else None)
            if text is None:
                raise ValueError(f"{sentence(key)} is missing: write the request of one executor, such as 2 or 4Gi.")
            requests.append((resource, resource_amount(key, resource, text)))
        return tuple(sorted((resource, value) for resource, value in requests if value))


def _whole_quantity(key: Key, texts: Mapping[Key, str]) -> int:
    """The whole number under the key, which may have the form of a quantity, as in palantir's scheduler.

    palantir's scheduler rounds fractions up. Here they are errors, because half an executor is probably a mistake.

    Raises:
        ValueError: there is none, or it is not a whole number from 0 to 2³¹-1.
    """
    text = number_text(key, texts)
    try:
        thousandths = milli(text)
    except InvalidQuantity:
        thousandths = -1
    if thousandths % 1000 or not 0 <= thousandths <= MOST_MEMBERS * 1000:
        raise ValueError(f"{sentence(key)} is {quoted(text)}: write a whole number.")
    return thousandths // 1000


def dialect(row: DialectRow, settings: Settings) -> Dialect:
    """The dialect with the configured packer, node labels and order."""
    chosen = settings.spark
    return PalantirDialect(
        row=row,
        texts=_TEXTS,
        placing=_STRATEGIES[chosen.binpack],
        driver_prefer=_wishes(chosen.driver_prioritized_node_label),
        executor_prefer=_wishes(chosen.executor_prioritized_node_label),
        in_turn=settings.fifo.spark_drivers,
    )


def _wishes(label: PrioritizedNodeLabel | None) -> tuple[Preference, ...]:
    return () if label is None else (Preference(label.label_name, values=label.label_values_descending_priority),)
