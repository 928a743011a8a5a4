"""The pods that decide whose a group is are found without looking at all of them, and are the same ones."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.declarations.installation import owner_of
from gangsched.core.membership.contenders import Contenders
from gangsched.core.objects.pod import Pod, PodPhase
from tests.builders import pod
from tests.effort import examples

UIDS = ("p", "q", "r", "s")
CHANGES: st.SearchStrategy[Any] = st.one_of(
    st.tuples(
        st.just("seen"),
        st.sampled_from(UIDS),
        st.fixed_dictionaries(
            {
                "scheduler": st.sampled_from(("gangsched", "green", "volcano", "default-scheduler")),
                "node": st.sampled_from(("", "n1")),
                "created": st.sampled_from((1.0, 2.0)),
                "terminating": st.booleans(),
                "phase": st.sampled_from((PodPhase.PENDING, PodPhase.SUCCEEDED)),
            }
        ),
    ),
    st.tuples(st.just("gone"), st.sampled_from(UIDS), st.just({})),
)


@given(st.lists(CHANGES, max_size=30), st.sampled_from(("", "green", "volcano")), st.integers(0, 10))
@settings(max_examples=examples(300))
def test_one_pod_of_each_kind_tells_as_much_as_all_of_them(changes, annotated, asked_after):
    pods: dict[str, Pod] = {}
    contenders = Contenders(())
    for number, (what, uid, fields) in enumerate(changes):
        if what == "gone":
            pods.pop(uid, None)
        else:
            pods[uid] = replace(pod(uid, uid=uid), **fields)
            contenders.note(pods[uid])
        if number % (asked_after + 1):
            continue
        for ours in ((), {"default-scheduler"}):
            said = {"annotated": annotated, "kept_by": "", "ours": ours}
            assert owner_of(contenders.first(pods.get), **said) == owner_of(pods.values(), **said)


def test_what_is_kept_of_pods_that_have_left_does_not_grow_for_ever():
    contenders = Contenders(())
    for number in range(100):
        contenders.note(pod("p", uid=f"p-{number}"))
    assert contenders.outgrown(1)
    assert not contenders.outgrown(50)
