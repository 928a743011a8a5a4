"""A workload object owned by another one: what both declare together."""

from __future__ import annotations

import pytest

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import ForeignGroupsHidden
from gangsched.core.objects.podgroup import ForeignGroup
from tests.served import served_workload

KEY = GroupKey("ns", "train")
LEAST = "gangsched.io/min-member"


def jobset(annotations: dict[str, str] | None = None, *, below: bool = True) -> ForeignGroup:
    """A JobSet of 2 pods at once and 2 + 2 later, below a TrainJob of its name or not."""
    pod = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}}}]}}
    jobs = [{"name": name, "template": {"spec": {"parallelism": 2, "template": pod}}} for name in ("z", "b", "a")]
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "train", "uid": "top"}
    above = {"ownerReferences": [{**owner, "controller": True}]} if below else {}
    spec = {"replicatedJobs": jobs, "startupPolicy": {"startupPolicyOrder": "InOrder"}}
    return served_workload("jobset", "train", spec, namespace="ns", uid="u", annotations=annotations or {}, **above)


def train_job(annotations: dict[str, str] | None = None, *, uid: str = "top", suspend: bool = False) -> ForeignGroup:
    spec = {"suspend": suspend}
    return served_workload("trainjob", "train", spec, namespace="ns", uid=uid, annotations=annotations or {})


def found(*objects: ForeignGroup, hidden: ForeignGroupsHidden | None = None) -> ForeignGroup | None:
    """The JobSet as read among these objects."""
    foreign = Foreign()
    for each in objects:
        foreign.keep(each)
    if hidden is not None:
        foreign.hide(hidden)
    return foreign.find("jobset", KEY)


@pytest.mark.parametrize("least", [None, 1, 2, 3, 4, 5, 6, 9])
@pytest.mark.parametrize("where", ["above", "below"])
def test_a_minimum_means_the_same_wherever_it_is_annotated(least, where):
    said = {} if least is None else {LEAST: str(least)}
    alone = found(jobset(said, below=False))
    both = found(*((train_job(said), jobset()) if where == "above" else (train_job(), jobset(said))))
    assert alone is not None
    assert both is not None
    assert both.spec == alone.spec


def test_one_of_the_two_that_is_suspended_makes_both_idle():
    both = found(train_job(suspend=True), jobset())
    assert both is not None
    assert both.workload is not None
    assert both.workload.idle == "is suspended"


def test_an_error_above_is_one_below():
    both = found(train_job({LEAST: "x"}), jobset())
    assert both is not None
    assert both.spec is None
    assert both.error.startswith("TrainJob train: The annotation gangsched.io/min-member is 'x'")


@pytest.mark.parametrize(
    ("objects", "hidden", "seen"),
    [
        ((jobset(),), None, False),
        ((train_job(),), None, False),
        ((train_job(uid="another"), jobset()), None, False),
        ((train_job(), jobset()), None, True),
        ((train_job(), jobset()), ForeignGroupsHidden("trainjob", "later"), False),
        ((jobset(),), ForeignGroupsHidden("trainjob", "never", denied=True), True),
        ((train_job(), jobset()), ForeignGroupsHidden("jobset", "never", denied=True), False),
    ],
)
def test_it_is_seen_once_both_are_or_the_one_above_may_not_be_read(objects, hidden, seen):
    assert (found(*objects, hidden=hidden) is not None) == seen


def test_what_lies_below_an_object_is_forgotten_with_it():
    foreign = Foreign()
    foreign.keep(jobset())
    assert foreign.dependents("trainjob", KEY) == foreign.dependents_of_all("trainjob") == [("jobset", KEY)]
    foreign.keep(jobset(below=False))
    assert foreign.dependents_of_all("trainjob") == []
    foreign.keep(jobset())
    foreign.drop("jobset", KEY)
    assert foreign.dependents_of_all("trainjob") == []
