"""What of an object gets into a snapshot: the fields that the reader of its kind decodes, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from gangsched.cli.group_reader import DECIDING
from gangsched.cli.snapshot_objects import ANNOTATIONS, Listed, every_kind, recorded
from gangsched.config.settings import validated
from gangsched.kube.client.resource import reading
from gangsched.kube.dialects.dialect_fields import Use
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.reading.disruption_values import BUDGETS
from gangsched.kube.workloads import template
from gangsched.kube.workloads.workload_fields import is_ignored
from gangsched.kube.workloads.workload_table import chosen
from gangsched.whatif.world.admitting import ADMITTING
from gangsched.whatif.world.made import RECORDED
from tests.effort import seeded

FARMS = {"name": "farm", "apiVersion": "example.com/v1", "kind": "Farm", "plural": "farms", "label": "example.com/farm"}
POOLS = {"path": "spec.pools.list", "name": "meta.name", "replicas": "meta.size.wanted", "label": "example.com/pool"}
OWNS = {
    "name": "own",
    "apiVersion": "example.com/v1",
    "kind": "Own",
    "plural": "owns",
    "replicas": "spec.worker.replicas",
}
CUSTOM = validated({"workloads": {"custom": [FARMS | {"roles": POOLS}, OWNS]}}, origin="f")
WORKLOADS = chosen(CUSTOM)
SECRET = "s3cr3t"
TEXTS = {"disruptionMode": "PodGroup", "preferredTopologyLevel": "rack"}
"""Fields that are told, but read as a text too, with a value."""


class Everything:
    """Every version of every group is served."""

    def __contains__(self, version: object) -> bool:
        return True


def _reader(form: Any) -> Any:
    return reading(form, lambda found: msgspec.structs.replace(found, metadata=None))


KINDS = {kind.name: kind for kind in every_kind(WORKLOADS, Everything())}
READERS: dict[str, Any] = {
    **{resource.name: resource.read for resource in (*DECIDING, BUDGETS)},
    **{kind.resource.name: partial(kind.read, name) for name, kind in DEFAULT.kinds.items()},
    **{kind.row.resource.name: kind.read for kind in WORKLOADS.kinds.values()},
    **{name: _reader(form) for name, _, form in ADMITTING},
}
NAMES = sorted(
    {
        name
        for path in Path("gangsched").rglob("*.py")
        for name in re.findall(r'"((?:[a-z0-9-]+\.)+[a-z]+/[a-z-]+)"', path.read_text(encoding="utf-8"))
    }
)
"""What looks like the name of an annotation in any module."""


class Author:
    """Writes objects of a form, with secrets wherever the form reads nothing."""

    def __init__(self, draw: Random) -> None:
        self._draw = draw
        self._numbers = count()

    def secret(self) -> Any:
        """A value in which every string is secret."""
        text = f"{SECRET}-{next(self._numbers)}"
        return self._draw.choice((text, [text], {text: text}, {"value": [{"x": text}]}))

    def value(self, said: inspect.Type, depth: int = 0) -> Any:  # noqa: PLR0911 - a table
        """A value of the type."""
        draw = self._draw
        match said:
            case inspect.Metadata():
                ignored = is_ignored(said.extra)
                return self.secret() if ignored and draw.random() < 0.5 else self.value(said.type, depth)
            case inspect.StructType():
                named = {
                    field.encode_name: self.value(field.type, depth + 1)
                    for field in said.fields
                    if field.required or draw.random() < (0.8 if depth < 3 else 0.3)
                }
                return {**named, f"other{next(self._numbers)}": self.secret()}
            case inspect.DictType():
                return {f"k{at}": self.value(said.value_type, depth + 1) for at in range(draw.randrange(3))}
            case inspect.CollectionType():
                return [self.value(said.item_type, depth + 1) for _ in range(draw.randrange(3))]
            case inspect.UnionType():
                return self.value(draw.choice(said.types), depth)
            case inspect.RawType():
                return self.value(inspect.type_info(template.FORM), depth + 1)
            case inspect.AnyType():
                return self.secret()
            case inspect.NoneType():
                return None
            case inspect.BoolType():
                return draw.random() < 0.5
            case inspect.IntType() | inspect.FloatType():
                return draw.randrange(9)
            case inspect.DateTimeType():
                return "2026-01-01T00:00:00Z"
            case _:
                return draw.choice(("1", "a", "In", "true", "True", "Failed", "TopologyAffinityError"))

    def annotations(self) -> dict[str, str]:
        """Values under all names that may be read, and secrets under others."""
        read = {name: self._draw.choice(("true", "2", "x")) for name in NAMES if self._draw.random() < 0.5}
        return {**read, f"example.com/{SECRET}": SECRET}

    def object(self, kind: Listed) -> dict[str, Any]:
        made: dict[str, Any] = self.value(inspect.type_info(FORMS[kind.name]))
        made["metadata"] = {"name": "a", "namespace": "n", "uid": "u", "annotations": self.annotations()} | {
            f"other{next(self._numbers)}": self.secret(),
            "labels": {"l": "v"},
        }
        for dialect in (each for each in DEFAULT.kinds.values() if each.resource.name == kind.name):
            for field in dialect.fields:
                if field.use is Use.TOLD and isinstance(field.name, str) and self._draw.random() < 0.5:
                    self.tell(made.setdefault("spec", {}), field.name.split("."), field.usual)
        return made

    def tell(self, part: Any, path: Sequence[str], usual: tuple[Any, ...]) -> None:
        """Set the field that is not honoured, where the parts on the way to it are there."""
        if part is None:
            return
        name = path[0].removesuffix("[]")
        if len(path) == 1:
            secret = self.secret()
            told = TEXTS[name] if name in TEXTS and isinstance(secret, str) else secret
            part[name] = self._draw.choice((told, *usual))
        elif name == path[0]:
            self.tell(part.setdefault(name, {}), path[1:], usual)
        else:
            for each in part.get(name) or ():
                self.tell(each, path[1:], usual)


class _Spec(msgspec.Struct):
    spec: msgspec.Raw


def _form(name: str) -> Any:
    for admitting in ADMITTING:
        if admitting.name == name:
            return admitting.form
    for resource in DECIDING:
        if resource.name == name and resource.form is not None:
            return resource.form
    for kind in DEFAULT.kinds.values():
        if kind.resource.name == name:
            return msgspec.defstruct("_Object", [("spec", kind.spec)])
    for each in WORKLOADS.kinds.values():
        if each.row.resource.name == name:
            return each.form
    return msgspec.defstruct("_Own", [("spec", dict[str, int])])


FORMS = {name: _form(name) for name in KINDS}


def without_version(name: str, found: dict[str, Any]) -> Any:
    """What the reader makes of the object; the text of its error if it is unreadable."""
    try:
        return READERS[name](msgspec.Raw(msgspec.json.encode(found)))[1]
    except (msgspec.DecodeError, ValueError) as error:
        return type(error).__name__


@pytest.mark.parametrize("name", sorted(KINDS))
@seeded(16)
def test_no_string_that_the_reader_does_not_decode_is_in_the_snapshot_and_all_that_it_decodes_is(name, seed):
    author = Author(Random(f"{name} {seed}"))
    for _ in range(10):
        found = author.object(KINDS[name])
        kept = recorded(found, KINDS[name])
        assert SECRET not in json.dumps(kept)
        assert without_version(name, kept) == without_version(name, unquoted(without_parameters(found)))


def without_parameters(value: Any) -> Any:
    """The object without the parameters of device drivers, which are read to be copied to what gangsched writes."""
    if isinstance(value, list):
        return [without_parameters(each) for each in value]
    if isinstance(value, dict):
        return {name: without_parameters(inner) for name, inner in value.items() if name != "config"}
    return value


def unquoted(found: dict[str, Any]) -> dict[str, Any]:
    """The object without messages that only their authors know, which a pod's failure would quote."""
    status = found.get("status")
    if isinstance(status, dict) and status.get("reason") != "TopologyAffinityError":
        found = {**found, "status": {name: each for name, each in status.items() if name != "message"}}
    return found


