"""Of every field of every dialect it is said what becomes of it, and what is not honoured is told, never silent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest
from msgspec import Struct, structs

from gangsched.config.dialects import Key
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import Dialect
from gangsched.kube.dialects.dialect_fields import Field, Use, ignored_fields, told
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.dialects.yunikorn import _TaskGroup
from gangsched.kube.reading.pod_values import pod_value
from tests.kube.test_foreign_objects import NAMING
from tests.kube.upstream_fields import POD_KEYS, SPECS

OF = {dialect.row.name: dialect for dialect in DEFAULT.dialects}
READ = (Use.HONOURED, Use.REFUSED)
LEAST: dict[str, dict[str, Any]] = {
    "volcano": {"minMember": 2},
    "kai": {"minMember": 2},
    "koordinator": {"minMember": 2},
    "scheduler-plugins": {"minMember": 2},
    "tenstack": {"minMember": 2},
    "native": {"schedulingPolicy": {"gang": {"minCount": 2}}},
}
"""A valid spec of each kind."""


def fields_of(name: str) -> tuple[Field, ...]:
    kind = OF[name].kind
    return kind.fields if kind is not None else ()


def paths_in(form: type[Struct], head: str = "") -> Iterator[str]:
    """The paths of the fields that a form decodes."""
    for field in structs.fields(form):
        path, several = f"{head}{field.encode_name}", False
        inner = field.type
        while get_origin(inner) in (Union, UnionType, list):
            several |= get_origin(inner) is list
            inner = next(each for each in get_args(inner) if each is not type(None))
        if isinstance(inner, type) and issubclass(inner, Struct) and inner is not wire.Present:
            yield from paths_in(inner, f"{path}[]." if several else f"{path}.")
        else:
            yield path


def read(name: str, spec: object, **metadata: Any) -> ForeignGroup:
    kind = OF[name].kind
    assert kind is not None
    body = {"metadata": {"name": "ring", "namespace": "n", "uid": "u"} | metadata, "spec": spec}
    return kind.read(name, json.dumps(body).encode())[1]


def with_value(spec: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """The spec with this value at the path."""
    name, _, rest = path.partition(".")
    if not rest:
        return spec | {name: value}
    if name.endswith("[]"):
        return spec | {name[:-2]: [with_value({"name": "a"}, rest, value)]}
    return spec | {name: with_value(dict(spec.get(name, {})), rest, value)}


def texts(dialect: Dialect, added: Mapping[Key, str]) -> tuple[dict[str, str], dict[str, str]]:
    labels, annotations = NAMING[dialect.row.name]
    return (
        labels | {key.name: text for key, text in added.items() if key.label},
        annotations | {key.name: text for key, text in added.items() if not key.label},
    )


TOLD_FIELDS = [(name, field) for name in SPECS for field in fields_of(name) if field.use is Use.TOLD]
TOLD_TEXTS = [(name, field) for name in OF for field in OF[name].texts if field.use is Use.TOLD]


class TestTheTables:
    @pytest.mark.parametrize("name", SPECS)
    def test_what_a_reader_decodes_is_in_the_table_and_what_counts_there_is_decoded(self, name):
        kind = OF[name].kind
        assert kind is not None
        uses = {field.name: field.use for field in kind.fields if isinstance(field.name, str)}
        decoded = set(paths_in(kind.spec))
        assert decoded <= {path for path, use in uses.items() if use is not Use.NEEDLESS}
        assert {path for path, use in uses.items() if use in READ} - {"networkTopology"} <= decoded

    def test_so_it_is_for_the_parts_of_a_task_group(self):
        listed = {f.name for f in OF["yunikorn"].texts if f.use in READ and isinstance(f.name, str)}
        assert listed == {f"task-groups[].{path}" for path in paths_in(_TaskGroup)}

    @pytest.mark.parametrize("name", SPECS)
    def test_the_table_has_every_field_that_the_other_system_defines(self, name):
        assert set(SPECS[name]) - {field.name for field in fields_of(name)} == set()

    @pytest.mark.parametrize("name", POD_KEYS)
    def test_the_table_has_every_key_that_the_other_system_reads_on_pods(self, name):
        row = OF[name].row
        keys = {*row.group, *row.minimum, *row.time, *row.role, *(f.name for f in OF[name].texts)}
        assert set(POD_KEYS[name]) - {key.name for key in keys if isinstance(key, Key)} == set()

    @pytest.mark.parametrize("name", OF)
    def test_no_field_is_listed_twice_and_each_has_a_note(self, name):
        for fields in (OF[name].texts, fields_of(name)):
            assert len({field.name for field in fields}) == len(fields)
            assert all(field.note for field in fields)

    @pytest.mark.parametrize("name", OF)
    def test_the_keys_that_are_honoured_or_told_are_those_that_are_read(self, name):
        dialect = OF[name]
        listed = {f.name for f in dialect.texts if f.use is not Use.NEEDLESS and isinstance(f.name, Key)}
        assert listed == set(dialect.terms) - {*dialect.row.minimum, *dialect.row.time, *dialect.row.role}


class TestTelling:
    @pytest.mark.parametrize(("name", "field"), TOLD_FIELDS, ids=lambda each: str(getattr(each, "name", each)))
    def test_a_field_or_key_of_an_object_that_is_not_honoured_is_named_unless_it_is_as_usual(self, name, field):
        def ignored(value: object) -> tuple[str, ...]:
            if isinstance(field.name, Key):
                return read(name, LEAST[name], annotations={field.name.name: value}).ignored
            return read(name, with_value(LEAST[name], field.name, value)).ignored

        named = str(field.name) if isinstance(field.name, Key) else f"spec.{field.name}"
        assert ignored("something") == (named,)
        assert [ignored(value) for value in ("", *field.usual)] == [()] * (1 + len(field.usual))
        assert read(name, LEAST[name]).ignored == ()

    @pytest.mark.parametrize(("name", "field"), TOLD_TEXTS, ids=lambda each: str(getattr(each, "name", each)))
    def test_a_key_of_a_pod_that_is_not_honoured_is_named_unless_it_is_as_usual(self, name, field):
        def ignored(value: str) -> tuple[str, ...]:
            found = DEFAULT.declaration(*texts(OF[name], {field.name: value}))
            assert found is not None
            assert found.error == ""
            return found.ignored

        assert ignored("something") == (str(field.name),)
        assert [ignored(value) for value in ("", *field.usual)] == [()] * (1 + len(field.usual))

    @pytest.mark.parametrize(
        ("name", "spec", "metadata", "ignored"),
        [
            ("volcano", {"networkTopology": {"mode": "soft"}}, {}, ("spec.networkTopology",)),
            (
                "kai",
                {"topologyConstraint": {"requiredTopologyLevel": "zone", "preferredTopologyLevel": "rack"}},
                {},
                ("spec.topologyConstraint.preferredTopologyLevel",),
            ),
            ("kai", {"topologyConstraint": {"preferredTopologyLevel": "rack"}}, {}, ()),
            (
                "koordinator",
                {},
                {
                    "annotations": {
                        "gang.scheduling.koordinator.sh/network-topology-spec": json.dumps(
                            {"gatherStrategy": [{"layer": "rack", "strategy": "PreferGather"}]}
                        )
                    }
                },
                ("the annotation gang.scheduling.koordinator.sh/network-topology-spec",),
            ),
        ],
    )
    def test_a_field_that_is_honoured_in_some_cases_is_named_in_the_others(self, name, spec, metadata, ignored):
        assert read(name, LEAST[name] | spec, **metadata).ignored == ignored

    def test_a_preferred_network_topology_on_pods_is_named_too(self):
        key = Key("gang.scheduling.koordinator.sh/network-topology-spec")
        said = json.dumps({"gatherStrategy": [{"layer": "rack", "strategy": "PreferGather"}]})
        found = DEFAULT.declaration(*texts(OF["koordinator"], {key: said}))
        assert found is not None
        assert found.ignored == (str(key),)

    def test_two_dialects_on_one_pod_tell_what_either_ignores(self):
        labels, annotations = {"kueue.x-k8s.io/pod-group-name": "g"}, {"scheduling.k8s.io/group-name": "g"}
        more = {"kueue.x-k8s.io/pod-group-fast-admission": "true", "volcano.sh/revocable-zone": "*"}
        found = DEFAULT.declaration(labels, annotations | more)
        assert found is not None
        assert found.ignored == (
            "the annotation kueue.x-k8s.io/pod-group-fast-admission",
            "the annotation volcano.sh/revocable-zone",
        )

    @pytest.mark.parametrize("key", ["gpu-fraction", "gpu-memory"])
    @pytest.mark.parametrize("grouped", [False, True])
    def test_a_part_of_a_gpu_is_refused_by_name_in_a_group_and_without_one(self, key, grouped):
        annotations = {key: "0.5"} | ({"pod-group-name": "g"} if grouped else {})
        body = {"metadata": {"name": "p", "annotations": annotations}, "spec": {"containers": []}}
        found = pod_value(msgspec.json.decode(json.dumps(body), type=wire.Pod))
        assert found.shape.unsupported == (f"the annotation {key}",)


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({}, []),
        ({"a": None, "b": []}, []),
        ({"a": {"x": 1}}, ["spec.a.x"]),
        ({"a": {"x": 2}}, []),
        ({"a": [1], "b": {"y": 1}}, []),
        ({"b": [{"y": 0}, {"y": 1}, {"y": 1}]}, ["spec.b[].y"]),
        ([], []),
        (None, []),
    ],
)
def test_a_path_is_followed_through_whatever_the_object_has(spec, named):
    assert list(ignored_fields([told("a.x", "?", usual=(2,)), told("b[].y", "?", usual=(0,))], spec)) == named
