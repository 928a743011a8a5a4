"""kube-scheduler's own filters as a program: which nodes they accept for a pod, in batches and with no API server.

hack/control-plane/judge is the program; objects are defaulted, prepared and validated by the API server's own code.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from testbed import binaries

Json = dict[str, Any]


class Refusal(msgspec.Struct, frozen=True):
    """The plugin that refuses a node, the first in the profile's order, and its reasons.

    `failed`: DynamicResources fails there, for an expression or a pool; kube-scheduler tries the pod again later.
    """

    plugin: str
    reasons: list[str] = []
    failed: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """The result for one pod: each node is either feasible or refused. `pod` is the manifest as it would be stored.

    `scores` holds, on request, the weighted scores of feasible nodes by plugin.
    """

    pod: Json
    feasible: frozenset[str]
    refused: Mapping[str, Refusal]
    scores: Mapping[str, Mapping[str, int]] = {}


class Answer(msgspec.Struct, frozen=True):
    """The verdicts in the order of the probes, the objects as they would be stored, and the profile's filters."""

    error: str
    filters: list[str] | None
    objects: list[Json] | None
    verdicts: list[Verdict] | None


class RefusedError(Exception):
    """The API server would reject an object, or a filter failed; the message is theirs."""


@dataclass(frozen=True)
class Said:
    """An answer without an error."""

    filters: Sequence[str]
    objects: Sequence[Json]
    verdicts: Sequence[Verdict]


class Judge:
    """The running program. One may be used for a whole test session, from one thread."""

    def __enter__(self) -> Self:
        folder = binaries.find([binaries.JUDGE])
        assert folder is not None, "the judge is not built; run make control-plane"
        self._process = subprocess.Popen([folder / binaries.JUDGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:  # closes its input, on which it ends, and waits
            pass

    def ask(self, objects: Sequence[Json], probes: Sequence[Json], *, score: bool = False) -> Said:
        """Run the filters (and with `score` the scores) for each probe alone, in a cluster of these objects.

        All have apiVersion and kind.

        Raises:
            RefusedError: the API server would reject an object, or a filter other than DynamicResources failed.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode({"objects": objects, "probes": probes, "score": score}) + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the judge has ended; its error is on standard error"
        answer = msgspec.json.decode(line, type=Answer)
        if answer.error:
            raise RefusedError(answer.error)
        return Said(answer.filters or (), answer.objects or (), answer.verdicts or ())
