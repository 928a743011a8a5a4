"""A workload's pods get the same declaration in whatever order the objects become known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.events import (
    Event,
    ForeignGroupGone,
    ForeignGroupSeen,
    ForeignGroupsHidden,
    ForeignGroupsReplaced,
    NamespaceGone,
    NamespaceSeen,
    PodGone,
    PodSeen,
    Synced,
)
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.workload import Added
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.workloads.workload_kind import Mark
from tests.builders import pod
from tests.served import KINDS, served_group, served_workload

NAMES = ("a",)
EXPLICIT = Declaration(group="chosen", min_member=2)
NATIVE_GROUP = DEFAULT.declaration({}, {}, scheduling_group="n")


def workload(kind: str, name: str, uid: str, annotations: dict[str, str]) -> ForeignGroup:
    top = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": name, "uid": uid}
    owners = {"ownerReferences": [{**top, "controller": True}]} if kind == "jobset" else {}
    return served_workload(kind, name, {}, uid=uid, annotations=annotations, **owners)


def native(made_for: str, policy: str = "basic") -> ForeignGroup:
    """The native group that pods name, made by the controller of the object with this UID; by nobody's if empty."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": made_for, "controller": True}
    spec = {"schedulingPolicy": {policy: {"basic": {}, "gang": {"minCount": 2}}[policy]}}
    return served_group("native", "n", spec, uid="u", ownerReferences=[owner] if made_for else [])


def pod_of(kind: str, name: str, uid: str, number: int, *, explicit: bool, mine: bool, certain: bool | None) -> Pod:
    """A pod of the workload; with `certain` it names the native group, and may itself show who has added that."""
    carried = KINDS[kind].workload(Mark(name, "" if kind == "lws" else uid, size=3 if kind == "lws" else None))
    said = EXPLICIT if explicit else None
    if not explicit and certain is not None:
        assert NATIVE_GROUP is not None
        said, carried = NATIVE_GROUP, structs.replace(carried, added=Added(NATIVE_GROUP, certain))
    return pod(
        f"default/{kind}-{name}-{number}",
        group="",
        declaration=said,
        workload=None if explicit else carried,
        owner=Owner("Job", name, uid if kind == "job" else f"{kind}-{uid}", "batch"),
        scheduler="gangsched" if mine else "other",
    )


NAMES_A_GROUP = pod_of("job", "a", "1", 0, explicit=True, mine=True, certain=None)
OBJECT, KIND = st.sampled_from(("job", "lws", "jobset", "trainjob")), st.sampled_from(("job", "lws", "jobset"))
NAME, UID = st.sampled_from(NAMES), st.sampled_from(("1", "2"))
ANNOTATIONS = st.sampled_from(
    ({}, {"gangsched.io/gang": "true"}, {"gangsched.io/gang": "false"}, {"gangsched.io/gang": "?"})
).flatmap(lambda said: st.sampled_from((said, said | {"gangsched.io/min-member": "2"})))
NATIVE = st.builds(native, st.sampled_from(("", "1", "2")), st.sampled_from(("basic", "gang")))
LABELS = st.sampled_from(((), (("gangsched.io/gang", "auto"),), (("gangsched.io/gang", "true"),)))
EVENTS = st.lists(
    st.one_of(
        st.builds(NamespaceSeen, st.just("default"), LABELS),
        st.just(NamespaceGone("default")),
        st.builds(ForeignGroupSeen, st.builds(workload, OBJECT, NAME, UID, ANNOTATIONS)),
        st.builds(
            lambda kind, name: ForeignGroupGone(kind, workload(kind, name, "", {}).key),
            OBJECT,
            NAME,
        ),
        st.builds(ForeignGroupsHidden, OBJECT, st.just("It cannot be read."), st.booleans()),
        st.builds(
            lambda kind, names: ForeignGroupsReplaced(kind, tuple(workload(kind, name, "1", {}) for name in names)),
            OBJECT,
            st.sets(NAME),
        ),
        st.builds(
            PodSeen,
            st.builds(
                pod_of,
                KIND,
                NAME,
                UID,
                st.integers(0, 1),
                explicit=st.booleans(),
                mine=st.booleans(),
                certain=st.sampled_from((None, False, True)),
            ),
        ),
        st.builds(ForeignGroupSeen, NATIVE),
        st.just(ForeignGroupGone("native", native("").key)),
        st.builds(ForeignGroupsHidden, st.just("native"), st.just("It cannot be read."), st.booleans()),
        st.builds(lambda groups: ForeignGroupsReplaced("native", tuple(groups)), st.lists(NATIVE, max_size=1)),
        st.builds(
            lambda kind, name, number: PodGone(f"uid-default/{kind}-{name}-{number}"), KIND, NAME, st.integers(0, 1)
        ),
    ),
    max_size=30,
)