SECRETS = [
    (
        "trainjobs.trainer.kubeflow.org",
        {"trainer": {"env": [{"name": "TOKEN", "value": SECRET}], "command": [SECRET], "args": [SECRET]}},
    ),
    (
        "rayjobs.ray.io",
        {"entrypoint": f"python train.py --token {SECRET}", "runtimeEnvYAML": f"env_vars: {{TOKEN: {SECRET}}}"},
    ),
    (
        "rayclusters.ray.io",
        {
            "headGroupSpec": {"rayStartParams": {"redis-password": SECRET}},
            "gcsFaultToleranceOptions": {"redisPassword": {"value": SECRET}},
            "workerGroupSpecs": [{"groupName": "w", "rayStartParams": {"redis-password": SECRET}, "replicas": 1}],
        },
    ),
    ("persistentvolumes", {"csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"password": SECRET}}}),
    ("pods", {"containers": [{"name": "main", "env": [{"value": SECRET}], "command": [SECRET], "args": [SECRET]}]}),
    ("deviceclasses", {"config": [{"opaque": {"driver": "d", "parameters": {"key": SECRET}}}]}),
]


@pytest.mark.parametrize(("name", "spec"), SECRETS, ids=[name for name, _ in SECRETS])
def test_secrets_that_users_put_into_workloads_are_not_kept(name, spec):
    """Regression: only what stood in a list of fields to leave out was left out."""
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "ci.example.com/token": SECRET}
    kept = recorded({"metadata": {"name": "a", "annotations": annotations}, "spec": spec}, KINDS[name])
    assert SECRET not in json.dumps(kept)
    assert kept["metadata"]["name"] == "a"


def test_a_workload_says_that_its_pods_are_recorded_too():
    kept = recorded({"metadata": {"name": "a"}}, KINDS["jobs.batch"])
    assert kept == {"metadata": {"name": "a", "annotations": {RECORDED: "true"}}}
    assert RECORDED in ANNOTATIONS


@pytest.mark.parametrize(
    ("version", "mode", "kept"),
    [
        ("v1alpha2", "PodGroup", "PodGroup"),
        ("v1alpha2", "Pod", "Pod"),
        ("v1beta1", {"all": {}}, {"all": {}}),
        ("v1beta1", {"all": {"x": SECRET}, "y": SECRET}, {"all": {}}),
        ("v1beta1", [SECRET], []),
    ],
)
def test_the_disruption_mode_of_a_group_is_kept_as_each_version_writes_it(version, mode, kept):
    """Regression: 1.36's text was kept as an empty one, and a group that is preempted whole was read as another."""
    found = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": mode}}
    said = recorded(found, KINDS["podgroups.scheduling.k8s.io"])
    assert said["spec"]["disruptionMode"] == kept
    read = partial(DEFAULT.kinds["native"].read, "native")
    assert read(msgspec.json.encode(said), version) == read(msgspec.json.encode(found), version)


@pytest.mark.parametrize(
    ("name", "spec", "kept"),
    [
        (
            "farms.example.com",
            {"pools": {"list": [{"meta": {"name": "a", "size": {"wanted": 2, "x": SECRET}}, "env": [SECRET]}]}},
            {"pools": {"list": [{"meta": {"name": "a", "size": {"wanted": 2}}}]}},
        ),
        ("farms.example.com", {"pools": {"list": {"x": SECRET}}}, {"pools": {"list": {}}}),
        (
            "farms.example.com",
            {"pools": {"list": [SECRET, {"meta": [SECRET]}]}},
            {"pools": {"list": ["", {"meta": []}]}},
        ),
        (
            "owns.example.com",
            {"worker": {"replicas": 3, "image": SECRET}, "token": SECRET},
            {"worker": {"replicas": 3}},
        ),
        ("owns.example.com", {"worker": {"replicas": {"x": SECRET}}}, {"worker": {"replicas": {}}}),
        ("owns.example.com", {"token": SECRET}, {}),
    ],
)
def test_of_an_object_of_a_custom_kind_only_what_the_setting_names_is_kept(name, spec, kept):
    """Regression: objects of custom kinds were left out, and a snapshot said nothing of the size of their gangs."""
    metadata = {"name": "a", "namespace": "n", "annotations": {"gangsched.io/gang": "true", "token": SECRET}}
    found = recorded({"metadata": metadata, "spec": spec, "status": {"x": SECRET}}, KINDS[name])
    annotations = {"gangsched.io/gang": "true", RECORDED: "true"}
    assert found == {"metadata": metadata | {"annotations": annotations}, "spec": kept}


def test_a_value_of_another_type_than_is_read_keeps_its_type_alone():
    spec = {"containers": SECRET, "nodeName": {"x": SECRET}, "tolerations": [SECRET], "nodeSelector": [SECRET]}
    kept = recorded({"metadata": {}, "spec": spec}, KINDS["pods"])
    assert kept["spec"] == {"containers": "", "nodeName": {}, "tolerations": [""], "nodeSelector": []}


def test_a_field_that_is_not_honoured_is_still_told_of_a_snapshot_but_its_value_is_not_kept():
    """Regression: what is only told was not kept, so a group of a snapshot lacked the Event about it."""
    job = {"metadata": {"name": "a"}, "spec": {"scheduling": {"disruptionMode": {"pods": SECRET}}}}
    kept = recorded(job, KINDS["jobs.batch"])
    assert SECRET not in json.dumps(kept)
    read = WORKLOADS.kinds["job"].read
    workload = read(msgspec.json.encode(kept))[1].workload
    assert workload is not None
    assert workload.ignored == ("spec.scheduling.disruptionMode",)
    group = {"metadata": {"name": "a"}, "spec": {"minMember": 2, "queue": SECRET}}
    kept = recorded(group, KINDS["podgroups.scheduling.volcano.sh"])
    assert SECRET not in json.dumps(kept)
    assert DEFAULT.kinds["volcano"].read("volcano", msgspec.json.encode(kept))[1].ignored == ("spec.queue",)


def test_the_template_and_the_end_of_a_workload_are_kept():
    """Regression: nothing was kept of a field that states what it means, unless it is a text or a number."""
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    status = {"conditions": [{"type": "Failed", "status": "True", "message": SECRET}]}
    job_set = {"spec": {"replicatedJobs": [{"template": {"spec": {"template": {"spec": {"containers": containers}}}}}]}}
    kept = recorded({"metadata": {"name": "a"}, **job_set, "status": status}, KINDS["jobsets.jobset.x-k8s.io"])
    assert kept["spec"] == job_set["spec"]
    assert kept["status"] == {"conditions": [{"type": "Failed", "status": "True"}]}


@pytest.mark.parametrize(
    ("status", "kept"),
    [
        ({"phase": "Failed", "reason": "TopologyAffinityError", "message": "no NUMA node"}, "no NUMA node"),
        ({"phase": "Failed", "message": "Pod was rejected: no room"}, "Pod was rejected: no room"),
        ({"phase": "Failed", "reason": "Error", "message": SECRET}, None),
        ({"phase": "Failed", "message": [SECRET]}, None),
    ],
)
def test_of_a_failed_pod_only_the_message_of_a_kubelet_that_rejected_it_is_kept(status, kept):
    ended = {"exitCode": 1, "message": SECRET, "startedAt": "2026-01-01T00:00:00Z"}
    found = {
        **status,
        "containerStatuses": [{"name": "main", "state": {"terminated": ended}}],
        "conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/1 nodes"},
            {"type": "example.com/ready", "status": "False", "message": SECRET},
        ],
    }
    recorded_pod = recorded({"metadata": {"name": "a"}, "status": found}, KINDS["pods"])
    assert SECRET not in json.dumps(recorded_pod)
    assert recorded_pod["status"].get("message") == kept
    assert recorded_pod["status"]["conditions"][0]["message"] == "0/1 nodes"
