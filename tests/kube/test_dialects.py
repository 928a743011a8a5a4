"""Pods' declarations of their group in every dialect, as tables."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.config.dialect_settings import Fifo, Pfnet, Spark
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import Declaration, Placing, Preference, Role, Topology
from gangsched.core.objects.shape import Shape
from gangsched.kube.dialects.dialect_table import DEFAULT, chosen

GROUP = {"gangsched.io/pod-group": "a"}

PFNET = "gang-scheduling.preferred.jp/gang"
KUEUE = "kueue.x-k8s.io/pod-group-name"
KUEUE_COUNT = "kueue.x-k8s.io/pod-group-total-count"
KOORDINATOR = "gang.scheduling.koordinator.sh"
NETWORK = f"{KOORDINATOR}/network-topology-spec"
OLD = "pod-group.scheduling.sigs.k8s.io"
YUNIKORN = "yunikorn.apache.org"
ZONE = "topology.kubernetes.io/zone"
TASK_GROUPS = f"{YUNIKORN}/task-groups"
TASK_GROUP = f"{YUNIKORN}/task-group-name"


def read(labels: dict[str, str], annotations: dict[str, str], *names) -> Declaration | None:
    """The pod's declaration in these dialects, or in all."""
    return (chosen(Settings(dialects=names)) if names else DEFAULT).declaration(labels, annotations)


def declared(labels: dict[str, str], annotations: dict[str, str], *names) -> Declaration:
    """The declaration of a pod that has one."""
    found = read(labels, annotations, *names)
    assert found is not None
    return found


def terms(found: Declaration | None) -> tuple[object, ...]:
    """Everything but the messages and the places of the declaration."""
    assert found is not None
    assert found.error == found.contradiction == ""
    time_s = found.default_time_s if found.max_schedule_time_s is None else found.max_schedule_time_s
    return (found.source, found.group, found.min_member, time_s)


def task_groups(*groups: tuple[str, int]) -> str:
    return json.dumps([{"name": name, "minMember": number, "minResource": {"cpu": "1"}} for name, number in groups])


BY = "gangsched.io/group-by"
JOB = "batch.kubernetes.io/job-name"


class TestGroupBy:
    """One template serves many groups: the value of a label names each group."""

    @pytest.mark.parametrize(
        ("labels", "annotations", "group"),
        [
            ({JOB: "run-1"}, {BY: JOB}, "run-1"),
            ({JOB: "run-2"}, {BY: JOB}, "run-2"),
            ({JOB: "run-1", "app": "x"}, {BY: "app"}, "x"),
            ({JOB: "run-1"} | GROUP, {BY: JOB}, "a"),
            ({JOB: "run-1", "gangsched.io/pod-group": ""}, {BY: JOB}, "run-1"),
        ],
    )
    def test_the_labels_value_is_the_groups_name_unless_the_pod_names_it(self, labels, annotations, group):
        found = read(labels, annotations | {"gangsched.io/min-member": "4"})
        assert terms(found) == ("gangsched", group, 4, None)

    @pytest.mark.parametrize(
        ("labels", "by", "error"),
        [
            ({}, JOB, f"The annotation {BY} is '{JOB}', but the pod has no such label with a value: "),
            ({JOB: ""}, JOB, f"The annotation {BY} is '{JOB}', but the pod has no such label with a value: "),
            ({"": "x"}, "", f"The annotation {BY} is empty: give it the key of a label of the pod."),
            ({JOB: "run-1"}, "", f"The annotation {BY} is empty: give it the key of a label of the pod."),
        ],
    )
    def test_a_missing_label_is_an_error_that_names_it(self, labels, by, error):
        found = declared(labels, {BY: by, "gangsched.io/min-member": "4"})
        assert found.group == ""
        assert found.error.startswith(error)

    def test_another_dialects_different_group_is_a_contradiction(self):
        found = declared({JOB: "run-1", KUEUE: "other"}, {BY: JOB})
        assert f"'run-1' according to the annotation {BY}" in found.contradiction


