"""The control plane is upgraded from 1.36 to 1.37 on the same etcd while gangsched runs and gangs of native groups do.

The versions share no version of the API. 1.37 cannot read a PodGroup that 1.36 has stored: it answers 500 for the
object, 429 for every list, and deletes it only with `ignoreStoreReadErrorWithClusterBreakingPotential`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed import crds, versions
from testbed.api import ApiError, Json
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.workloads import member
from tests.integration.cluster import Cluster
from tests.natives import NATIVE, Native

OLD, NEW = NATIVE[1, 36], NATIVE[1, 37]
UNREADABLE = {"ignoreStoreReadErrorWithClusterBreakingPotential": True}


@pytest.fixture
def upgraded() -> Iterator[ControlPlane]:
    """The control plane at 1.36."""
    folder = versions.older()["v1.36"].folder
    gates = OLD.feature_gates()
    with ControlPlane(
        kubernetes=folder, extra_apiserver_args=(*gates, *OLD.served), extra_controller_args=gates
    ) as running:
        crds.install(running)
        yield running


def declare(cluster: Cluster, native: Native, name: str, minimum: int = 2) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    cluster.api.post(
        native.words.at(cluster.namespace), {**native.words.body, "metadata": {"name": name}, "spec": spec}
    )


def add(cluster: Cluster, group: str, *names: str) -> None:
    for name in names:
        cluster.make_pod(member(f"{group}-{name}", schedulingGroup={"podGroupName": group}))


def withdraw(cluster: Cluster, native: Native, name: str) -> None:
    """Deletes the group although its pods live: its finalizer would wait for them."""
    path = f"{native.words.at(cluster.namespace)}/{name}"
    cluster.api.merge(path, {"metadata": {"finalizers": None}})
    cluster.api.delete(path)


def placed(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """The UID and node of each bound pod."""
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["spec"]["nodeName"])
        for pod in cluster.pods()
        if pod["spec"].get("nodeName")
    }


def listed(cluster: Cluster) -> list[Json]:
    found: list[Json] = cluster.api.get(NEW.words.at(cluster.namespace))["items"]
    return found


def test_native_groups_are_read_in_the_new_version_and_running_gangs_stay(upgraded: ControlPlane) -> None:
    cluster = Cluster(upgraded, "default")
    with Operator(upgraded) as operator:
        cluster.add_node("n1", cpu="16")
        for group in ("run", "left"):
            declare(cluster, OLD, group)
            add(cluster, group, "0", "1")
        declare(cluster, OLD, "wait")
        add(cluster, "wait", "0")
        cluster.until(lambda: len(placed(cluster)) == 4)
        cluster.until(lambda: cluster.told("wait-0").get("reason") == "GangIncomplete")
        before = placed(cluster)
        for group in ("run", "wait"):
            withdraw(cluster, OLD, group)

        gates = NEW.feature_gates()
        upgraded.upgrade(extra_apiserver_args=(*gates, *NEW.served), extra_controller_args=gates)
        assert cluster.api.get("/version")["minor"] == "37"
        with pytest.raises(ApiError) as unread:
            listed(cluster)
        assert unread.value.status == 429
        declare(cluster, NEW, "early", minimum=1)
        add(cluster, "early", "0")
        cluster.until(lambda: cluster.told("early-0").get("reason") == "PodGroupNotFound", within_s=60)
        assert placed(cluster) == before

        cluster.api.delete(f"{NEW.words.at('default')}/left", body=UNREADABLE)
        cluster.until(lambda: [each["metadata"]["name"] for each in listed(cluster)] == ["early"], within_s=60)
        for group in ("run", "left", "wait", "new"):
            declare(cluster, NEW, group)
        add(cluster, "wait", "1")
        add(cluster, "new", "0", "1")
        cluster.until(lambda: len(placed(cluster)) == 9, within_s=60)
        after = placed(cluster)
        log, status = operator.log, operator.child.poll()

    assert {name: after[name] for name in before} == before
    assert status is None
    assert "Traceback" not in log
