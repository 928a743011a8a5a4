"""The pods that decide whose a group is are found without looking at all of them, and are the same ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.declarations.installation import Contenders, owner_of
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
    contenders = Contenders()
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
            assert owner_of(contenders.first(pods.values, names=pods.__contains__), **said) == owner_of(
                pods.values(), **said
            )


def test_all_pods_are_looked_at_again_only_if_one_that_decides_leaves_or_steps_back():
    pods = {f"p-{at}": pod(f"p-{at}", uid=f"p-{at}", created=float(at)) for at in range(9)}
    looks = []

    def all_pods() -> Iterable[Pod]:
        looks.append(True)
        return pods.values()

    contenders = Contenders()

    def first() -> list[str]:
        return [each.name for each in contenders.first(all_pods, names=pods.__contains__)]

    assert (first(), len(looks)) == (["p-0"], 1)
    del pods["p-5"]
    contenders.note(replace(pods["p-6"], node="n1"))
    assert (first(), len(looks)) == (["p-6"], 1)
    del pods["p-6"]
    assert (first(), len(looks)) == (["p-0"], 2)
    pods["p-0"] = replace(pods["p-0"], created=99.0)
    contenders.note(pods["p-0"])
    assert (first(), len(looks)) == (["p-1"], 3)
