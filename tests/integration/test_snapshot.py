"""`gangsched snapshot` of a real cluster: its contents, its omissions, and that simulate decides the same with it."""

from __future__ import annotations

import json

import pytest

from gangsched.cli import main
from testbed.operator import Operator
from tests.integration.access import may
from tests.integration.cluster import Cluster
from tests.integration.waiting import until


@pytest.fixture
def gangsched(monkeypatch, capsys):
    """Calls a command that must succeed; what it prints, and what it says on standard error."""
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments):
        status = main(list(arguments))
        shown = capsys.readouterr()
        assert status == 0, shown.err
        return shown.out, shown.err

    return run


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


def test_simulate_decides_by_a_snapshot_as_the_operator_does_and_no_secret_is_in_it(
    gangsched, with_crd, waiting, tmp_path
):
    taken, said = gangsched("snapshot", "--kubeconfig", str(with_crd.kubeconfig))
    assert said == ""
    assert "s3cr3t" not in taken
    found = json.loads(taken)["items"]
    kinds = {each["kind"] for each in found}
    assert {"Node", "Pod", "Job", "Namespace", "PriorityClass"} <= kinds
    assert not kinds & {"Secret", "ConfigMap"}
    assert all("managedFields" not in each["metadata"] for each in found)

    file = tmp_path / "snapshot.json"
    file.write_text(taken)
    simulated, _ = gangsched("simulate", str(file), "--json")
    groups = json.loads(simulated)["groups"]
    mine = {each["name"]: each for each in groups if each["namespace"] == waiting.namespace}
    assert {name: (each["phase"], each["bound"]) for name, each in mine.items()} == {
        "job.first": ("Running", 3),
        "job.second": ("TimedOut", 0),
    }
    assert "cpu 1" in mine["job.second"]["message"]


def test_what_may_not_be_listed_is_left_out_and_said(gangsched, with_crd, namespace):
    name = f"nodes-{namespace}"
    account = f"{namespace}:default"
    with_crd.add_node("n1")
    with_crd.kubectl("create", "clusterrole", name, "--verb=list", "--resource=nodes")
    with_crd.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount={account}")
    until(lambda: may(with_crd.api, f"system:serviceaccount:{account}", "list", "nodes"))
    kubeconfig = with_crd.kubeconfig_of_service_account(namespace, "default")
    taken, said = gangsched("snapshot", "--kubeconfig", str(kubeconfig))
    with_crd.kubectl("delete", "clusterrolebinding,clusterrole", name)
    assert {each["kind"] for each in json.loads(taken)["items"]} == {"Node"}
    told = "gangsched snapshot: You may not list pods, so the snapshot has none: request the right to list them."
    assert told in said.splitlines()
