"""House rules of the tests on the real control plane, checked against their source."""

from __future__ import annotations

import ast
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "integration"
ELSEWHERE = {
    "test_gangs.py": "a namespace that is deleted",
    "test_control_plane.py": "the testbed's own tests",
    "test_helm.py": "the chart's tests, with a control plane of their own",
    "test_installations.py": "two installations on a control plane of their own",
    "test_leadership.py": "an API server without KWOK",
}
"""Modules that create pods outside the namespace of `Cluster`, where no name is used twice."""


def test_pods_are_created_in_one_way_that_may_create_one_again_under_its_name():
    by_hand = {path.name for path in FOLDER.glob("test_*.py") if creations(path.read_text(encoding="utf-8"))}
    assert by_hand - ELSEWHERE.keys() == set(), "call Cluster.add_pod or Cluster.make_pod"


def creations(source: str) -> list[ast.Call]:
    """The calls that post to a collection of pods."""
    tree = ast.parse(source)
    named = {
        target.id: ast.unparse(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "post"
        and node.args
        and _names_pods(named.get(ast.unparse(node.args[0]), ast.unparse(node.args[0])))
    ]


def _names_pods(path: str) -> bool:
    return path.rstrip("'\"").endswith(("/pods", "_pods"))