class TestOurOwn:
    @pytest.mark.parametrize(
        ("labels", "annotations", "expected"),
        [
            ({}, {}, None),
            ({"gangsched.io/role": "worker"}, {"gangsched.io/min-member": "3"}, None),
            (GROUP, {}, Declaration(group="a")),
            (GROUP | {"gangsched.io/role": "worker"}, {}, Declaration(group="a", role="worker")),
            (GROUP, {"gangsched.io/min-member": "3"}, Declaration(group="a", min_member=3)),
            (GROUP, {"gangsched.io/max-schedule-time": "1m30s"}, Declaration(group="a", max_schedule_time_s=90.0)),
            (
                GROUP,
                {"gangsched.io/min-member": "2147483647", "gangsched.io/max-schedule-time": "168h"},
                Declaration(group="a", min_member=2147483647, max_schedule_time_s=604800.0),
            ),
        ],
    )
    def test_a_pod_says_its_group_by_label_and_its_numbers_by_annotation(
        self, labels: dict[str, str], annotations: dict[str, str], expected: Declaration | None
    ) -> None:
        assert read(labels, annotations) == expected

    def test_an_empty_group_name_is_an_error(self) -> None:
        found = read({"gangsched.io/pod-group": "", "gangsched.io/role": "r"}, {})
        assert found == Declaration(
            group="", role="r", error="The label gangsched.io/pod-group is empty: give it the group's name."
        )


class TestPfnet:
    @pytest.mark.parametrize(
        ("timeout", "seconds"),
        [
            (None, 100.0),
            ("200", 200.0),
            ("400", 300.0),
            ("soon", 100.0),
            ("", 100.0),
            ("0", 100.0),
            ("-5", 100.0),
            ("9" * 5000, 100.0),
            ("1.5", 100.0),
        ],
    )
    def test_the_time_out_is_the_pods_within_the_limit_else_the_default(self, timeout, seconds) -> None:
        configured = Pfnet.model_validate(
            {
                "gangScheduleTimeoutSecondsLimit": 300,
                "gangScheduleDefaultTimeoutSeconds": 100,
                "gangScheduleTimeoutJitterSeconds": 100,
            }
        )
        said = {} if timeout is None else {f"{PFNET}-schedule-timeout-seconds": timeout}
        dialects = chosen(Settings(dialects=("pfnet",), pfnet=configured))
        found = dialects.declaration({}, {f"{PFNET}-name": "gang-0", f"{PFNET}-size": "2"} | said)
        assert terms(found) == ("pfnet", "gang-0", 2, seconds)
        assert found is not None
        assert found.jitter_s == 100.0

    def test_the_prefix_is_the_configured_one(self) -> None:
        configured = Pfnet.model_validate({"gangAnnotationPrefix": "scheduling.k8s.pfn.io/gang"})
        said = {"scheduling.k8s.pfn.io/gang-name": "a", "scheduling.k8s.pfn.io/gang-size": "3"}
        assert terms(chosen(Settings(pfnet=configured)).declaration({}, said)) == ("pfnet", "a", 3, 30.0)


def koordinator(**said: str) -> dict[str, str]:
    """Koordinator's annotations on a pod of the gang `a`."""
    return {f"{KOORDINATOR}/{key.replace('_', '-')}": text for key, text in {"name": "a", **said}.items()}


