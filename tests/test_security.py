"""docs/security.md: every right of the chart has a reason."""

from __future__ import annotations

import re

import pytest
import yaml

from documentation.generate import ROOT
from documentation.security import CHART, SecurityError, filled
from gangsched.config.settings import Settings
from gangsched.runtime.metrics import describe

TEMPLATE = (CHART / "templates" / "rbac.yaml").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("verbs: [get, list, watch]", "verbs: [get, list, watch, delete]", "grants delete of pods without a reason"),
        ("resources: [nodes, ", "resources: [nodes, secrets, ", "grants list of secrets without a reason"),
        ("resources: [pods/status]", "resources: [pods/log]", "grants patch of pods/log without a reason"),
        ("verbs: [get, patch]\n", "verbs: [get]\n", "a reason for patch of coordination.k8s.io/leases"),
        ("[pods/binding, pods/eviction]", "[pods/binding]", "a reason for create of pods/eviction"),
        ("verbs: [create, update, ", "verbs: [create, ", "a reason for update of gangsched.io/podgroups"),
        (
            '- apiGroups: [""]\n  resources: [pods/status]',
            "- resources: [pods/status]",
            "not written as the others are",
        ),
    ],
)
def test_a_right_without_a_reason_and_a_reason_without_a_right_are_errors(old, new, said):
    assert old in TEMPLATE
    with pytest.raises(SecurityError, match=said):
        filled(PAGE, TEMPLATE.replace(old, new, 1))


def test_no_metric_names_a_namespace_a_group_or_a_pod():
    labels = {label for metric in describe() for label in metric.labels}

    assert labels <= {
        *("outcome", "phase", "priority", "problem", "python", "reason", "resource", "result", "stage"),
        *("basis", "cause", "ending", "kind", "status", "step", "type", "verb", "version"),
    }


def test_the_settings_for_tenants_who_do_not_trust_each_other_are_settings():
    [block] = re.findall(r"```yaml\n(config:.*?)```", PAGE, flags=re.DOTALL)

    settings = Settings.model_validate(yaml.safe_load(block)["config"])

    assert (settings.priority_from, settings.namespace_limits.free_places) == ("Members", 0)
