"""Kueue: a label with the group's name and an annotation with its size, which work like gangsched's own.

Kueue itself acts on its other keys before it removes the pods' scheduling gate, except those that say when a group may
start or go on without all of its pods.
"""

from __future__ import annotations

from gangsched.config.dialects import DialectRow, Key
from gangsched.config.settings import Settings
from gangsched.kube.dialects.dialect import Dialect
from gangsched.kube.dialects.dialect_fields import needless, told

_KUEUES = "Kueue itself acts on it"
_TEXTS = (
    told(
        Key("kueue.x-k8s.io/pod-group-fast-admission"),
        "Kueue admits the first pods before all exist; here all of the total count must exist",
        usual=("false",),
    ),
    told(
        Key("kueue.x-k8s.io/retriable-in-group"),
        "with `false`, Kueue replaces no failed pod; here a replacement is scheduled if one is created",
        usual=("true",),
    ),
    told(
        Key("kueue.x-k8s.io/pod-group-sets"),
        "the numbers of pods by role; here only the total counts",
    ),
    needless(Key("kueue.x-k8s.io/queue-name", label=True), _KUEUES),
    needless(Key("kueue.x-k8s.io/priority-class", label=True), _KUEUES),
    needless(Key("kueue.x-k8s.io/pod-group-role", label=True), "used with the annotation `pod-group-sets`"),
    needless(Key("kueue.x-k8s.io/pod-group-serving"), _KUEUES),
    needless(Key("kueue.x-k8s.io/role-hash"), _KUEUES),
    needless(Key("kueue.x-k8s.io/podset-required-topology"), "Kueue adds node selectors to the pods"),
    needless(Key("kueue.x-k8s.io/podset-preferred-topology"), "Kueue adds node selectors to the pods"),
)


def dialect(row: DialectRow, _: Settings) -> Dialect:
    return Dialect(row=row, texts=_TEXTS)