OF_TWO = koordinator(min_available="2")
PREFERRED = '{"gatherStrategy":[{"layer":"BlockLayer","strategy":"PreferGather"}]}'
SAID: list[tuple[dict[str, str], dict[str, str], tuple[object, ...] | None]] = [
    *(({KUEUE: "a"}, {KUEUE_COUNT: count}, ("kueue", "a", int(count), None)) for count in ("5", "1")),
    ({KUEUE: "a"}, {}, ("kueue", "a", None, None)),
    ({"kueue.x-k8s.io/queue-name": "q"}, {KUEUE_COUNT: "3"}, None),
    ({KUEUE: ""}, {KUEUE_COUNT: "3"}, None),
    ({}, koordinator(), ("koordinator", "a", None, None)),
    ({}, {f"{KOORDINATOR}/min-available": "2"}, None),
    ({}, OF_TWO, ("koordinator", "a", 2, None)),
    *(
        ({}, OF_TWO | {f"{KOORDINATOR}/waiting-time": waiting}, ("koordinator", "a", 2, seconds))
        for waiting, seconds in (
            *(("30s", 30.0), ("10m", 600.0), ("1h30m", 5400.0), ("1.5m", 90.0)),
            *(("1m1500ms", 61.5), ("168h", 604800.0)),
        )
    ),
    # Gang groups with only this gang, and a topology that is only preferred, change nothing.
    *(
        ({}, OF_TWO | {f"{KOORDINATOR}/groups": groups}, ("koordinator", "a", 2, None))
        for groups in ("", "[]", '["a"]', '["default/a"]')
    ),
    *(
        ({}, OF_TWO | {NETWORK: text}, ("koordinator", "a", 2, None))
        for text in ("", "null", "{}", '{"gatherStrategy": null}', PREFERRED)
    ),
    ({f"{OLD}/name": "a", f"{OLD}/min-available": "3"}, {}, ("scheduler-plugins", "a", 3, None)),
    ({f"{OLD}/name": "a"}, {}, ("scheduler-plugins", "a", None, None)),
    # In pfnet's dialect, no name or a size of at most one means no gang.
    ({}, {f"{PFNET}-size": "2"}, None),
    ({}, {f"{PFNET}-name": "", f"{PFNET}-size": "2"}, None),
    ({}, {f"{PFNET}-name": "a"}, None),
    *(({}, {f"{PFNET}-name": "a", f"{PFNET}-size": size}, None) for size in ("1", "0", "-3", "+1")),
    ({}, {"example.com/gang-name": "a", "example.com/gang-size": "2"}, None),
    ({f"{YUNIKORN}/app-id": "a"}, {}, None),
    ({f"{YUNIKORN}/app-id": "a"}, {TASK_GROUP: ""}, None),
    ({}, {TASK_GROUP: ""}, None),
]


@pytest.mark.parametrize(("labels", "annotations", "expected"), SAID)
def test_a_pod_says_its_group_minimum_and_longest_wait_or_nothing(labels, annotations, expected) -> None:
    found = read(labels, annotations)
    assert (None if found is None else terms(found)) == expected


TIMED = {"gangsched.io/max-schedule-time": "5m"}
COUNT = "': write a whole number from 1 to 2147483647."
ANY_SIZE = "': write a whole number up to 2147483647; 1 means no gang."
MUST = '{"gatherStrategy":[{"layer":"BlockLayer","strategy":"MustGather"}]}'
ERRORS: list[tuple[dict[str, str], dict[str, str], str, str]] = [
    *(
        (GROUP, TIMED | {"gangsched.io/min-member": text}, "The annotation gangsched.io/min-member is '", COUNT)
        for text in ("", "0", "-1", "+1", "1.5", "three", " 3", "3 ", "2147483648", "9" * 5000, "٣")
    ),
    *(
        (
            GROUP,
            {"gangsched.io/min-member": "3", "gangsched.io/max-schedule-time": text},
            f"The annotation gangsched.io/max-schedule-time is {text!r}:",
            ": write a duration from 1s to 168h, such as 90s, 5m or 1h30m.",
        )
        for text in ("", "0s", "5", "5 m", "1d", "169h", "m", "1s\n")
    ),
    *(
        ({}, {f"{PFNET}-name": "a", f"{PFNET}-size": size}, f"The annotation {PFNET}-size is '", ANY_SIZE)
        for size in ("", "two", "2.0", "2147483648", "9" * 5000, "٢", "0x2")
    ),
    *(
        ({KUEUE: "a"}, {KUEUE_COUNT: count}, f"The annotation {KUEUE_COUNT} is '{count}", COUNT)
        for count in ("", "0", "-1", "many")
    ),
    ({f"{OLD}/name": "a", f"{OLD}/min-available": "x"}, {}, f"The label {OLD}/min-available is 'x", COUNT),
    *(
        ({}, koordinator(waiting_time=waiting), f"The annotation {KOORDINATOR}/waiting-time is '", ".")
        for waiting in ("", "30", "0s", "500ms", "169h", "s", "-30s", "30s ", "1d", "1e3s", "1s" * 999)
    ),
    *(
        (
            {},
            koordinator(groups=groups),
            f"The annotation {KOORDINATOR}/groups is {groups!r}, which ties the gang to others",
            ".",
        )
        for groups in ('["b"]', '["default/a", "default/b"]', '["x/a", "y/a"]')
    ),
    *(
        ({}, koordinator(groups=groups), "The annotation", "write a JSON list of names, or remove it.")
        for groups in ("a", "{}", "[1]", "[" * 100_000, '["a"')
    ),
    (
        {},
        koordinator() | {NETWORK: MUST},
        f"The annotation {NETWORK} is '",
        "remove it, and name a node label in placement.topology of a PodGroup of gangsched.",
    ),
    *(
        (
            {},
            koordinator() | {NETWORK: text},
            f"The annotation {NETWORK} is '",
            'write JSON such as {"gatherStrategy": []}, or remove it.',
        )
        for text in ("[", "[]", '{"gatherStrategy": "MustGather"}', "7", "[" * 100_000)
    ),
]


