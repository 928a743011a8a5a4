"""The owner of a group: every installation derives the same one from the pods and the PodGroup."""

from __future__ import annotations

import pytest

from gangsched.core.declarations.installation import KUBE_SCHEDULER, owner_of
from tests.builders import pod

OURS = pod("old", scheduler="gangsched", created=1.0)
GREEN = pod("new", scheduler="green", created=2.0)


@pytest.mark.parametrize(
    ("pods", "annotated", "kept_by", "owner"),
    [
        ([], "", "", "gangsched"),
        ([], "", "green", "green"),
        ([], "blue", "green", "blue"),
        ([GREEN], "", "", "green"),
        ([GREEN], "gangsched", "gangsched", "green"),
        ([OURS, GREEN], "", "", "gangsched"),
        ([OURS, GREEN], "green", "", "green"),
        ([OURS, GREEN], "blue", "", "gangsched"),
        ([OURS, pod("new", scheduler="green", created=2.0, node="n1")], "", "", "green"),
        ([pod("old", created=1.0, terminating=True), GREEN], "", "", "green"),
        ([pod("old", created=1.0, phase="Succeeded"), GREEN], "", "", "green"),
        ([pod("old", scheduler="green", phase="Succeeded")], "", "", "green"),
        ([pod("p", scheduler="default-scheduler", node="n1")], "", "", "gangsched"),
        ([pod("p", scheduler="default-scheduler", node="n1"), GREEN], "", "", "green"),
        ([pod("p", scheduler="volcano", created=0.0), GREEN], "", "", "green"),
        ([pod("p", scheduler="volcano", created=0.0)], "", "", "volcano"),
        ([pod("p", scheduler="green", created=1.0, uid="b"), pod("p", created=1.0, uid="a")], "", "", "gangsched"),
    ],
)
def test_the_pods_decide_and_then_what_the_podgroup_says(pods, annotated, kept_by, owner):
    for order in (pods, pods[::-1]):
        assert owner_of(order, annotated=annotated, kept_by=kept_by, ours=()) == owner


def test_the_name_of_kube_scheduler_counts_where_it_is_served():
    pods = [pod("p", scheduler=KUBE_SCHEDULER)]
    assert owner_of(pods, annotated="", kept_by="", ours={KUBE_SCHEDULER}) == KUBE_SCHEDULER
