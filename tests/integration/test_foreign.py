"""Groups that other systems' custom resources declare, on the real API server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gangsched.cli import main
from gangsched.kube.client.discovery import LOOK_S, listed_versions
from gangsched.kube.client.session import connect
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.rights import chart_account
from tests.integration import workloads
from tests.integration.cluster import Cluster
from tests.integration.foreign import WORDS, Words, install, remove, served

NAMESPACE = "gangsched-foreign"

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module", autouse=True)
def kinds(with_crd: ControlPlane) -> Iterator[None]:
    """Two of the kinds: `test_migrate.py` plays the manifests of all."""
    with served(with_crd, "kai", "volcano"):
        yield


@pytest.fixture(scope="module")
def operator(with_crd: ControlPlane) -> Iterator[Operator]:
    with Operator(with_crd) as running:
        yield running


def declare(cluster: Cluster, words: Words) -> None:
    cluster.api.post(words.at(cluster.namespace), words.body)


def add_pods(cluster: Cluster, words: Words, *names: str, scheduler: str = "gangsched") -> None:
    for name in names:
        cluster.add_pod(name, labels=words.labels, annotations=words.annotations, scheduler=scheduler)


def explained(control_plane: ControlPlane, cluster: Cluster, capsys, *arguments: str) -> str:
    main(["explain", "--kubeconfig", str(control_plane.kubeconfig), f"{cluster.namespace}/g", *arguments])
    return str(capsys.readouterr().out)


def test_pods_of_a_kind_that_is_installed_later_are_bound_once_it_is_found(
    cluster: Cluster, with_crd: ControlPlane, show: Callable[[str], None]
) -> None:
    """gangsched starts without the kind; pods that name a PodGroup of it wait; its CRD is applied.

    Its group and version are there before, with another kind.
    """
    words = WORDS["volcano"]
    group, _, version = words.path.partition("/")
    cluster.add_node("n1")
    remove(with_crd, "volcano")
    try:
        with (
            workloads.served(with_crd, group=group, version=version, kind="Queue", plural="queues"),
            Operator(with_crd, "--scheduler-name", "late"),
        ):
            add_pods(cluster, words, "one", "two", scheduler="late")
            cluster.until(lambda: cluster.told("one").get("reason") == "PodGroupNotFound")
            install(with_crd, "volcano")
            began = time.monotonic()
            declare(cluster, words)
            cluster.until(lambda: len(cluster.bound()) == 2, within_s=60)
            took_s = time.monotonic() - began
    finally:
        install(with_crd, "volcano")

    show(f"bound {took_s:.1f} s after its CRD was served")


# Rights


@pytest.fixture
def account(with_crd: ControlPlane) -> Iterator[Path]:
    """A kubeconfig of the chart's account with the rights of an installation whose dialects are gangsched and kai."""
    with chart_account(with_crd, NAMESPACE, "--set", "dialects={gangsched,kai}"):
        yield with_crd.kubeconfig_of_service_account(NAMESPACE, "gangsched")


def test_what_may_not_be_read_is_said_once_and_by_explain_and_other_groups_go_on(
    account: Path, cluster: Cluster, with_crd: ControlPlane, capsys
) -> None:
    words = WORDS["volcano"]
    cluster.add_node("n1", cpu="8")
    declare(cluster, words)
    declare(cluster, WORDS["kai"])
    with Operator(with_crd, "--scheduler-name", "limited", kubeconfig=account) as running:
        add_pods(cluster, words, "one", "two", scheduler="limited")
        cluster.add_group("ours", min_member=2)
        cluster.add_pods("ours", 2, scheduler="limited")
        kai = {**WORDS["kai"].body, "metadata": {"name": "k"}}
        cluster.api.post(WORDS["kai"].at(cluster.namespace), kai)
        for name in ("k-0", "k-1"):
            said = {"pod-group-name": "k"}
            cluster.add_pod(name, labels=WORDS["kai"].labels, annotations=said, scheduler="limited")
        cluster.until_bound("ours", 2)
        cluster.until(lambda: len(cluster.bound()) == 4)
        cluster.until(lambda: cluster.told("one").get("reason") == "PodGroupUnreadable")
        told = explained(with_crd, cluster, capsys, "--scheduler-name", "limited")
        ready = running.get("/readyz")[0]
        lines = [line for line in running.log.splitlines() if "missing right to read" in line]

    why = "gangsched may not read podgroups.scheduling.volcano.sh: name volcano in the chart's value `dialects`"
    assert cluster.told("one")["message"].startswith(f"Group g: {why}")
    assert "g: Pending PodGroupUnreadable" in told
    assert why in told
    assert ready == 200
    assert len([line for line in lines if "volcano" in line]) == 1
    assert not [line for line in lines if "dialect=kai" in line]


# Kinds that come and go


async def test_asking_discovery_for_ever_costs_next_to_nothing(
    with_crd: ControlPlane, show: Callable[[str], None]
) -> None:
    session = await connect(kubeconfig=str(with_crd.kubeconfig))
    asked = 50
    await listed_versions(session)
    began = time.process_time()
    for _ in range(asked):
        await listed_versions(session)
    hourly_s = (time.process_time() - began) / asked * 3600 / LOOK_S
    await session.close()

    show(f"discovery: {hourly_s:.2f} s of processor time an hour")
    assert hourly_s < 5