def declared(machine: Machine) -> dict[str, Declaration | None]:
    return {uid: each.declaration for uid, each in machine.cluster.pods.items()}


@given(EVENTS, st.integers(0, 30))
def test_deciding_anew_gives_the_same_as_deciding_at_first(events: list[Event], synced: int) -> None:
    machine = Machine(Policy())
    for number, event in enumerate(events):
        # A time of 0.0 would mean none.
        machine.handle([event, Synced()] if number == synced else [event], 1.0 + number)
        assert machine.validate() == []
    successor = Machine(Policy())
    successor.handle([*machine.facts(), Synced()], 100.0)

    assert declared(successor) == declared(machine)
    assert successor.validate() == []


@given(EVENTS)
def test_members_of_one_gang_that_count_have_one_owner_of_a_name(events: list[Event]) -> None:
    """An owner that was deleted and created again under its name has another UID; only one of the two exists."""
    machine = Machine(Policy())
    machine.handle([*events, PodSeen(NAMES_A_GROUP), Synced()], 1.0)
    assert machine.gangs
    for gang in machine.gangs.values():
        owners = {(each.owner.name, each.owner.uid) for each in gang.live() if each.owner is not None}
        assert len(owners) == len({name for name, _ in owners})


@given(EVENTS)
def test_a_group_that_a_pod_names_always_wins(events: list[Event]) -> None:
    machine = Machine(Policy())
    machine.handle([*events, PodSeen(NAMES_A_GROUP), Synced()], 1.0)
    last = {event.pod.uid: event.pod for event in events if isinstance(event, PodSeen)}
    last[NAMES_A_GROUP.uid] = NAMES_A_GROUP
    naming = [known for uid, known in machine.cluster.pods.items() if last[uid].workload is None]
    assert {known.declaration for known in naming} == {EXPLICIT}


@given(
    st.permutations(
        [
            NamespaceSeen("default", (("gangsched.io/gang", "auto"),)),
            ForeignGroupSeen(workload("job", "a", "1", {})),
            ForeignGroupSeen(native("1")),
            PodSeen(pod_of("job", "a", "1", 0, explicit=False, mine=True, certain=False)),
            Synced(),
        ]
    ),
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(("1", "2", "", "gone"))), max_size=3),
)
def test_the_automatic_gang_counts_if_the_controller_made_the_native_group_whatever_is_seen_first(
    events: list[Event], changes: list[tuple[int, str]]
) -> None:
    """The group may also be replaced on the way by one of another controller's, or go."""
    steps: list[Event] = list(events)
    for at, made_for in changes:
        group = native("" if made_for == "gone" else made_for)
        steps.insert(at, ForeignGroupGone("native", group.key) if made_for == "gone" else ForeignGroupSeen(group))
    machine = Machine(Policy())
    made_for = ""
    for number, event in enumerate(steps):
        machine.handle([event], 1.0 + number)
        assert machine.validate() == []
        if isinstance(event, ForeignGroupSeen) and event.group.dialect == "native":
            made_for = event.group.made_for
        elif isinstance(event, ForeignGroupGone):
            made_for = ""
    ((said),) = declared(machine).values()
    assert said is not None
    assert (said.group, said.passed_over) == (("job.a", "n") if made_for == "1" else ("n", ""))
