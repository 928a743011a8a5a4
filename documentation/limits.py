"""The page docs/limits.md: the fixed limits that users may meet, with the values and texts of the code."""

from __future__ import annotations

import importlib

from documentation.docstrings import constants

_SUBJECTS = {
    "Groups": (
        ("Characters in the name of a PodGroup", "api.podgroup_spec", "MAX_NAME"),
        ("Roles of a group", "kube.dialects.dialect_kind", "MOST_ROLES"),
        ("PodGroups of a tree", "core.declarations.trees", "MOST_LEAVES"),
        ("Levels of a tree", "core.declarations.trees", "MOST_LEVELS"),
        ("Places held for members that do not exist yet", "core.declarations.hindrances", "MOST_PLACES"),
        ("Jobs of a JobSet", "kube.workloads.jobset", "MOST_JOBS"),
    ),
    "Constraints of a pod": (
        ("Required terms of (anti-)affinity and spread", "kube.terms.unsupported", "MOST_TERMS"),
        ("Claims in one search for devices", "core.constraints.allocation", "MOST_ERRANDS"),
        ("Devices tried in one search", "core.constraints.allocation", "MOST_STEPS"),
        ("Devices of one claim", "core.objects.devices", "MOST_DEVICES"),
        ("Consumers of one claim", "core.objects.devices", "MOST_RESERVED"),
        ("Argument of `lists.range` in a device selector", "kube.cel.evaluation", "LONGEST_RANGE"),
    ),
    "Search for places": (
        ("Members of a gang whose arrangements are searched", "core.planning.backtracking", "MOST_MEMBERS"),
        ("Nodes × classes of members in one search", "core.planning.search", "WIDEST"),
        ("Kinds of members of which selections are tried", "core.planning.search", "MOST_KINDS"),
        ("Steps of one search", "core.planning.search", "STEPS"),
    ),
    "Status, Events and conditions": (
        ("Groups of nodes in `status.fitting`", "core.objects.status", "MOST_FITTING"),
        ("Remedies in `status.helps`", "core.objects.status", "MOST_HELPS"),
        ("Demands in a status", "core.objects.status", "MOST_DEMANDS"),
        ("Delay of Events on members, in seconds", "core.status.pod_events", "LONGEST_DELAY_S"),
        ("Characters quoted of a kubelet", "kube.terms.pod_failures", "LONGEST_SAID"),
    ),
    "Operator and page": (
        ("Finished PodGroups deleted in a second", "config.pod_groups", "MOST_A_SECOND"),
        ("Connections to the port of metrics and probes", "runtime.connections", "MOST_CONNECTIONS"),
        ("Connections to the page", "page.listener", "MOST_CONNECTIONS"),
        ("Browsers that use the page", "page.server", "MOST_BROWSERS"),
        ("Bytes of a manifest that the page tries", "page.server", "MOST_BYTES"),
        ("Pods that `simulate` makes", "whatif.world.made", "MOST_PODS"),
        ("Levels of a YAML or JSON file", "config.yaml_documents", "MOST_LEVELS"),
    ),
}
"""What is limited, and the constant that says so: its module below `gangsched` and its name."""


def page() -> str:
    """The page.

    Raises:
        KeyError: a constant has no docstring.
    """
    lines = [
        "# Limits",
        "",
        "This page lists limits that are fixed in the code. Those of the fields of a PodGroup are in",
        "[the PodGroup](podgroup.md), and those that the configuration sets in [Configuration](configuration.md).",
    ]
    for subject, rows in _SUBJECTS.items():
        lines += ["", f"## {subject}", "", "| what | limit | meaning |", "|---|---|---|"]
        for what, module_name, name in rows:
            module = importlib.import_module(f"gangsched.{module_name}")
            text = dict(constants(module))[name]
            lines.append(f"| {what} | {int(getattr(module, name)):,} | {text} |")
    return "\n".join([*lines, ""])
