"""docs/security.md: every right of the chart has a reason."""

from __future__ import annotations

import pytest

from testbed.docs import ROOT
from testbed.security import CHART, SecurityError, filled

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
