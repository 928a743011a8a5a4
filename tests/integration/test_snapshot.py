"""`gangsched snapshot` of a real cluster: its contents, its omissions, and that simulate decides the same with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from testbed.operator import Operator
from tests.integration.cluster import Cluster


def gangsched(*arguments, stdin=""):
    return subprocess.run(
        [sys.executable, "-m", "gangsched", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"NO_COLOR": "1"},
    )


def job(name, *, parallelism, cpu, annotations):
    secret = [{"name": "TOKEN", "value": "s3cr3t-value"}]
    container = {"name": "main", "image": "none", "env": secret, "command": ["run", "--password=s3cr3t-value"]}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "parallelism": parallelism,
            "completions": parallelism,
            "template": {
                "spec": {
                    "schedulerName": "gangsched",
                    "restartPolicy": "Never",
                    "containers": [container | {"resources": {"requests": {"cpu": cpu}}}],
                }
            },
        },
    }


@pytest.fixture
def waiting(with_crd, namespace):
    """Two Job gangs without a declaration; only one fits, and KWOK runs it."""
    cluster = Cluster(with_crd, namespace)
    cluster.add_node("n1", cpu="4")
    notes = {"gangsched.io/gang": "true"}
    with Operator(with_crd, "--namespace", namespace):
        jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        with_crd.api.post(jobs, job("first", parallelism=3, cpu="1", annotations=notes))
        pods = f"/api/v1/namespaces/{namespace}/pods"
        cluster.until(
            lambda: sum(each["status"].get("phase") == "Running" for each in with_crd.api.get(pods)["items"]) == 3
        )
        with_crd.api.post(jobs, job("second", parallelism=2, cpu="1", annotations=notes))
        cluster.until(lambda: len(with_crd.api.get(pods)["items"]) == 5)
        yield cluster


def test_simulate_decides_by_a_snapshot_as_the_operator_does_and_no_secret_is_in_it(with_crd, waiting, tmp_path):
    taken = gangsched("snapshot", "--kubeconfig", str(with_crd.kubeconfig))
    assert (taken.returncode, taken.stderr) == (0, "")
    assert "s3cr3t" not in taken.stdout
    found = json.loads(taken.stdout)["items"]
    kinds = {each["kind"] for each in found}
    assert {"Node", "Pod", "Job", "Namespace", "PriorityClass"} <= kinds
    assert not kinds & {"Secret", "ConfigMap"}
    assert all("managedFields" not in each["metadata"] for each in found)

    file = tmp_path / "snapshot.json"
    file.write_text(taken.stdout)
    done = gangsched("simulate", str(file), "--json")
    assert done.returncode == 0, done.stderr
    simulated = json.loads(done.stdout)
    mine = {each["name"]: each for each in simulated["groups"] if each["namespace"] == waiting.namespace}
    assert {name: (each["phase"], each["bound"]) for name, each in mine.items()} == {
        "job.first": ("Running", 3),
        "job.second": ("TimedOut", 0),
    }
    assert "cpu 1" in mine["job.second"]["message"]


def test_what_may_not_be_listed_is_left_out_and_said(with_crd, waiting):
    name = f"nodes-{waiting.namespace}"
    with_crd.kubectl("create", "clusterrole", name, "--verb=list", "--resource=nodes")
    with_crd.kubectl(
        "create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount={waiting.namespace}:default"
    )
    kubeconfig = with_crd.kubeconfig_of_service_account(waiting.namespace, "default")
    try:
        waiting.until(
            lambda: "You may not list nodes" not in gangsched("snapshot", "--kubeconfig", str(kubeconfig)).stderr
        )
        taken = gangsched("snapshot", "--kubeconfig", str(kubeconfig))
    finally:
        with_crd.kubectl("delete", "clusterrolebinding,clusterrole", name)
    assert taken.returncode == 0, taken.stderr
    assert {each["kind"] for each in json.loads(taken.stdout)["items"]} == {"Node"}
    told = "gangsched snapshot: You may not list pods, so the snapshot has none: request the right to list them."
    assert told in taken.stderr.splitlines()