@pytest.mark.parametrize(("labels", "annotations", "begins", "ends"), ERRORS)
def test_what_cannot_be_meant_is_an_error_that_names_the_key_and_no_number(labels, annotations, begins, ends) -> None:
    found = declared(labels, annotations)
    assert (found.min_member, found.max_schedule_time_s) == (None, None)
    assert found.error.startswith(begins)
    assert found.error.endswith(ends)
    assert len(found.error) < 300


class TestPalantir:
    REQUESTS = {"spark-executor-cpu": "2", "spark-executor-mem": "6758Mi"}  # noqa: RUF012 - never changed

    def of(self, annotations: dict[str, str], *, app: str = "app", role: str = "driver") -> Declaration:
        said = DEFAULT.declaration({"spark-app-id": app, "spark-role": role}, annotations)
        assert said is not None
        return said

    @pytest.mark.parametrize(
        ("annotations", "least", "most"),
        [
            ({"spark-executor-count": "2"}, 2, 2),
            ({"spark-executor-count": "0"}, 0, 0),
            ({"spark-executor-count": "2.0"}, 2, 2),
            ({"spark-executor-count": "2k"}, 2000, 2000),
            ({"spark-executor-count": "3000m"}, 3, 3),
            *(
                ({"spark-dynamic-allocation-enabled": no, "spark-executor-count": "2"}, 2, 2)
                for no in ("0", "f", "F", "FALSE", "false", "False")
            ),
            *(
                (
                    {
                        "spark-dynamic-allocation-enabled": yes,
                        "spark-dynamic-allocation-min-executor-count": "1e0",
                        "spark-dynamic-allocation-max-executor-count": "5.",
                    },
                    1,
                    5,
                )
                for yes in ("1", "t", "T", "TRUE", "true", "True")
            ),
            (
                {
                    "spark-dynamic-allocation-enabled": "true",
                    "spark-dynamic-allocation-min-executor-count": "2",
                    "spark-dynamic-allocation-max-executor-count": "5",
                },
                2,
                5,
            ),
        ],
    )
    def test_a_driver_is_one_member_and_its_least_executors_are_the_others(self, annotations, least, most):
        said = self.of(self.REQUESTS | annotations)
        template = Shape(requests=(("cpu", 2000), ("memory", 6758 * 2**20)))
        assert (said.group, said.role, said.source, said.leading) == ("app", "driver", "palantir", "driver")
        assert said.roles == (Role("driver", 1, 1), Role("executor", least, most, template, like_declarer=True))
        assert said.placement == Placing("Spread")
        assert said.fifo

    def test_gpus_are_part_of_an_executor(self):
        said = self.of(self.REQUESTS | {"spark-executor-count": "1", "spark-executor-nvidia.com/gpu": "2"})
        assert said.roles[1].template is not None
        assert dict(said.roles[1].template.requests)["nvidia.com/gpu"] == 2

    def test_an_executor_only_names_its_application(self):
        said = self.of({}, role="executor")
        assert (said.group, said.role, said.roles, said.min_member, said.error) == ("app", "executor", (), None, "")

    @pytest.mark.parametrize(
        ("changed", "error"),
        [
            ({"spark-executor-count": None}, "The annotation spark-executor-count is missing: write a whole number."),
            *(
                (
                    {"spark-executor-count": text},
                    f"The annotation spark-executor-count is {text!r}: write a whole number",
                )
                for text in ("1.5", "2.0000000001", "1500m", "-1", "", "two", "2g", "2147483648", "1e99")
            ),
            (
                {"spark-executor-cpu": None},
                "The annotation spark-executor-cpu is missing: write the request of one executor",
            ),
            ({"spark-executor-mem": "1g"}, "The annotation spark-executor-mem is '1g': write a quantity, such as"),
            ({"spark-executor-cpu": "-1"}, "write a quantity that is not negative"),
            *(
                ({"spark-dynamic-allocation-enabled": text}, f"is {text!r}: write true or false.")
                for text in ("Maybe", "tRUE", "", "yes")
            ),
            (
                {"spark-dynamic-allocation-enabled": "true"},
                "The annotation spark-dynamic-allocation-min-executor-count is missing",
            ),
            (
                {
                    "spark-dynamic-allocation-enabled": "true",
                    "spark-dynamic-allocation-min-executor-count": "3",
                    "spark-dynamic-allocation-max-executor-count": "2",
                },
                "The annotation spark-dynamic-allocation-max-executor-count is 2, less than 3 in the annotation",
            ),
        ],
    )
    def test_what_cannot_be_read_is_an_error_that_names_the_key(self, changed, error):
        annotations = self.REQUESTS | {"spark-executor-count": "2"} | changed
        said = self.of({key: text for key, text in annotations.items() if text is not None})
        assert error in said.error

    def test_a_role_that_is_none_of_sparks_is_an_error(self):
        assert self.of({}, role="helper").error == "The label spark-role is 'helper': write driver or executor."
        assert self.of({}, role="").error == "The label spark-role is missing: write driver or executor."

    @pytest.mark.parametrize("app", ["App", "a_b", "a" * 64, "-a"])
    def test_a_name_that_no_object_can_have_is_an_error(self, app):
        error = self.of(self.REQUESTS | {"spark-executor-count": "2"}, app=app).error
        assert "is not a valid name for the PodGroup that records the reservation for its executors" in error

    def test_sparks_own_labels_alone_name_no_group(self):
        labels = {"spark-role": "driver", "spark-app-selector": "spark-1", "spark-app-name": "pi"}
        assert DEFAULT.declaration(labels, {}) is None

    def test_whether_drivers_wait_for_their_turn_is_configured(self):
        said = chosen(Settings(fifo=Fifo.model_validate({"sparkDrivers": False}))).declaration(
            {"spark-app-id": "app", "spark-role": "driver"}, self.REQUESTS | {"spark-executor-count": "2"}
        )
        assert said is not None
        assert not said.fifo

    @pytest.mark.parametrize(
        ("binpack", "placing"),
        [
            ("distribute-evenly", Placing("Spread")),
            ("tightly-pack", Placing("Pack")),
            ("az-aware-tightly-pack", Placing("Pack", topology=Topology(ZONE, required=False))),
            ("single-az-tightly-pack", Placing("Pack", topology=Topology(ZONE))),
            ("single-az-minimal-fragmentation", Placing("MinimalFragmentation", topology=Topology(ZONE))),
        ],
    )
    def test_its_packers_are_strategies(self, binpack, placing):
        dialects = chosen(Settings(spark=Spark(binpack=binpack)))
        said = dialects.declaration({"spark-app-id": "app", "spark-role": "executor"}, {})
        assert said is not None
        assert said.placement == placing


