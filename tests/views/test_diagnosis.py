"""The changes that would unblock a group, found on a copy of the cluster."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec.structs import replace

from gangsched.cli.explain_all import copied, waiting
from gangsched.cli.explain_text import lines
from gangsched.core.objects.declaration import GroupKey, Role, Topology
from gangsched.core.objects.events import (
    Event,
    ForeignGroupsReplaced,
    NodesReplaced,
    PodsReplaced,
    Synced,
)
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Minima, Outcome, Phase, Record
from gangsched.core.objects.status import Condition, GroupStatus
from gangsched.core.objects.workload import Workload
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.views.diagnosed import PodShares, from_status
from gangsched.views.diagnosis import from_cluster
from gangsched.views.diagnosis_json import as_object
from tests.builders import foreign_group, group, node, pod
from tests.clusters import listed

NOW = 1_000_000.0


def diagnose(*things, name="a"):
    return from_cluster(listed(*things), GroupKey("default", name), policy=Policy(), now=NOW)


def members(number, **fields):
    return [pod(f"a-{each}", **fields) for each in range(number)]


def holder(name, cpu, on="n1"):
    return pod(f"{name}-0", group=name, cpu=cpu, node=on, scheduler="other")


def test_a_group_in_its_back_off_is_tried_on_the_copy_all_the_same():
    record = Record(
        phase=Phase.TIMED_OUT, run_start=NOW - 100, timeouts=1, retry_at=NOW + 60, rollback_note="1 was bound"
    )
    found = diagnose(node(cpu="1"), group(min_member=2, status=GroupStatus(record)), *members(2))
    assert (found.phase, found.reason) == ("TimedOut", "NeverFits")
    assert found.shortfall.fits == 1
    assert any("tried again after a back-off" in line for line in lines(found, width=400)), "it reads as given up"


def of_a_suspended_job(*, outcome: Outcome = Outcome.UNDECIDED, phase: Phase = Phase.SUSPENDED) -> Group:
    told = Condition("Scheduled", False, Reason.SUSPENDED, "No member is left, because the Job t is suspended.", NOW)
    record = Record(
        phase=phase,
        run_start=NOW - 100,
        scheduled_at=NOW - 90 if outcome is Outcome.UNDECIDED else 0.0,
        satisfied=Minima(2),
        outcome=outcome,
        workload=Workload("job", "t", None, "uid-t"),
    )
    return group(min_member=2, status=GroupStatus(record, (told,) if phase is Phase.SUSPENDED else ()))


@pytest.mark.parametrize("outcome", [Outcome.UNDECIDED, Outcome.NONE])
def test_a_suspended_group_is_told_as_the_operator_says_it_because_jobs_are_not_read(outcome: Outcome):
    found = diagnose(of_a_suspended_job(outcome=outcome))
    said = "No member is left, because the Job t is suspended."
    assert (found.phase, found.reason, found.message, found.helps) == ("Suspended", "Suspended", said, ())


def test_a_suspended_group_that_has_a_member_again_is_suspended_no_more():
    found = diagnose(of_a_suspended_job(), *members(1))
    assert (found.phase, found.reason) == ("Pending", "GangIncomplete")


def test_a_group_whose_members_were_deleted_needs_others():
    found = diagnose(of_a_suspended_job(phase=Phase.PENDING))
    assert (found.phase, found.reason) == ("Pending", "NoMembers")
    assert found.helps == ("2 more members, with the label gangsched.io/pod-group: a",)


def test_a_suspended_group_does_not_wait():
    def waits(there: Group) -> list[str]:
        return [each.key.name for each in waiting(copied(listed(there), policy=Policy(), now=NOW))]

    assert (waits(of_a_suspended_job()), waits(of_a_suspended_job(phase=Phase.PENDING))) == ([], ["a"])


class TestBeforeTheStart:
    """A group with minResources is not helped by room for the members that exist."""

    def start(self, *others: Pod):
        declaration = DEFAULT.declaration({}, {"scheduling.k8s.io/group-name": "a"})
        asking = foreign_group("volcano", "default/a", min_member=1, min_resources=(("cpu", 5000),))
        events: list[Event] = [
            NodesReplaced((node(cpu="8"),)),
            ForeignGroupsReplaced("volcano", (asking,)),
            PodsReplaced((*others, pod("a-0", declaration=declaration))),
            Synced(),
        ]
        return from_cluster(events, GroupKey("default", "a"), policy=Policy(), now=NOW)

    def test_what_must_be_free_in_all_is_said_and_whose_end_would_free_it(self):
        found = self.start(holder("big", "5"), holder("small", "1"))
        assert (found.reason, found.shortfall.lacks) == ("Unschedulable", (("cpu", 3000),))
        assert "minResources (cpu 5)" in found.message
        assert found.helps == (
            "the end of default/big: the group fits then",
            "cpu 3 more, free anywhere in the cluster, or lower minResources",
        )

    def test_with_as_much_free_it_does_not_wait(self):
        assert self.start(holder("small", "3")).shortfall is None


class TestEnds:
    def test_each_holder_whose_end_alone_suffices_is_named_the_largest_first(self):
        found = diagnose(node(cpu="8"), holder("big", "5"), holder("small", "3"), group(min_member=3), *members(3))
        assert found.helps[:2] == (
            "the end of default/big: the group fits then",
            "the end of default/small: the group fits then",
        )

    def test_where_no_single_one_suffices_the_fewest_together_are_named(self):
        held = [holder("x", "3"), holder("y", "3"), holder("z", "2")]
        found = diagnose(node(cpu="8"), *held, group(min_member=5), *members(5))
        assert found.helps[0] == "the end of default/x and default/y together: the group fits then"
        assert not any("default/z" in said for said in found.helps)

    def test_a_holder_on_a_node_that_does_not_accept_the_group_holds_nothing_of_it(self):
        elsewhere = node("n2", unschedulable=True)
        found = diagnose(node(cpu="1"), elsewhere, holder("x", "5", on="n2"), group(min_member=2), *members(2))
        assert found.shortfall.held == []

    def test_no_end_helps_where_even_empty_nodes_are_too_small(self):
        found = diagnose(node(cpu="2"), holder("x", "1"), group(min_member=3), *members(3))
        assert found.reason == "NeverFits"
        assert not any(said.startswith("the end of default/x") for said in found.helps)

    def test_a_group_bound_on_the_copy_alone_is_a_holder_too_and_is_put_back(self):
        first = [pod(f"b-{each}", group="b") for each in range(3)]
        found = diagnose(
            *(node(cpu="5"), group("b", min_member=3, priority=9), *first),
            *(holder("x", "1"), group(min_member=3), *members(3)),
        )
        assert found.shortfall.held == [(GroupKey("default", "b"), 3000), (GroupKey("default", "x"), 1000)]
        assert [said for said in found.helps if "the end of" in said] == ["the end of default/b: the group fits then"]

    def test_a_pod_without_a_group_that_has_the_groups_name_is_a_holder(self):
        """It was taken for a member, so that nobody was said to hold what lacks."""
        found = diagnose(node(cpu="8"), pod("a", group="", cpu="6", node="n1"), group(min_member=2), *members(2, cpu=2))
        assert [(str(holder), amount) for holder, amount in found.shortfall.held] == [("default/a", 6000)]
        assert "Held by default/a (cpu 6)" in found.message
        assert found.helps[0] == "the end of default/a: the group fits then"

    def test_its_own_members_are_no_holders(self):
        found = diagnose(node(cpu="1"), group(min_member=2), pod("a-0", node="n1"), pod("a-1"))
        assert found.shortfall.held == []


class TestOpenings:
    @pytest.mark.parametrize(
        ("closed", "said"),
        [
            (node("n2", unschedulable=True), "uncordoning nodes: 1 node cordoned"),
            (node("n2", taints=["k=v:NoSchedule"]), "tolerating or removing k=v:NoSchedule: 1 node with that taint"),
        ],
    )
    def test_nodes_that_are_closed_are_an_opening(self, closed, said):
        assert said in diagnose(node(cpu="1"), closed, group(min_member=2), *members(2)).helps

    def test_a_selector_that_matches_nothing_is_one(self):
        found = diagnose(node(), group(min_member=1), *members(1, node_selector={"disk": "ssd"}))
        assert "a wider nodeSelector disk=ssd: 1 node not matched" in found.helps

    @pytest.mark.parametrize(
        ("closed", "wanted", "remedy"),
        [
            (node("n1", labels={"disk": "hdd"}), {"node_selector": {"disk": "ssd"}}, "a wider nodeSelector"),
            (node("n1", taints=["k=v:NoSchedule"]), {}, "tolerating or removing k=v:NoSchedule"),
            (node("n1", unschedulable=True), {}, "uncordoning nodes"),
        ],
    )
    def test_where_no_node_accepts_the_members_more_room_is_no_remedy(self, closed, wanted, remedy):
        """Regression: a misspelt nodeSelector was answered with "cpu 2 more" first of all."""
        found = diagnose(closed, group(min_member=2), *members(2, **wanted))
        assert [each.startswith(remedy) for each in found.helps] == [True]

    def test_without_nodes_room_is_the_remedy(self):
        found = diagnose(group(min_member=2), *members(2))
        assert found.helps == ("cpu 2 more on nodes that accept its members, cpu 1 per member",)

    def test_where_enough_is_free_in_pieces_the_size_of_a_piece_is_named(self):
        found = diagnose(node("n1", cpu="3"), node("n2", cpu="3"), group(min_member=3), *members(3, cpu="2"))
        assert found.shortfall.lacks == ()
        assert found.shortfall.fits == 2
        assert "nodes with cpu 2 free for each member that does not fit" in found.helps

    def test_where_nodes_refuse_for_other_reasons_more_room_is_no_remedy(self):
        """Room on more nodes was said to help members that no node accepts."""
        others = pod("b", group="a", node_selector={"x": "y"})
        found = diagnose(node("n1", cpu=8), group(min_member=3), *members(2), others)
        assert found.helps == (
            "a wider nodeSelector x=y: 1 node not matched",
            "a minimum of at most 2: that many members fit now",
        )
        assert "  lacks       nothing in total" in list(lines(found))

    def test_a_topology_that_no_node_has_the_label_of_is_named_and_no_amount(self):
        """Another node without the label changes nothing, however large."""
        found = diagnose(node("n1"), group(min_member=2, topology=Topology("rack")), *members(2))
        assert found.helps == ("the label rack on nodes, or no topology",)
        assert found.shortfall is not None
        assert (found.shortfall.lacks, found.shortfall.resource) == ((), "")
        assert found.message == "No node has the label rack of its topology: label the nodes, or remove the topology."

    def test_members_that_differ_lack_no_amount_each(self):
        found = diagnose(node("n1", cpu=3), group(min_member=3), *members(2), pod("b", group="a", cpu=2))
        assert found.helps[0] == "cpu 1 more on nodes that accept its members"

    @pytest.mark.parametrize(("roles", "offered"), [((), True), ((Role("w", 2),), False)])
    def test_a_lower_minimum_is_offered_where_some_fit_and_no_role_forbids_it(self, roles, offered):
        found = diagnose(node(cpu="1"), group(min_member=2, roles=roles), *members(2, role="w" if roles else ""))
        assert ("a minimum of at most 1: that many members fit now" in found.helps) is offered


class TestIncomplete:
    def test_members_that_lack_are_counted_by_role(self):
        found = diagnose(group(min_member=2, roles=(Role("w", 2),)), *members(1, role="w"))
        assert found.helps == (
            "1 more member, with the label gangsched.io/pod-group: a",
            "1 more member of role w",
        )

    def test_members_with_scheduling_gates_are_counted(self):
        found = diagnose(group(min_member=2), pod("a-0"), pod("a-1", gated=True))
        assert "removing the scheduling gates of 1 member, which do not count until then" in found.helps

    def test_a_hindrance_brings_its_own_remedy(self):
        found = diagnose(node(), *members(1))
        assert (found.reason, found.helps) == ("PodGroupNotFound", ())
        assert "create it" in found.message

    def test_a_minimum_that_nobody_declares_is_not_needed(self):
        """Regression: "9 exist, 1 needed"."""
        found = diagnose(node(), *members(9))
        assert (found.reason, found.minimum) == ("PodGroupNotFound", 0)
        assert [line.strip() for line in lines(found)][1] == "members     9 exist, 0 bound"


def test_a_group_that_fits_is_told_so():
    found = diagnose(node(), group(min_member=2), *members(2))
    assert found.phase == "Queued"
    assert "It fits now" in found.message
    assert found.shortfall is None


def test_members_above_the_minimum_that_wait_are_told_besides():
    found = diagnose(node(cpu="1"), group(min_member=1), pod("a-0", node="n1"), pod("a-1"))
    assert found.phase == "Scheduled"
    assert found.besides[0].startswith("1 more member waits still for room: No node has room")


def test_what_nobody_declares_is_not_found():
    assert diagnose(node(), group(), name="other") is None


def test_a_status_that_was_never_written_says_so():
    found = from_status(group(status=GroupStatus()))
    assert (found.phase, found.reason, found.minimum) == ("", "", 5)
    assert found.message == "It has no status yet: check that the operator runs."


def test_what_the_operator_may_not_read_is_told_though_the_caller_may():
    said = DEFAULT.declaration({}, {"pod-group-name": "a"})
    message = "Group a: gangsched may not read it: grant it."
    pods = [
        pod(f"a-{number}", declaration=said, condition_reason="PodGroupUnreadable", condition_message=message)
        for number in range(2)
    ]
    events: list[Event] = [
        NodesReplaced((node(),)),
        ForeignGroupsReplaced("kai", (foreign_group("kai"),)),
        PodsReplaced(tuple(pods)),
        Synced(),
    ]
    found = from_cluster(events, GroupKey("default", "a"), policy=Policy(), now=NOW)
    assert found is not None
    assert (found.phase, found.reason, found.message) == (
        "Pending",
        "PodGroupUnreadable",
        "gangsched may not read it: grant it.",
    )
    assert (found.minimum, found.members, found.bound, found.source) == (2, 2, 0, "kai PodGroup")


def test_the_missing_feature_is_named_among_what_would_help():
    found = diagnose(
        node(features=["Other"]), holder("other", "1"), group(min_member=1), *members(1, features=["RestartAll"])
    )
    assert "kubelets that declare the feature RestartAll: 1 node without it" in found.helps


def test_the_resource_that_is_short_is_no_feature_though_most_nodes_lack_one():
    full = [node(f"n{each}", cpu="1500m", features=["F"]) for each in (1, 2)]
    others = [node(f"old-{each}") for each in range(3)]
    taken = [holder("other", "1", on="n1"), holder("others", "1", on="n2")]
    found = diagnose(*full, *others, *taken, group(min_member=1), *members(1, features=["F"]))
    assert found.shortfall.gaps[0].obstacles[0].resource == "F"
    assert found.shortfall.resource == "cpu"
    assert "Held by default/other (cpu 1)" in found.message


BELONGS = "The group belongs to the installation of gangsched that serves the schedulerName green, because"


@pytest.mark.parametrize(
    ("things", "why", "remedy"),
    [
        ([group(), *members(2, scheduler="green")], "2 pods that name it have this schedulerName.", "pods with"),
        ([pod("a-0", scheduler="green")], "1 pod that names it has this schedulerName.", "pods with"),
        ([replace(group(), scheduler="green")], "its annotation gangsched.io/scheduler says so.", "the annotation"),
        (
            [group(status=GroupStatus(Record(), scheduler="green"))],
            "its last members had this schedulerName.",
            "the annotation",
        ),
    ],
    ids=["its pods", "a pod without a PodGroup", "its annotation", "its status"],
)
def test_a_group_of_another_installation_says_whose_it_is_and_why(things, why, remedy):
    found = diagnose(*things)
    assert found.message == f"{BELONGS} {why}"
    asking, changing = found.helps
    assert asking == "asking with --scheduler-name green, if such an installation runs"
    assert changing.startswith(remedy)


def test_what_the_other_installation_has_written_is_told_too():
    told = Condition("Scheduled", False, Reason.UNSCHEDULABLE, "No room.", NOW)
    status = GroupStatus(Record(phase=Phase.QUEUED), (told,), members=2, scheduler="green")
    found = diagnose(group(min_member=2, status=status), *members(2, scheduler="green"))
    assert (found.phase, found.reason, found.members, found.minimum) == ("Queued", "Unschedulable", 2, 2)
    assert found.message == f"{BELONGS} 2 pods that name it have this schedulerName. No room."


# Room that is not free although no group holds it


def told_by_json(found) -> tuple[object, object]:
    """The pods for which room is kept, and those that are stuck."""
    shortfall = json.loads(msgspec.json.encode(as_object(found)))["shortfall"]
    return shortfall["keptFor"], shortfall["stuckTerminating"]


def test_the_pod_for_which_room_is_kept_is_told_also_as_json_and_as_text():
    """A pod of another scheduler is nominated to the only node; nobody was named for its room."""
    kept = pod("web", cpu=2, group="", scheduler="other", nominated_node="n1", priority=1000)
    found = diagnose(node(cpu=4), group(min_member=4), *members(4), kept)
    assert (found.shortfall.fits, found.shortfall.kept_for) == (2, PodShares(["default/web"], 2000))
    assert told_by_json(found) == ({"pods": ["default/web"], "amount": "2"}, {"pods": [], "amount": "0"})
    assert "kept for    default/web (cpu 2)" in "\n".join(lines(found))


@pytest.mark.parametrize(("late_s", "names"), [(0.0, []), (7200.0, ["default/old"])])
def test_a_pod_that_should_long_be_gone_is_told_also_as_json_and_as_text(late_s, names):
    old = pod("old", cpu=4, group="", node="n1", terminating=True, gone_by=NOW - late_s)
    found = diagnose(node(cpu=4), group(min_member=4), *members(4), old)
    assert found.shortfall.stuck == PodShares(names, 4000 if names else 0)
    assert told_by_json(found) == ({"pods": [], "amount": "0"}, {"pods": names, "amount": "4" if names else "0"})
    assert ("stuck       default/old (cpu 4)" in "\n".join(lines(found))) == bool(names)
