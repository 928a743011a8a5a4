"""The parts of an object that a snapshot omits."""

from __future__ import annotations

from gangsched.cli.recording import recorded
from gangsched.whatif.world.made import RECORDED

LAST = "kubectl.kubernetes.io/last-applied-configuration"


def test_of_containers_at_any_depth_only_what_decides_is_kept():
    container = {
        "name": "main",
        "image": "i",
        "resources": {"requests": {"cpu": "1"}},
        "ports": [{"hostPort": 80}],
        "env": [{"name": "A", "value": "secret"}],
        "envFrom": [],
        "command": ["secret"],
        "args": ["secret"],
        "lifecycle": {},
        "livenessProbe": {},
        "volumeMounts": [],
    }
    kept = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 80}]}
    spec = {"containers": [container], "initContainers": [container], "nodeSelector": {"data": "x", "env": "y"}}
    found = recorded({"metadata": {"name": "a"}, "spec": {"workers": [{"template": {"spec": spec}}]}})
    assert found["spec"]["workers"][0]["template"]["spec"] == {
        "containers": [kept],
        "initContainers": [kept],
        "nodeSelector": {"data": "x", "env": "y"},
    }


def test_metadata_keeps_all_but_who_wrote_it_and_what_was_applied():
    annotations = {"gangsched.io/min-member": "4", LAST: "{}"}
    metadata = {"name": "a", "labels": {"data": "x"}, "annotations": annotations, "managedFields": [{}]}
    assert recorded({"metadata": metadata})["metadata"] == {
        "name": "a",
        "labels": {"data": "x"},
        "annotations": {"gangsched.io/min-member": "4"},
    }


def test_parameters_of_a_csi_driver_are_left_out():
    volume = {"metadata": {"name": "a"}, "spec": {"csi": {"driver": "d", "volumeAttributes": {"password": "x"}}}}
    assert recorded(volume)["spec"] == {"csi": {"driver": "d"}}


def test_a_workload_says_that_its_pods_are_recorded_too():
    assert recorded({"metadata": {"name": "a"}}, workload=True)["metadata"]["annotations"] == {RECORDED: "true"}


def test_what_has_not_the_form_of_a_container_does_no_harm():
    assert recorded({"metadata": {}, "spec": {"containers": "x", "initContainers": [1]}})["spec"] == {
        "containers": "x",
        "initContainers": [{}],
    }
