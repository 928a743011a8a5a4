"""Rules for the whole schema, so that the API server accepts it and people understand it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangsched.api.custom_resource import crd

Node = dict[str, Any]


def _nodes(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    yield path, node
    for name, inner in node.get("properties", {}).items():
        yield from _nodes(inner, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            yield from _nodes(node[keyword], f"{path}[]")


ROOT = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
NODES = [found for part in ("spec", "status") for found in _nodes(ROOT["properties"][part], part)]
FIELDS = [(path, node) for path, node in NODES if not path.endswith("[]")]
PATHS = dict(NODES)


def test_every_field_is_described_in_whole_sentences():
    described = {path: node.get("description", "") for path, node in FIELDS}
    assert len(described) > 100
    assert [path for path, text in described.items() if not text.endswith(".") or "  " in text] == []


def is_bounded(node: Node) -> bool:
    match "int-or-string" if node.get("x-kubernetes-int-or-string") else node["type"]:
        case "string":
            return "enum" in node or "maxLength" in node
        case "array":
            return "maxItems" in node
        case "object":
            return "properties" in node or "maxProperties" in node
        case "boolean":
            return True
        case "integer":
            return node.get("format") == "int64" or {"minimum", "maximum"} <= node.keys()
    return {"minimum", "maxLength", "pattern"} <= node.keys()


def test_every_string_list_map_and_number_is_bounded():
    """The API server multiplies the largest sizes to estimate what a CEL rule may cost."""
    assert [path for path, node in NODES if not is_bounded(node)] == []


def test_the_schema_is_structural():
    forbidden = {"$ref", "$defs", "title", "const", "oneOf", "allOf", "not", "nullable"}
    for path, node in NODES:
        int_or_string = node.get("x-kubernetes-int-or-string", False)
        assert ("type" in node) is not int_or_string, path
        assert ("anyOf" in node) is int_or_string, path
        assert not forbidden & node.keys(), path
        assert node.get("additionalProperties") is not False, path


def test_lists_that_are_merged_by_key():
    keys = {path: node.get("x-kubernetes-list-map-keys") for path, node in NODES if "x-kubernetes-list-type" in node}
    assert keys == {"spec.roles": ["name"], "status.conditions": ["type"]}


def test_every_rule_has_a_message():
    rules = [rule for _, node in [("", ROOT), *NODES] for rule in node.get("x-kubernetes-validations", ())]
    assert len(rules) == 13
    assert all(rule["rule"] and len(rule["message"].split()) > 5 for rule in rules)