class TestCosmin:
    DRIVER = {  # noqa: RUF012 - never changed
        "spark-role": "driver",
        "driver-cpu": "1",
        "driver-mem": "1",
        "executors": "3",
        "exec-cpu": "2",
        "exec-mem": "4",
    }
    EXECUTOR = {"spark-role": "executor", "exec-cpu": "2", "exec-mem": "4"}  # noqa: RUF012 - never changed

    def test_a_driver_says_how_many_executors_it_needs_and_how_large(self):
        said = DEFAULT.declaration(self.DRIVER, {}, pod="pi-driver")
        assert said is not None
        template = Shape(requests=(("cpu", 2000), ("memory", 4 * 2**30)))
        assert (said.group, said.role, said.source) == ("pi-driver", "driver", "cosmin")
        assert said.roles == (Role("driver", 1, 1), Role("executor", 3, 3, template, like_declarer=True))
        assert said.placement == Placing("Pack", prefer=(Preference("cost", "Ascending"),))
        assert not said.fifo

    def test_an_executor_belongs_to_the_driver_that_made_it(self):
        said = DEFAULT.declaration(self.EXECUTOR, {}, pod="pi-exec-1", owner="pi-driver")
        assert said is not None
        assert (said.group, said.role, said.roles) == ("pi-driver", "executor", ())

    def test_sparks_own_name_of_the_application_comes_first(self):
        app = {"spark-app-selector": "spark-42"}
        driver = DEFAULT.declaration(self.DRIVER | app, {}, pod="pi-driver")
        executor = DEFAULT.declaration(self.EXECUTOR | app, {}, pod="pi-exec-1", owner="pi-driver")
        assert driver is not None
        assert executor is not None
        assert driver.group == executor.group == "spark-42"

    def test_an_executor_that_nobody_has_made_is_a_plain_pod(self):
        assert DEFAULT.declaration(self.EXECUTOR, {}, pod="pi-exec-1") is None

    @pytest.mark.parametrize(
        ("changed", "error"),
        [
            ({"executors": "two"}, "The label executors is 'two': write a whole number without a unit."),
            ({"exec-mem": "2g"}, "The label exec-mem is '2g': write a whole number without a unit."),
            ({"exec-cpu": "500m"}, "The label exec-cpu is '500m': write a whole number without a unit."),
        ],
    )
    def test_what_cannot_be_read_is_an_error_and_never_nothing(self, changed, error):
        said = DEFAULT.declaration(self.DRIVER | changed, {}, pod="pi-driver")
        assert said is not None
        assert said.error == error


