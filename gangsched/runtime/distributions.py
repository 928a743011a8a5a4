"""Histograms that are cheap to update, for values measured in every scheduling cycle or for every pod.

The client library's own histogram takes a lock and checks each bucket. Here only the event loop updates and scrapes, so
one list of counts for each label value is enough.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector


class Distribution(Collector):
    """A histogram with these upper bucket bounds for each value of `label`; an empty `label` means none."""

    def __init__(self, name: str, text: str, bounds: Sequence[float], *, label: str = "") -> None:
        self._name = name
        self._text = text
        self._bounds = [float(bound) for bound in bounds]
        self._label = label
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def add(self, value: float, label: str = "") -> None:
        """Add an observation."""
        counts = self._counts.get(label)
        if counts is None:
            counts = self._counts[label] = [0] * (len(self._bounds) + 1)
            self._sums[label] = 0.0
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[label] += value

    def describe(self) -> Iterator[Metric]:
        """The family without values."""
        yield self._family()

    def collect(self) -> Iterator[Metric]:
        """The family with the counts so far. Without a label it has all buckets even before the first observation."""
        family = self._family()
        series = self._counts or ({} if self._label else {"": [0] * (len(self._bounds) + 1)})
        for label, counts in series.items():
            total, buckets = 0, []
            for bound, count in zip([*self._bounds, float("inf")], counts, strict=True):
                total += count
                buckets.append((_written(bound), total))
            family.add_metric([label] if self._label else [], buckets, self._sums.get(label, 0.0))
        yield family

    def _family(self) -> HistogramMetricFamily:
        return HistogramMetricFamily(self._name, self._text, labels=[self._label] if self._label else [])


def _written(bound: float) -> str:
    """The bound as Prometheus writes it."""
    return "+Inf" if bound == float("inf") else str(bound)
