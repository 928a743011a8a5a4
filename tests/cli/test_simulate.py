"""`gangsched simulate` from its input files to its output."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import yaml

from gangsched.cli import main

NOT_READY = "node.kubernetes.io/not-ready"
STORAGE = "storage.k8s.io/v1"
RACE = Path(__file__).resolve().parents[2] / "examples" / "race"


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch):
    """Fix the terminal's width, at which lines wrap: it differs between ways to run the tests."""
    monkeypatch.setenv("COLUMNS", "100")


def thing(version, kind, name, **fields):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def node(name="n1", cpu="4", *, memory="16Gi", pods="110", **spec):
    resources = {"cpu": cpu, "memory": memory, "pods": pods}
    return thing("v1", "Node", name, spec=spec, status={"allocatable": resources})


def group(name="g", min_member=1, **spec):
    return thing("gangsched.io/v1alpha1", "PodGroup", name, spec={"minMember": min_member, **spec})


def template(group_name="g", cpu="1", *, annotations=None, **spec):
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    labels = {"gangsched.io/pod-group": group_name} if group_name else {}
    return {
        "metadata": {"labels": labels, "annotations": annotations or {}},
        "spec": {"schedulerName": "gangsched", "containers": [container], **spec},
    }


def pod(name, group_name="g", cpu="1", *, meta=None, status=None, **fields):
    made = template(group_name, cpu, **fields)
    made["metadata"] |= {"name": name, **(meta or {})}
    return {"apiVersion": "v1", "kind": "Pod", **made, "status": status or {}}


def workload(kind, name="w", group_name="g", *, meta=None, status=None, pod_spec=None, **spec):
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, **(meta or {})},
        "spec": {"template": template(group_name, **(pod_spec or {})), **spec},
        "status": status or {},
    }


def owned_by(kind, name):
    return {"ownerReferences": [{"kind": kind, "name": name, "controller": True}]}


def priority_class(name, value, **fields):
    return thing("scheduling.k8s.io/v1", "PriorityClass", name, value=value, **fields)


class Run:
    """The output of a simulation of these objects."""

    def __init__(self, capsys, tmp_path, *objects, options=()):
        self.file = tmp_path / "objects.yaml"
        self.file.write_text(objects[0] if isinstance(objects[0], str) else yaml.safe_dump_all(objects))
        self.status = main(["simulate", "--json", *options, str(self.file)])
        captured = capsys.readouterr()
        self.errors = captured.err.replace(str(self.file), "FILE").splitlines()
        self.answer = json.loads(captured.out) if captured.out else {}

    def group(self, name="g"):
        [found] = [each for each in self.answer["groups"] if each["name"] == name]
        return found

    def decisions(self):
        return [(each["time"], each["name"], each["verdict"]) for each in self.answer["events"]]


@pytest.fixture
def written(tmp_path):
    """A file with these objects."""

    def write(*objects):
        (tmp_path / "written.yaml").write_text(yaml.safe_dump_all(objects))
        return str(tmp_path / "written.yaml")

    return write


@pytest.fixture
def run(capsys, tmp_path):
    return lambda *objects, options=(): Run(capsys, tmp_path, *objects, options=options)