APP = {f"{YUNIKORN}/app-id": "a"}


class TestYunikorn:
    def test_the_originator_lists_the_roles_and_names_its_own(self) -> None:
        said = {TASK_GROUPS: task_groups(("worker", 4), ("driver", 1)), TASK_GROUP: "driver"}
        found = declared(APP, said)
        assert terms(found) == ("yunikorn", "a", None, None)
        assert (found.roles, found.role) == (
            (Role(name="driver", min_member=1), Role(name="worker", min_member=4)),
            "driver",
        )

    def test_another_member_names_its_role_alone(self) -> None:
        found = declared(APP, {TASK_GROUP: "worker"})
        assert terms(found) == ("yunikorn", "a", None, None)
        assert (found.roles, found.role) == ((), "worker")

    @pytest.mark.parametrize(
        ("said", "what"),
        [
            ({TASK_GROUP: "worker"}, "names a task group"),
            ({TASK_GROUPS: task_groups(("worker", 2))}, "lists task groups"),
            ({TASK_GROUPS: "[", TASK_GROUP: "worker"}, "lists task groups"),
        ],
    )
    @pytest.mark.parametrize("labels", [{}, {"applicationId": ""}])
    def test_a_task_group_without_an_application_is_told(self, labels, said, what) -> None:
        found = declared(labels, said)
        assert (found.group, found.error) == (
            "",
            f"The pod {what}, but no application: give it the label applicationId, the same on all of its pods.",
        )

    def test_task_groups_without_an_application_are_ignored_where_another_dialect_names_the_group(self) -> None:
        found = declared(GROUP, {TASK_GROUP: "worker"})
        assert (found.group, found.source, found.error, found.role) == ("a", "gangsched", "", "")

    @pytest.mark.parametrize(
        ("labels", "annotations"),
        [
            ({f"{YUNIKORN}/app-id": "a", "applicationId": "b"}, {f"{YUNIKORN}/app-id": "c"}),
            ({f"{YUNIKORN}/app-id": "", "applicationId": "b"}, {f"{YUNIKORN}/app-id": "a"}),
            ({"applicationId": "a", "spark-app-selector": "b"}, {}),
            ({"spark-app-selector": "a"}, {}),
        ],
    )
    def test_the_application_is_looked_for_where_yunikorn_looks(self, labels, annotations) -> None:
        found = declared(labels, annotations | {TASK_GROUP: "worker"})
        assert found.group == "a"

    @pytest.mark.parametrize(
        ("text", "remedy"),
        [
            ("", "write a JSON list of objects, each with a name and, as a whole number without quotes, a minMember."),
            ("[", "write a JSON list of objects"),
            ("{}", "write a JSON list of objects"),
            ("- name: worker\n  minMember: 2", "write a JSON list of objects"),
            ('[{"name": "w", "minMember": "2"}]', "write a JSON list of objects"),
            ('[{"name": "w", "minMember": 1e99}]', "write a JSON list of objects"),
            ("[" * 100_000, "write a JSON list of objects"),
            ('[{"x":' * 50_000, "write a JSON list of objects"),
            ("[]", "list 1 to 64 task groups of different names"),
            (task_groups(("w", 1), ("w", 1)), "list 1 to 64 task groups of different names"),
            (task_groups(*((f"w{number}", 1) for number in range(65))), "list 1 to 64 task groups"),
            ('[{"minMember": 2}]', "give every task group a name of at most 253 characters"),
            (task_groups(("w" * 254, 1)), "give every task group a name of at most 253 characters"),
            (task_groups(("w\n", 1)), "give every task group a name of at most 253 characters"),
            ('[{"name": "w"}]', "give every task group a minMember from 1"),
            (task_groups(("w", -1), ("v", 2)), "give every task group a minMember from 1"),
            (task_groups(("w", 2**31), ("v", 2)), "less than 2147483647 in all"),
            (
                '[{"name": "v", "minMember": 1, "minResource": {"cpu": "many"}}]',
                "minResource (cpu) is 'many': write an",
            ),
        ],
    )
    def test_task_groups_that_cannot_be_used_are_told(self, text: str, remedy: str) -> None:
        found = declared(APP | {"spark-role": "driver"}, {TASK_GROUPS: text, TASK_GROUP: "w"})
        assert (found.group, found.roles) == ("a", ())
        assert found.error.startswith(f"The annotation {TASK_GROUPS} is '")
        assert remedy in found.error
        assert len(found.error) < 250


