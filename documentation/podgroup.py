"""The page docs/podgroup.md: each field of a PodGroup with its type, limits, default and meaning, from the models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from gangsched.api.conversion import group_from_object
from gangsched.api.custom_resource import crd
from gangsched.api.podgroup_names import API_VERSION, KIND

Schema = Mapping[str, Any]

_INT32 = 2**31 - 1
_OF_PODS = ("roles[].template.affinity", "roles[].template.tolerations")
"""Fields whose parts are those of a pod's spec, which Kubernetes documents."""
_EXAMPLE: Mapping[str, Any] = {
    "minMember": 4,
    "maxMember": 8,
    "maxScheduleTime": "10m",
    "timeoutPolicy": "Retry",
    "priorityClassName": "training",
    "onDegraded": "Restart",
    "roles": [{"name": "launcher", "minMember": 1, "maxMember": 1}, {"name": "worker", "minMember": 3}],
    "placement": {
        "strategy": "Pack",
        "topology": {"key": "topology.kubernetes.io/zone", "mode": "Required"},
        "prefer": [{"key": "example.com/generation", "order": "Descending"}],
    },
}


def page() -> str:
    """The page.

    Raises:
        ValueError: the example is not valid.
    """
    root = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec, status = root["properties"]["spec"], root["properties"]["status"]
    lines = [
        "# The PodGroup",
        "",
        f"This page lists the fields of a {KIND} of `{API_VERSION}` with their limits. Users write `spec`; gangsched",
        "writes `status`. `kubectl explain podgroups.gangsched.io.spec` shows the same texts. The parts of `affinity`",
        "and `tolerations` are those of a pod's spec.",
        "",
        "```yaml",
        _example(),
        "```",
        "",
        "## spec",
        "",
        *_table(spec),
        "",
        "The API server also refuses a PodGroup for which one of these does not hold; the message is as here:",
        "",
        *(f"- {where}: {message}" for where, message in _rules(root, "")),
        "",
        "## status",
        "",
        *_table(status),
        "",
    ]
    return "\n".join(lines)


def _example() -> str:
    """A PodGroup that uses most fields of the spec, in YAML."""
    metadata = {"name": "train", "namespace": "team-a"}
    body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": _EXAMPLE}
    stored = metadata | {"uid": "-", "creationTimestamp": "2026-01-01T00:00:00Z"}
    group = group_from_object(body | {"metadata": stored})
    if group.error:
        raise ValueError(f"the example is not valid: {group.error}")
    return str(yaml.safe_dump(body, sort_keys=False)).rstrip()


def _table(schema: Schema) -> Iterator[str]:
    yield from ("| field | type and limits | default | meaning |", "|---|---|---|---|")
    for path, field, is_required in _fields(schema, ""):
        default = (
            "required" if is_required else f"`{field['default']}`" if field.get("default") not in (None, "") else ""
        )
        meaning = str(field.get("description", "")).replace("|", "\\|")
        yield f"| `{path}` | {_type(field)} | {default} | {meaning} |"


def _fields(schema: Schema, path: str) -> Iterator[tuple[str, Schema, bool]]:
    """Each field below the schema: its path, its own schema, and whether it must be there."""
    for name, field in (schema.get("properties") or {}).items():
        where = f"{path}.{name}" if path else name
        yield where, field, name in schema.get("required", ())
        inner = field.get("items") or field.get("additionalProperties") or field
        below = f"{where}[]" if "items" in field else f"{where}.*" if field.get("additionalProperties") else where
        if isinstance(inner, Mapping) and where not in _OF_PODS:
            yield from _fields(inner, below)


def _rules(schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    """The path and the message of each rule in the schema."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield (f"`{path}`" if path else "the PodGroup"), rule["message"]
    for name, field in (schema.get("properties") or {}).items():
        yield from _rules(field, f"{path}.{name}" if path else name)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            yield from _rules(schema[key], f"{path}[]" if key == "items" else f"{path}.*")


def _type(field: Schema) -> str:
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"] if value)
    kind = str(field.get("type", "any"))
    if kind == "array":
        return f"list{_most(field, 'maxItems', 'items')}"
    if kind == "object" and "additionalProperties" in field:
        return f"map{_most(field, 'maxProperties', 'keys')}"
    if kind == "integer":
        least, most = field.get("minimum"), field.get("maximum")
        bounds = [f"at least {least}"] if least is not None and least > -_INT32 - 1 else []
        bounds += [f"at most {most}"] if most is not None and most < _INT32 else []
        return ", ".join(["integer", *bounds])
    if kind == "string":
        return f"{'time' if field.get('format') == 'date-time' else 'string'}{_most(field, 'maxLength', 'characters')}"
    return kind


def _most(field: Schema, key: str, what: str) -> str:
    return f", at most {field[key]} {what}" if key in field else ""