class TestRace:
    FILES = tuple(str(RACE / name) for name in ("blue.yaml", "green.yaml", "nodes.yaml"))

    def test_one_group_is_whole_and_the_other_is_whole_and_unbound_with_what_lacks_and_who_has_it(self, capsys):
        assert main(["simulate", "--json", *self.FILES]) == 0
        first, second = json.loads(capsys.readouterr().out)["groups"]
        assert first.keys() == {"namespace", "name", "phase", "reason", "message", "bound", "placements"}
        assert (first["name"], first["phase"], first["bound"]) == ("blue", "Scheduled", 5)
        assert set(first["placements"]) == {f"blue-{number}" for number in range(5)}
        assert (second["name"], second["bound"], second["placements"]) == ("green", 0, {})
        assert "missing on the nodes that accept them: cpu 2.9" in second["message"]
        assert "default/blue (cpu 5)" in second["message"]

    def test_the_order_of_the_files_is_the_order_of_age(self, capsys):
        assert main(["simulate", "--json", self.FILES[1], self.FILES[2], self.FILES[0]]) == 0
        bound = {each["name"]: each["bound"] for each in json.loads(capsys.readouterr().out)["groups"]}
        assert bound == {"green": 5, "blue": 0}

    def test_a_person_reads_times_verdicts_nodes_and_reasons_in_columns(self, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "100")
        assert main(["simulate", *self.FILES]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "TIME  GROUP          VERDICT    REASON         NODES"
        assert lines[1] == "  0s  default/blue   Scheduled  Scheduled      node-1 (3), node-2 (2)"
        assert lines[3] == "  0s  default/green  Queued     Unschedulable  -"
        assert "  1m  default/green  TimedOut   TimedOut       -" in lines
        assert lines[-1].startswith("Completely bound: 1 of 2 groups; not bound: default/green (0 of 5")
        assert max(map(len, lines)) <= 100

    def test_one_group_and_one_member_are_told_in_the_singular(self, capsys, written):
        assert main(["simulate", written(node(cpu="1"), group(), pod("a", cpu="2"))]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == (
            "Completely bound: 0 of 1 group; not bound: default/g (0 of 1 member has a node)."
        )

    def test_members_above_the_minimum_are_counted_too(self, capsys, written):
        assert main(["simulate", written(node(cpu="1"), group(), pod("a", cpu="2"), pod("b", cpu="2"))]) == 0
        assert capsys.readouterr().out.splitlines()[-1].endswith("default/g (0 of 2 members have a node).")

    @pytest.mark.parametrize(("kept", "status"), [("the PodGroup", 0), ("nothing", 1)])
    def test_members_that_are_done_count_and_a_group_that_is_gone_is_not_bound(self, kept, status, capsys, written):
        """KAI#1968, grove#316: "3 bound or done; 3 needed" was not bound, and one whose PodGroup is gone was."""
        policy = {"schedulingPolicy": {"gang": {"minCount": 3}}}
        native = thing("scheduling.k8s.io/v1alpha3", "PodGroup", "g", spec=policy)
        bound = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
        members = [pod(name, cpu="1") for name in "abc"]
        for each, phase in zip(members, ("Succeeded", "Running", "Running"), strict=True):
            each["metadata"] = {**each["metadata"], "labels": {}, "uid": each["metadata"]["name"]}
            each["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
            each["spec"] |= {"nodeName": "n", "schedulingGroup": {"podGroupName": "g"}}
            each["status"] = {"phase": phase, "conditions": bound}
        if kept == "nothing":
            members[2]["spec"].pop("nodeName")
            members[2]["status"] = {"phase": "Pending"}
        file = written(node("n", cpu="8"), *members, *([native] if kept == "the PodGroup" else []))
        assert main(["simulate", "--fail-on-waiting", file]) == status
        assert capsys.readouterr().out.splitlines()[-1].startswith(f"Completely bound: {1 - status} of 1 group")

    @pytest.mark.parametrize(("cpu", "status"), [("1", 1), ("2", 0)])
    def test_a_script_can_ask_for_a_status_if_a_group_waits(self, cpu, status, written):
        file = written(node(cpu=cpu), group(), pod("a", cpu="2"))
        assert main(["simulate", file]) == 0
        assert main(["simulate", "--fail-on-waiting", file]) == status

    def test_it_is_read_from_standard_input_too(self, capsys, monkeypatch):
        content = "---\n".join(Path(file).read_text() for file in self.FILES).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert main(["simulate", "--json", "-"]) == 0
        assert len(json.loads(capsys.readouterr().out)["groups"]) == 2


class TestDecisions:
    def test_each_is_told_once_at_its_simulated_time(self, run):
        found = run(node(cpu="1"), group(min_member=2, maxScheduleTime="30s"), pod("a"), pod("b"), group("slow", 9))
        assert found.decisions() == [(0.0, "g", "Queued"), (0.0, "slow", "Pending"), (30.0, "g", "TimedOut")]

    def test_retries_until_the_longest_wait_are_not_repeated(self, run):
        found = run(
            node(cpu="1"),
            *(group("short", 2, maxScheduleTime="1s"), group("long", 2, maxScheduleTime="1h")),
            *(pod("a", "short"), pod("b", "short"), pod("c", "long"), pod("d", "long")),
        )
        assert found.decisions() == [
            *((0.0, "short", "Queued"), (0.0, "long", "Queued")),
            *((1.0, "short", "TimedOut"), (3600.0, "long", "TimedOut")),
        ]

    def test_a_pod_without_a_group_is_no_group_but_its_decision_is_told(self, run):
        found = run(node(), pod("alone", ""))
        assert found.answer["groups"] == []
        [decision] = found.answer["events"]
        assert (decision["kind"], decision["verdict"], decision["nodes"]) == ("Pod", "Scheduled", {"n1": 1})

    def test_members_above_the_minimum_that_wait_are_told_of(self, run):
        found = run(node(cpu="2"), group(maxMember=4), *(pod(f"p{number}") for number in range(5)))
        assert found.group()["bound"] == 2
        message = found.answer["events"][0]["message"]
        assert "2 more members wait still for room: No node has room" in message
        assert "1 more member waits because the group has maxMember members already" in message

    def test_pods_of_other_schedulers_take_room_where_they_are_bound_and_are_left_alone_elsewhere(self, run):
        other = {"schedulerName": "other"}
        found = run(
            node(cpu="2"),
            pod("there", "", nodeName="n1", **other),
            pod("waits", "", **other),
            group(),
            pod("a", cpu="2"),
        )
        assert found.decisions() == [(0.0, "g", "Queued"), (60.0, "g", "TimedOut")]

    def test_scheduler_names_can_be_those_of_the_operator(self, run):
        objects = (node(), group(), pod("a", schedulerName="mine"))
        assert run(*objects).answer["groups"] == []
        assert run(*objects, options=("--scheduler-name", "mine")).group()["bound"] == 1

    def test_members_that_were_bound_before_are_not_told_as_decided(self, run):
        found = run(node(), group(min_member=2), pod("a", nodeName="n1"), pod("b", nodeName="n1"))
        [decision] = found.answer["events"]
        assert (decision["verdict"], decision["nodes"]) == ("Scheduled", {})
        assert found.group()["bound"] == 2

    def test_a_saved_status_goes_on_where_it_was(self, run):
        failed = group(min_member=1, timeoutPolicy="Fail")
        failed["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        failed["status"] = {"phase": "Failed"}
        told = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "GangFailed"}]}
        assert run(node(), failed, pod("a", status=told)).group()["phase"] == "Failed"
        assert run(node(), failed, pod("a")).group()["phase"] == "Scheduled"


class TestWorkloads:
    @pytest.mark.parametrize(
        ("made", "names"),
        [
            (workload("StatefulSet", replicas=2, podManagementPolicy="Parallel"), {"w-0", "w-1"}),
            (
                workload("StatefulSet", replicas=2, podManagementPolicy="Parallel", ordinals={"start": 3}),
                {"w-3", "w-4"},
            ),
            (workload("StatefulSet"), {"w-0"}),
            (workload("Deployment", replicas=2), {"w-0", "w-1"}),
            (workload("ReplicaSet", replicas=2), {"w-0", "w-1"}),
            (workload("Job"), {"w-0"}),
            (workload("Job", parallelism=2), {"w-0", "w-1"}),
            (workload("Job", parallelism=4, completions=2), {"w-0", "w-1"}),
            (workload("Job", parallelism=4, completions=3, status={"succeeded": 2}), {"w-0"}),
            (workload("Job", parallelism=2, suspend=True), set()),
            (workload("Job", status={"conditions": [{"type": "Complete", "status": "True"}]}), set()),
            (workload("StatefulSet", replicas=0), set()),
        ],
    )
    def test_become_the_pods_that_their_controllers_would_make(self, run, made, names):
        assert set(run(node(), group(), made).group()["placements"]) == names

    def test_a_stateful_set_in_order_makes_a_pod_only_when_the_one_before_it_runs(self, run):
        ordered = workload("StatefulSet", replicas=3)
        assert run(node(), group(), ordered).group()["bound"] == 3
        waiting = run(node(), group(min_member=3), ordered).group()
        assert (waiting["phase"], waiting["reason"], waiting["bound"]) == ("Pending", "GangIncomplete", 0)

    def test_claims_of_a_stateful_set_become_volumes_of_its_pods(self, run):
        claims = [{"metadata": {"name": "data"}}]
        found = run(node(), group(), workload("StatefulSet", volumeClaimTemplates=claims)).group()
        assert found["reason"] == "VolumeNotReady"
        assert "PersistentVolumeClaim data-w-0, which is not bound" in found["message"]

    @pytest.mark.parametrize(
        ("made", "there"),
        [
            (workload("StatefulSet", replicas=2, podManagementPolicy="Parallel"), pod("w-1")),
            (workload("ReplicaSet", replicas=2), pod("w-x1", meta=owned_by("ReplicaSet", "w"))),
            (workload("Deployment", replicas=2), pod("w-f8-x", meta=owned_by("ReplicaSet", "w-f8"))),
            (workload("Job", parallelism=2), pod("w-x1", meta=owned_by("Job", "w"))),
        ],
    )  # fmt: skip
    def test_pods_that_are_there_already_are_not_made_again(self, run, made, there):
        placements = run(node(), group(), made, there).group()["placements"]
        assert len(placements) == 2
        assert there["metadata"]["name"] in placements

    def test_a_deployment_whose_replica_set_is_there_makes_no_second_one(self, run):
        replica_set = workload("ReplicaSet", "w-f8", replicas=2, meta=owned_by("Deployment", "w"))
        assert set(run(node(), group(), workload("Deployment", replicas=2), replica_set).group()["placements"]) == {
            "w-f8-0",
            "w-f8-1",
        }


class TestVolumes:
    CLAIM = "data-w-0"

    @staticmethod
    def claim(name, volume="", *, bound=True, **spec):
        done = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
        made = thing("v1", "PersistentVolumeClaim", name, spec={"volumeName": volume, **spec})
        made["metadata"]["annotations"] = done
        return made

    @staticmethod
    def volume(name, on_node):
        inside = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on_node]}
        spec = {
            "csi": {"driver": "d", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [inside]}]}},
        }
        return thing("v1", "PersistentVolume", name, spec=spec)

    @staticmethod
    def named(name):
        made = node(name)
        made["metadata"]["labels"] = {"kubernetes.io/hostname": name}
        return made

    def test_pods_go_where_their_volumes_are(self, run):
        made = workload("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "data"}}])
        there = (self.named("n1"), self.named("n2"), self.claim(self.CLAIM, "v"), self.volume("v", "n2"))
        found = run(group(), made, *there)
        assert (found.group()["placements"], found.errors) == ({"w-0": "n2"}, [])

    @staticmethod
    def later(provisioner):
        mode = "WaitForFirstConsumer"
        return thing(STORAGE, "StorageClass", "later", provisioner=provisioner, volumeBindingMode=mode)

    def test_a_volume_is_provisioned_for_a_claim_that_waits_for_the_pods_node(self, run):
        claims = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "later"}}]
        made = workload("StatefulSet", volumeClaimTemplates=claims)
        assert run(node(), group(), made, self.later("d")).group()["bound"] == 1

    def test_a_volume_is_provisioned_only_where_there_is_storage(self, run):
        asked = {"storageClassName": "later", "resources": {"requests": {"storage": "5Gi"}}}
        claims = [{"metadata": {"name": "data"}, "spec": asked}]
        made = workload("StatefulSet", replicas=2, podManagementPolicy="Parallel", volumeClaimTemplates=claims)
        driver = thing(STORAGE, "CSIDriver", "d", spec={"storageCapacity": True})
        there_is = {"storageClassName": "later", "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": "n2"}}}
        capacity = thing(STORAGE, "CSIStorageCapacity", "c", capacity="9Gi", **there_is)
        there = (self.named("n1"), self.named("n2"), self.later("d"), driver)
        both = group(minMember=2)
        assert run(both, made, *there, capacity | {"capacity": "10Gi"}).group()["placements"] == {
            "w-0": "n2",
            "w-1": "n2",
        }
        told = run(both, made, *there, capacity).group()["message"]
        assert "1 without storage capacity for a volume of StorageClass later" in told
        assert "(kubernetes.io/hostname=n2: 4Gi left after 1 promised volume, 5Gi wanted)" in told

    def test_a_volume_without_a_status_can_be_bound_to_such_a_claim(self, run):
        claims = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "later"}}]
        made = workload("StatefulSet", volumeClaimTemplates=claims)
        there = (self.named("n1"), self.named("n2"), self.later("kubernetes.io/no-provisioner"))
        volume = self.volume("v", "n2")
        volume["spec"]["storageClassName"] = "later"
        assert run(group(), made, *there, volume).group()["placements"] == {"w-0": "n2"}
        missing = run(group(), made, *there).group()["message"]
        assert "2 without a PersistentVolume of StorageClass later" in missing

    def test_an_ephemeral_volume_gets_its_claim_as_a_controller_would_make_it(self, run):
        template = {"volumeClaimTemplate": {"metadata": {}, "spec": {"storageClassName": "later"}}}
        uses = {"volumes": [{"name": "scratch", "ephemeral": template}]}
        made = workload("Job", parallelism=2, pod_spec=uses)
        assert run(node(), group(min_member=2), made, self.later("d")).group()["bound"] == 2
        lacking = run(node(), group(min_member=2), made, self.later("kubernetes.io/no-provisioner")).group()
        assert "1 without a PersistentVolume of StorageClass later (none suitable there" in lacking["message"]
        alone = pod("p", "", volumes=[{"name": "scratch", "ephemeral": template}])
        [event] = run(node(), alone, self.later("d")).answer["events"]
        assert event["placements"] == {"p": "n1"}

    def test_a_claim_of_the_name_that_was_made_for_another_is_not_replaced(self, run):
        template = {"volumeClaimTemplate": {"spec": {"storageClassName": "later"}}}
        alone = pod("p", "", volumes=[{"name": "scratch", "ephemeral": template}])
        [event] = run(node(), alone, self.later("d"), self.claim("p-scratch", bound=False)).answer["events"]
        assert "was not made for the pod's ephemeral volume" in event["message"]

    def test_a_template_that_cannot_be_read_is_told(self, run):
        template = {"volumeClaimTemplate": {"spec": {"storageClassName": 7}}}
        found = run(node(), pod("p", "", volumes=[{"name": "scratch", "ephemeral": template}]))
        assert found.status == 2
        assert "Pod p: the API server would refuse it: " in found.errors[0]

    def test_a_claim_without_a_class_gets_the_default_one(self, run):
        default = self.later("d")
        default["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
        other = {**self.later("d"), "metadata": {"name": "other"}}
        made = workload("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "data"}}])
        assert run(node(), group(), made, other, default).group()["bound"] == 1
        assert run(node(), group(), made, other).group()["reason"] == "VolumeNotReady"
        no_class = [{"metadata": {"name": "data"}, "spec": {"storageClassName": ""}}]
        made = workload("StatefulSet", volumeClaimTemplates=no_class)
        assert run(node(), group(), made, default).group()["reason"] == "VolumeNotReady"

    def test_a_claim_that_names_a_volume_is_bound_to_it_unless_another_has_it(self, run):
        made = [
            pod(f"p{at}", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": f"c{at}"}}]) for at in (1, 2)
        ]
        claims = [self.claim(f"c{at}", "v", bound=False) for at in (1, 2)]
        there = [self.named("n1"), self.volume("v", "n1"), group()]
        assert run(*there, made[0], claims[0]).group()["placements"] == {"p1": "n1"}
        assert run(*there, made[1], *claims).group()["reason"] == "VolumeNotReady"
        there[1]["spec"]["claimRef"] = {"namespace": "default", "name": "c2"}
        assert run(*there, made[0], *claims).group()["reason"] == "VolumeNotReady"
        assert run(*there, made[1], *claims).group()["placements"] == {"p2": "n1"}

    def test_volumes_that_are_attached_count_though_no_pod_uses_them(self, run):
        drivers = [{"name": "d", "nodeID": "x", "allocatable": {"count": 1}}]
        limit = thing(STORAGE, "CSINode", "n1", spec={"drivers": drivers})
        where = {"attacher": "d", "nodeName": "n1", "source": {"persistentVolumeName": "old"}}
        attached = thing(STORAGE, "VolumeAttachment", "old", spec=where)
        made = workload("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "data"}}])
        there = (self.named("n1"), self.claim(self.CLAIM, "v"), self.volume("v", "n1"), limit, self.volume("old", "n1"))
        assert run(group(), made, *there).group()["bound"] == 1
        assert "would exceed the volume limit of d (1)" in run(group(), made, *there, attached).group()["message"]


class TestDevices:
    @staticmethod
    def of(kind, name, **fields):
        return thing("resource.k8s.io/v1", kind, name, **fields)

    def there(self, *nodes):
        expression = {"cel": {"expression": "device.driver == 'd.example.com'"}}
        slices = [
            self.of(
                "ResourceSlice",
                name,
                spec={
                    "driver": "d.example.com",
                    "nodeName": name,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "d0"}],
                },
            )
            for name in nodes
        ]
        wanted = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
        return (
            self.of("ResourceClaimTemplate", "t", spec={"spec": wanted}),
            self.of("ResourceClaim", "shared", spec=wanted),
            self.of("DeviceClass", "c", spec={"selectors": [expression]}),
            *slices,
        )

    def test_devices_are_made_ready_at_once_and_rules_taint_them(self, run):
        uses = {"resourceClaims": [{"name": "d", "resourceClaimTemplateName": "t"}]}
        made = workload("Job", parallelism=1, pod_spec=uses)
        objects = (node("n1"), group(min_member=1), made, *self.there("n1"))
        objects[-1]["spec"]["devices"][0] |= {"bindingConditions": ["Attached"], "bindsToNode": True}
        assert list(run(*objects).group()["placements"].values()) == ["n1"]
        spec = {"deviceSelector": {"driver": "d.example.com"}, "taint": {"key": "k", "effect": "NoSchedule"}}
        assert run(*objects, self.of("DeviceTaintRule", "rule", spec=spec)).group()["bound"] == 0

    def test_each_pod_of_a_template_gets_its_devices(self, run):
        uses = {"resourceClaims": [{"name": "d", "resourceClaimTemplateName": "t"}]}
        made = workload("Job", parallelism=2, pod_spec=uses)
        nodes = [node(name) for name in ("n1", "n2")]
        got = run(*nodes, group(min_member=2), made, *self.there("n1", "n2")).group()["placements"]
        assert sorted(got.values()) == ["n1", "n2"]
        lacking = run(*nodes, group(min_member=2), made, *self.there("n1")).group()
        assert lacking["bound"] == 0
        assert "DeviceClass c" in lacking["message"]

    def test_a_template_that_is_missing_is_told_and_one_that_cannot_be_read_too(self, run):
        uses = {"resourceClaims": [{"name": "d", "resourceClaimTemplateName": "t"}]}
        _, *there = self.there("n1")
        assert run(node(), group(), pod("p", **uses), *there).group()["reason"] == "ResourceClaimNotReady"
        wrong = self.of("ResourceClaimTemplate", "t", spec={"spec": {"devices": {"requests": 7}}})
        found = run(node(), group(), pod("p", **uses), *there, wrong)
        assert found.status == 2
        assert "Pod p: the API server would refuse it: " in found.errors[0]

    def test_a_claim_that_has_devices_keeps_its_pods_where_they_are(self, run):
        uses = {"resourceClaims": [{"name": "d", "resourceClaimName": "shared"}]}
        objects = self.there("n1", "n2")
        inside = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}
        objects[1]["status"] = {
            "allocation": {
                "devices": {
                    "results": [{"request": "r", "driver": "d.example.com", "pool": "n2", "device": "d0"}],
                },
                "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [inside]}]},
            }
        }
        nodes = [TestVolumes.named(name) for name in ("n1", "n2")]
        assert run(*nodes, group(), pod("p", **uses), *objects).group()["placements"] == {"p": "n2"}
        message = run(nodes[0], group(), pod("p", **uses), *objects).group()["message"]
        assert "1 where the devices of the ResourceClaim shared (node affinity kubernetes.io/hostname=n2)" in message

    @pytest.mark.parametrize(
        ("of_group", "placed"),
        [
            ({"resourceClaimTemplateName": "t"}, ["n1"] * 3),
            ({"resourceClaimName": "shared"}, ["n1"] * 3),
            (None, ["n1", "n2", "n3"]),
        ],
        ids=["from a template", "by name", "not shared"],
    )
    def test_a_native_group_shares_the_claim_that_its_controller_would_make(self, run, of_group, placed):
        """Pods share only a claim that the group lists in the same words; otherwise each gets one of its own."""
        uses = [{"name": "d", **(of_group or {"resourceClaimTemplateName": "t"})}]
        spec = {"schedulingPolicy": {"gang": {"minCount": 3}}, "resourceClaims": uses if of_group else []}
        declared = group("g") | {"apiVersion": "scheduling.k8s.io/v1beta1", "spec": spec}
        named = {"schedulingGroup": {"podGroupName": "g"}, "resourceClaims": uses}
        made = workload("Job", group_name="", parallelism=3, pod_spec=named)
        # The group stands last: the controller makes its claims before those of pods in any case.
        names = dict.fromkeys(placed)
        found = run(*map(node, names), made, *self.there(*names), declared)
        assert sorted(found.group("g")["placements"].values()) == placed


@pytest.mark.parametrize(("options", "bound"), [((), 0), (("--feature-gates", "WorkloadWithJob=false"), 1)])
def test_without_the_gate_the_pods_of_a_job_are_bound_one_by_one(run, options, bound):
    job = workload("Job", group_name="", parallelism=2, completions=2, scheduling={"schedulingPolicy": {"gang": {}}})
    found = run(node(cpu="1"), job, options=options)
    assert sum(len(each["placements"]) for each in found.answer["events"]) == bound


def test_a_gate_that_is_not_known_is_wrong_usage(run, capsys):
    with pytest.raises(SystemExit) as ended:
        run(node(), options=("--feature-gates", "Any=true"))
    assert ended.value.code == 2
    assert "'Any' is no feature gate that can be chosen here" in capsys.readouterr().err


class TestAdmission:
    """The defaults of the API server, visible in which pods fit."""

    @pytest.mark.parametrize(
        ("spec", "bound"),
        [
            ({"containers": [{"name": "a", "resources": {"limits": {"cpu": "3"}}}]}, 1),
            ({"containers": [{"name": "a", "resources": {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}}]}, 2),
            ({"initContainers": [{"name": "i", "resources": {"limits": {"cpu": "3"}}}]}, 1),
            ({"resources": {"limits": {"cpu": "3"}}, "containers": [{"name": "a"}]}, 1),
            ({"resources": {"limits": {"cpu": "3"}}}, 2),
            ({"hostNetwork": True, "containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}, 1),
            ({"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}, 2),
        ],
        ids=lambda value: str(value)[:60],
    )
    def test_defaults_decide_how_many_pods_a_node_of_4_cpus_takes(self, run, spec, bound):
        assert run(node(), group(), pod("a", **spec), pod("b", **spec)).group()["bound"] == bound

    @pytest.mark.parametrize(
        ("tolerations", "bound"),
        [([], 1), ([{"key": NOT_READY, "operator": "Equal", "value": "x"}], 0), ([{"operator": "Exists"}], 1)],
    )
    def test_a_pod_tolerates_a_node_that_is_not_ready_unless_it_says_itself_what_it_tolerates(
        self, run, tolerations, bound
    ):
        """Regression: the API server adds that toleration, but in the simulation the pod waited for another node."""
        not_ready = node(taints=[{"key": NOT_READY, "effect": "NoExecute"}])
        assert run(not_ready, group(), pod("a", tolerations=tolerations)).group()["bound"] == bound

    def test_a_node_gives_its_capacity_where_it_says_nothing_of_allocatable(self, run):
        bare = node()
        bare["status"] = {"capacity": bare["status"]["allocatable"]}
        assert run(bare, group(), pod("a")).group()["bound"] == 1

    def test_what_names_no_namespace_is_in_the_one_given(self, run):
        found = run(node(), group(), pod("a"), options=("--namespace", "team"))
        assert (found.group()["namespace"], found.group()["bound"]) == ("team", 1)


@pytest.mark.parametrize(("number", "status", "waiting"), [(1, 0, []), (2, 1, ["b"])])
def test_pods_without_a_group_count_too(number, status, waiting, capsys, written):
    """`--fail-on-waiting` ended with 0, and "No group in the files." was all that was said."""
    file = written(node(cpu="1"), *(pod(name, None) for name in "ab"[:number]))
    assert main(["simulate", "--fail-on-waiting", file]) == status
    told = capsys.readouterr().out.splitlines()[-1]
    assert all(f"default/{name}" in told for name in waiting)
    assert main(["simulate", "--json", file]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["waitingPods"]] == waiting


class TestForms:
    def test_lists_within_documents_are_taken_apart(self, run):
        listed = {"apiVersion": "v1", "kind": "List", "items": [node(), group()]}
        typed = {"apiVersion": "v1", "kind": "PodList", "items": [{**pod("a"), "kind": None, "apiVersion": None}]}
        assert run(listed, typed).group()["bound"] == 1

    def test_json_is_read_with_tabs_and_one_document_after_the_other(self, run):
        text = "\n".join(json.dumps(each, indent="\t") for each in (node(), group(), pod("a")))
        assert run(text).group()["bound"] == 1

    def test_yaml_in_braces_is_read_too(self, run):
        assert run("{apiVersion: v1, kind: Node, metadata: {name: n1}}").answer == {
            "groups": [],
            "waitingPods": [],
            "events": [],
        }

    def test_creation_timestamps_order_by_age_and_null_is_none(self, run):
        young, old, none = group("young"), group("old"), group("none")
        young["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
        old["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        none["metadata"]["creationTimestamp"] = None
        text = yaml.safe_dump_all(
            [none, young, old, node(cpu="1"), *(pod(name, name) for name in ("none", "young", "old"))]
        )
        found = run(text.replace("'", ""))
        assert [name for _, name, _ in found.decisions()[:3]] == ["old", "young", "none"]

    @pytest.mark.parametrize(
        "times",
        [
            pytest.param({}, id="unknown"),
            pytest.param({"startTime": "2026-01-01T00:00:00Z"}, id="the latest time in the files"),
            pytest.param({"startTime": "soon"}, id="no time"),
        ],
    )
    def test_a_running_pod_ends_at_its_limit_counted_from_its_start_or_else_from_the_simulations(self, run, times):
        """The limit counted from 1970 where no time was known: the group had its place at 0 s, beside a running pod.
        And a start of today was 26 years ahead of the simulated clock, so that no limit was reached."""
        running = pod("old", "", nodeName="n1", activeDeadlineSeconds=50, status={"phase": "Running", **times})
        found = run(node(cpu="1"), running, group(maxScheduleTime="60s"), pod("a"))
        assert found.decisions() == [(0, "g", "Queued"), (50, "g", "Scheduled")]

    def test_what_has_only_a_prefix_gets_a_name_of_its_own_that_no_other_has(self, run):
        made, named = pod("x", meta={"generateName": "w-"}), pod("w-00001")
        del made["metadata"]["name"]
        job = workload("Job", group_name="jobs", meta={"name": "", "generateName": "job-"})
        ordered = workload("StatefulSet", replicas=1)
        objects = (node(cpu="9"), group(), group("jobs"), made, made, named, job, job, ordered)
        found = run(*objects)
        assert set(found.group()["placements"]) == {"w-00001", "w-00002", "w-00003", "w-0"}
        assert set(found.group("jobs")["placements"]) == {"job-00001-0", "job-00002-0"}
        assert run(*objects).answer == found.answer

    def test_equal_prefixes_of_other_kinds_and_namespaces_are_numbered_apart(self, run):
        groups = [{**group(), "metadata": {"generateName": "g-", "namespace": namespace}} for namespace in "ab"]
        assert [(each["namespace"], each["name"]) for each in run(node(), *groups).answer["groups"]] == [
            ("a", "g-00001"),
            ("b", "g-00001"),
        ]

    def test_a_declaration_for_another_operator_that_nothing_reads_is_told_in_one_sentence(self, run):
        minimum = {"scheduling.volcano.sh/group-min-member": "2"}
        jobs = [workload("Job", f"j{number}", "", meta={"annotations": minimum}) for number in range(7)]
        [sentence] = [each for each in run(node(), *jobs).errors if "not used" in each]
        assert "group-min-member of Job default/j0, " in sentence
        assert "j4 and 2 more" in sentence

    def test_what_is_not_read_is_counted_on_standard_error(self, run):
        found = run(node(), pod("p"), thing("v1", "Service", "s"))
        assert found.errors == [
            (
                "gangsched simulate: ignored objects, which create no pods here: 1 Service; if they should, add the "
                "manifests "
                "of their pods"
            )
        ]

    def test_a_kind_that_is_read_in_another_version_is_told_with_its_own(self, run):
        old = TestDevices.of("ResourceSlice", "s") | {"apiVersion": "resource.k8s.io/v1beta1"}
        found = run(node(), pod("p"), old)
        assert "1 ResourceSlice of resource.k8s.io/v1beta1; if they should" in found.errors[0]
        assert found.status == 3

    def test_a_node_that_gives_nothing_is_remarked_on(self, run):
        [remark] = run(thing("v1", "Node", "bare"), pod("p")).errors
        assert remark.endswith("on which pods that request them do not fit: bare")


class TestUnreadable:
    @pytest.mark.parametrize(
        ("objects", "said"),
        [
            (["a: [1"], "FILE, document 1, line 2: is not YAML: "),
            (["kind: Pod\napiVersion: v1\n---\n- a\n"], "FILE, document 2: is not a Kubernetes object"),
            (["just a text"], "FILE, document 1: is not a Kubernetes object"),
            (["kind: Pod"], "FILE, document 1: apiVersion is missing"),
            (["apiVersion: v1"], "FILE, document 1: kind is missing"),
            (["apiVersion: 1\nkind: Pod"], "FILE, document 1: apiVersion is 1: it must be a string"),
            (["{apiVersion: v1, kind: List, items: [3]}"], "FILE, document 1, item 1: is not a Kubernetes object"),
            ([node(), {"apiVersion": "v1", "kind": "Pod"}], "FILE, document 2: Pod has no metadata.name"),
            ([node(), node()], "FILE, document 2: Node n1: already exists in FILE, document 1"),
            ([group(min_member=0)], "FILE, document 1: PodGroup g: the API server would refuse it: spec.minMember"),
            ([group(strategy="Pack")], "spec.strategy is not a field that this version of gangsched knows"),
            (
                [{**group(), "apiVersion": "gangsched.io/v1"}],
                "because gangsched.io/v1 has no kind PodGroup: write PodGroup in gangsched.io/v1alpha1",
            ),
            ([pod("a", cpu="abc")], "resources of container main: cpu: 'abc' is not a quantity"),
            ([pod("a", cpu="-1")], "cpu: '-1' is negative"),
            ([node(cpu=True)], "status.allocatable: cpu: True is not a quantity"),
            ([pod("a", containers=[])], "refuse it without containers"),
            ([pod("a", containers="x")], "spec.containers must be a list of objects"),
            ([pod("a", nodeSelector=["x"])], "Pod a: the API server would refuse it: "),
            ([pod("a", priorityClassName="gone")], "because PriorityClass gone is missing: add its manifest"),
            ([pod("a", meta={"creationTimestamp": "noon"})], "metadata.creationTimestamp: "),
            ([workload("Job", parallelism="2")], "Job w: spec.parallelism is '2': it must be a whole number"),
            ([{**workload("Job"), "spec": {}}], "Job w: spec.template.spec is missing"),
            ([priority_class("p", None)], "PriorityClass p: value is None: it must be a whole number"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )  # fmt: skip
    def test_input_ends_with_2_and_says_where_and_what(self, run, objects, said):
        found = run(*objects)
        assert found.status == 2
        assert found.answer == {}
        assert any(said in line for line in found.errors), found.errors

    def test_every_fault_is_told_at_once(self, run):
        assert len(run(group("a", 0), group("b", 0), pod("c", cpu="x")).errors) == 3

    def test_a_file_that_is_not_there_is_named_with_the_others_that_cannot_be_read(self, tmp_path, capsys):
        binary = tmp_path / "binary"
        binary.write_bytes(b"\xff\xfe\x00")
        assert main(["simulate", str(tmp_path / "none.yaml"), str(binary), str(tmp_path)]) == 2
        first, second, third = capsys.readouterr().err.splitlines()
        assert "none.yaml: cannot be read (No such file or directory)" in first
        assert "binary: is not UTF-8 text" in second
        assert "Is a directory" in third


class TestOtherSystems:
    """Other systems' PodGroups, as in the pages for users who migrate."""

    PAGES = Path(__file__).resolve().parents[2] / "docs" / "migrate"

    def manifest(self, page, *nodes):
        text = (self.PAGES / page).read_text(encoding="utf-8").split("```yaml\n")[1].partition("```\n")[0]
        return f"{text}---\n{yaml.safe_dump_all(nodes)}"

    @pytest.mark.parametrize(
        ("page", "cpu", "bound"),
        [
            ("tenstack.md", "7100m", {"group1": 5, "group2": 0}),
            ("scheduler-plugins.md", "3", {"nginx": 3}),
            ("volcano.md", "3", {"mpi": 3}),
            ("kai.md", "3", {"inference": 3}),
            ("native.md", "4", {"training": 3}),
            ("native.md", "2", {"training": 0}),
        ],
    )
    def test_a_page_ends_as_it_says(self, run, page, cpu, bound):
        found = run(self.manifest(page, node(cpu=cpu)))
        ignored = {"kai.md": ["spec.queue, the label kai.scheduler/queue"]}.get(page, [])
        assert [line.partition(" does not honour ")[2].partition(", which")[0] for line in found.errors] == ignored
        assert {each["name"]: each["bound"] for each in found.answer["groups"]} == bound

    def test_what_is_wrong_in_one_is_a_decision_as_in_the_cluster(self, run):
        text = self.manifest("kai.md", node()).replace("minMember: 2", "minMember: -2")
        found = run(text).group("inference")
        assert (found["bound"], found["reason"]) == (0, "InvalidDeclaration")
        assert found["message"] == (
            "podgroups.scheduling.run.ai inference: spec.subGroups (decode).minMember is -2: write a whole number from "
            "0 to 2147483647."
        )

    def test_a_field_that_is_not_honoured_is_told_as_the_operators_event_tells_it(self, run):
        """Regression: docs/dialects.md promises that it is told, and only the Event of a cluster did."""
        soft = {"mode": "soft", "highestTierAllowed": 1}
        own = thing("scheduling.volcano.sh/v1beta1", "PodGroup", "v", spec={"minMember": 1, "networkTopology": soft})
        member = pod("p", "", meta={"annotations": {"scheduling.k8s.io/group-name": "v"}})
        found = run(node(), own, member)
        assert (found.status, found.group("v")["bound"]) == (0, 1)
        [told] = found.errors
        assert told.startswith(
            "gangsched simulate: gangsched does not honour spec.networkTopology, which is set for the group v: it is "
            "scheduled without."
        )

    def test_two_of_one_name_are_refused_only_within_a_kind(self, run):
        body = thing("scheduling.x-k8s.io/v1alpha1", "PodGroup", "g")
        assert run(node(), body, group(), pod("p")).errors == []
        assert "already exists" in run(node(), body, body).errors[0]


def test_pods_that_are_not_created_count_as_not_bound(run):
    unadmitted = workload("Job", "j", pod_spec={"priorityClassName": "none"})
    objects = (unadmitted, node(), group(), pod("p"))
    assert run(*objects).status == 0
    assert run(*objects, options=["--fail-on-waiting"]).status == 1


def test_a_suspended_workload_is_named_beside_what_is_decided_and_alone(run):
    asleep = workload("Job", "asleep", suspend=True)
    told = "gangsched simulate: FILE, document 1: Job asleep: makes no pods, because spec.suspend is true: "
    beside = run(asleep, node(), group(), pod("p"))
    assert (beside.status, beside.group()["bound"]) == (0, 1)
    assert [line.startswith(told) for line in beside.errors] == [True]
    alone = run(asleep)
    assert alone.status == 3
    assert alone.errors[0].startswith(told)
    assert alone.errors[1].endswith("nothing to decide: the files contain no pod, and none is created, as said above")


def test_a_group_of_a_misspelt_scheduler_is_named_with_the_remedy(written, capsys):
    file = written(node(), group("g"), pod("g-0", schedulerName="gangshced"))
    assert main(["simulate", file]) == 3
    told = capsys.readouterr()
    assert "group default/g is left out, because it belongs to the schedulerName gangshced" in told.err
    assert told.out.splitlines()[-1] == "No group; left out, of another schedulerName: default/g."
    assert main(["simulate", "--scheduler-name", "gangshced", file]) == 0
    assert "1 of 1" in capsys.readouterr().out


class TestStatus:
    """3 where a script must not take the answer for one."""

    @pytest.mark.parametrize(
        "objects",
        [
            (node(),),
            (node(), workload("Job", suspend=True)),
            (node(), pod("p", "", schedulerName="other")),
            (node(), thing("v1", "Service", "s")),
        ],
        ids=["nodes", "suspended", "another scheduler", "ignored"],
    )
    @pytest.mark.parametrize("options", [(), ("--fail-on-waiting",)])
    def test_a_file_without_anything_to_decide_is_no_success(self, run, objects, options):
        """It ended with 0, also with --fail-on-waiting."""
        found = run(*objects, options=options)
        assert found.status == 3
        assert "nothing to decide" in found.errors[-1]

    def test_what_cannot_be_applied_ends_with_3_although_the_answer_is_printed(self, run):
        daemons = workload("DaemonSet", "d")
        found = run(node(), pod("p", ""), daemons)
        assert found.status == 3
        assert [each["verdict"] for each in found.answer["events"]] == ["Scheduled"]
        assert any("this answer may not hold" in line for line in found.errors)

    def test_pods_that_a_quota_refuses_are_told_and_their_group_waits_for_them(self, run):
        quota = thing("v1", "ResourceQuota", "q", spec={"hard": {"pods": "2"}})
        found = run(node(), group(min_member=3), workload("Job", parallelism=3), quota)
        assert (found.group()["reason"], found.group()["bound"], found.status) == ("GangIncomplete", 0, 0)
        assert any("1 of its 3 pods are not created, because ResourceQuota q" in line for line in found.errors)


LETTERS = tuple(zip("abcdefgh", "bcdefghi", strict=True))


def nine(letter):
    """Nine aliases of it."""
    return ",".join([f"*{letter}"] * 9)


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Pod\nmetadata: &m {name: p, labels: *m}\n",
        "a: " + "{a: " * 10_000 + "1" + "}" * 10_000,
        "a: " + "[" * 100_000,
        "- " * 100_000 + "1",
        '{"a":' * 10_000 + "1" + "}" * 10_000,
        "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{y}: &{y} [{nine(x)}]\n" for x, y in LETTERS),
        "a: &a {k: v}\n" + "".join(f"{y}: &{y} {{<<: [{nine(x)}]}}\n" for x, y in LETTERS),
    ],
    ids=["alias of itself", "deep", "deep lists", "deep items", "deep JSON", "aliases of aliases", "merges of merges"],
)  # fmt: skip
def test_what_nobody_can_follow_ends_with_2_and_a_sentence(run, text):
    """The first ended in a traceback; a hundred thousand levels ended the process."""
    found = run(text)
    assert found.status == 2
    [said] = found.errors
    assert "error: FILE" in said


class TestPreemption:
    OBJECTS = (
        node(),
        priority_class("urgent", 100),
        group("low", 4),
        *(pod(f"low-{at}", "low", nodeName="n1", terminationGracePeriodSeconds=10) for at in range(4)),
        group("high", 4, priorityClassName="urgent"),
        *(pod(f"high-{at}", "high") for at in range(4)),
    )

    def test_a_program_reads_who_leaves_when_and_for_whom(self, run):
        found = run(*self.OBJECTS)
        left = [each for each in found.answer["events"] if each["reason"] == "Preempted"]
        assert [(each["name"], each["leaving"], each["placements"]) for each in left] == [
            ("low", {f"low-{at}": "n1" for at in range(4)}, {})
        ]
        assert left[0]["preemptedBy"] == {"namespace": "default", "name": "high", "priority": 100}
        others = [each for each in found.answer["events"] if each["reason"] != "Preempted"]
        assert {(each["preemptedBy"], len(each["leaving"])) for each in others} == {(None, 0)}
        assert (found.group("low")["reason"], found.group("low")["bound"]) == ("Preempted", 0)
        assert found.group("high")["bound"] == 4
        [bound] = [each for each in others if each["placements"]]
        assert bound["time"] - left[0]["time"] == pytest.approx(10)

    def test_a_person_reads_it_in_the_order_of_decisions(self, capsys, written):
        assert main(["simulate", written(*self.OBJECTS)]) == 0
        lines = capsys.readouterr().out.splitlines()
        heads = [line.split()[1:4] for line in lines if "default/" in line and not line.startswith(" " * 8)]
        waits, leaves, bound = (
            heads.index(["default/high", "Queued", "WaitsForVictims"]),
            heads.index(["default/low", "Pending", "Preempted"]),
            heads.index(["default/high", "Scheduled", "Scheduled"]),
        )
        assert waits < leaves < bound
        assert any("default/low as a whole (4 members)" in line for line in lines)
        assert any("default/high" in line and "priority 100" in line for line in lines)
