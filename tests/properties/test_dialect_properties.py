"""Pods with arbitrary declarations in any dialect: nothing breaks, and no group is partly bound."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.objects.declaration import Declaration
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import group, key, node, pod
from tests.harness import Harness

NAMES = st.sampled_from(("g", "h"))
COUNTS = st.sampled_from(("1", "2", "3", "x"))
LISTS = st.sampled_from(
    (
        json.dumps([{"name": "w", "minMember": 2}]),
        json.dumps([{"name": "w", "minMember": 1}, {"name": "d", "minMember": 1}]),
        "[]",
    )
)
OURS = st.fixed_dictionaries({"gangsched.io/pod-group": NAMES})
KUEUE = st.fixed_dictionaries({"kueue.x-k8s.io/pod-group-name": NAMES})
APPLICATION = st.fixed_dictionaries({"yunikorn.apache.org/app-id": NAMES})
LABELS: st.SearchStrategy[dict[str, str]] = st.one_of(
    st.just({}), OURS, KUEUE, APPLICATION, st.builds(lambda one, other: one | other, OURS, KUEUE)
)
ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        "gangsched.io/min-member": COUNTS,
        "kueue.x-k8s.io/pod-group-total-count": COUNTS,
        "scheduling.k8s.io/group-name": NAMES,
        "gang-scheduling.preferred.jp/gang-name": NAMES,
        "gang-scheduling.preferred.jp/gang-size": COUNTS,
        "gang.scheduling.koordinator.sh/name": NAMES,
        "gang.scheduling.koordinator.sh/min-available": COUNTS,
        "yunikorn.apache.org/task-groups": LISTS,
        "yunikorn.apache.org/task-group-name": st.sampled_from(("w", "d")),
    },
)
OTHER = key("h")
"""A group that waits for another member all the time."""
SAID = st.tuples(LABELS, ANNOTATIONS, st.sampled_from(("", "native")))


@given(st.lists(SAID, min_size=1, max_size=3), st.integers(1, 6), st.booleans())
def test_no_group_is_bound_in_part_whatever_its_pods_say(said, number, declared):
    harness = Harness.of(node(cpu=4), *([group("g", min_member=2)] if declared else []))
    harness.add(pod("h-0", declaration=Declaration(OTHER.name, min_member=2)))
    for place in range(number):
        labels, annotations, native = said[place % len(said)]
        declaration = DEFAULT.declaration(labels, annotations, scheduling_group=native)
        harness.wait(2, pod(f"p-{place}", group="", declaration=declaration))
        assert OTHER in harness.machine.assessments
        for group_key, assessment in harness.machine.assessments.items():
            gang = harness.machine.gangs[group_key]
            if assessment.terms.hindrance is None and not gang.plain:
                bound = len(assessment.census.bound)
                assert bound == 0 or bound >= gang.record.minimum > 0
    harness.wait(100)