BOTH = GROUP | {KUEUE: "a"}


class TestSeveral:
    def test_dialects_that_agree_are_one_and_the_first_is_the_source(self) -> None:
        found = read(BOTH, {"gangsched.io/min-member": "3", KUEUE_COUNT: "3"})
        assert terms(found) == ("gangsched", "a", 3, None)

    def test_what_one_leaves_open_another_may_say(self) -> None:
        found = declared(BOTH, {KUEUE_COUNT: "3"})
        assert terms(found) == ("gangsched", "a", 3, None)
        assert found.keys.minimum == f"the annotation {KUEUE_COUNT}"

    def test_different_groups_contradict_each_other(self) -> None:
        found = declared(GROUP | {KUEUE: "b" * 50}, {})
        assert (found.group, found.error) == ("a", "")
        assert found.contradiction == (
            f"Its group is 'a' according to the label gangsched.io/pod-group, but '{'b' * 40}…' according to the label "
            f"{KUEUE}: name the same group in both, or remove one of them."
        )

    def test_different_minima_contradict_each_other(self) -> None:
        found = declared(BOTH, {"gangsched.io/min-member": "3", KUEUE_COUNT: "4"})
        assert found.contradiction == (
            "Its minimum is 3 according to the annotation gangsched.io/min-member, but 4 according to the annotation "
            f"{KUEUE_COUNT}: make them equal, or remove one of them."
        )

    def test_different_times_contradict_each_other(self) -> None:
        said = {f"{PFNET}-name": "a", f"{PFNET}-size": "2", "gangsched.io/max-schedule-time": "5m"}
        found = declared(GROUP, {**said, f"{PFNET}-schedule-timeout-seconds": "20"})
        assert found.contradiction == (
            "Its longest wait in seconds is 300 according to the annotation gangsched.io/max-schedule-time, but 20 "
            f"according to the annotation {PFNET}-schedule-timeout-seconds: make them equal, or remove one of them."
        )
        silent = declared(GROUP, said)
        assert (silent.contradiction, silent.max_schedule_time_s, silent.default_time_s) == ("", 300.0, 30.0)

    def test_an_error_in_one_is_the_pods(self) -> None:
        found = declared(BOTH, {"gangsched.io/min-member": "3", KUEUE_COUNT: "x"})
        assert (found.source, found.min_member) == ("gangsched", None)
        assert found.error.startswith(f"The annotation {KUEUE_COUNT} is 'x'")

    def test_a_dialect_that_is_not_chosen_says_nothing(self) -> None:
        assert terms(read(GROUP | {KUEUE: "b"}, {}, "kueue")) == ("kueue", "b", None, None)
        assert read(GROUP, {}, "kueue") is None
        assert terms(read(GROUP | {KUEUE: "b"}, {}, "gangsched")) == ("gangsched", "a", None, None)


@pytest.mark.parametrize("name", ["x" * 254, "x" * 200_000, "a\nb", "a\u202eb", "\0"])
def test_a_name_that_cannot_be_shown_is_told_and_kept_short(name: str) -> None:
    found = declared({}, {f"{KOORDINATOR}/name": name, f"{KOORDINATOR}/min-available": "2"})
    assert found.error.startswith("The group's name '")
    assert len(found.error) < 250
    assert found.group.isprintable()
    assert len(found.group) <= 260


def test_equal_texts_give_the_identical_declaration() -> None:
    said = {TASK_GROUPS: task_groups(("worker", 4))}
    assert read(APP, dict(said)) is read(APP, dict(said))


KEYS = sorted({key.name for dialect in DEFAULT.dialects for key in (*dialect.row.group, *dialect.terms)})
TEXTS = st.one_of(
    st.sampled_from(("", "a", "b", "1", "2", "3", "30s", '["a"]', task_groups(("a", 2)))),
    st.text(max_size=30),
    st.builds(json.dumps, st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists)),
    st.sampled_from(("[", '{"a":', "9", "1s", "x", "\ud83d\ude00")).map(lambda part: part * 20_000),
)
TEXTS_BY_KEY = st.dictionaries(st.sampled_from(KEYS), TEXTS)


@given(TEXTS_BY_KEY, TEXTS_BY_KEY)
def test_nothing_that_a_pod_can_say_raises_or_takes_long(labels: dict[str, str], annotations: dict[str, str]) -> None:
    began = time.perf_counter()
    found = DEFAULT.declaration(labels, annotations)
    assert time.perf_counter() - began < 0.5
    if found is not None:
        assert len(found.group) <= 2600
        assert len(found.role) <= 2600
        assert len(found.error) < 1000
        assert len(found.contradiction) < 1000
        assert found.error.isprintable()
        assert found.contradiction.isprintable()
