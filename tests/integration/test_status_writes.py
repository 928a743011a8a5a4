"""Writes of a PodGroup's status on the real API server: how gangsched interprets its error messages."""

from __future__ import annotations

import asyncio

import pytest

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import PatchStatus
from gangsched.core.objects.record import Phase, Record
from gangsched.core.objects.results import StatusWritten
from gangsched.core.objects.status import GroupStatus
from gangsched.kube.client.session import connect
from gangsched.kube.writing.statuses import patch_status
from gangsched.kube.writing.write_results import Outcome, WriteResult
from tests.integration.cluster import Cluster


def patched(cluster: Cluster, uid: str, *, bound: int = 0, resource_version: str = "") -> WriteResult:
    """The result of the operator's own status write for the PodGroup a."""
    status = GroupStatus(Record(phase=Phase.QUEUED), bound=bound)
    effect = PatchStatus(GroupKey(cluster.namespace, "a"), uid, status, resource_version)

    async def asked() -> WriteResult:
        session = await connect(kubeconfig=str(cluster.control_plane.kubeconfig))
        try:
            return await patch_status(session, effect)
        finally:
            await session.close()

    return asyncio.run(asked())


@pytest.fixture
def group(cluster: Cluster) -> dict[str, str]:
    """The metadata of a PodGroup a, which has no status yet."""
    cluster.add_group("a", min_member=1)
    return metadata(cluster)


def metadata(cluster: Cluster) -> dict[str, str]:
    [found] = cluster.api.get(f"/apis/gangsched.io/v1alpha1/namespaces/{cluster.namespace}/podgroups")["items"]
    meta: dict[str, str] = found["metadata"]
    return meta


@pytest.mark.parametrize("conditional", [False, True])
def test_a_podgroup_that_was_made_again_does_not_get_the_old_ones_status(cluster, group, conditional):
    """The PodGroup is deleted and recreated while a write of its status is in flight."""
    cluster.delete_group("a")
    cluster.add_group("a", min_member=1)
    answer = patched(cluster, group["uid"], resource_version=group["resourceVersion"] if conditional else "")
    assert answer.result is Outcome.GONE, answer
    assert cluster.status("a") == {}


def test_a_status_is_replaced_as_a_whole_and_the_version_that_it_gave_is_known(cluster, group):
    cluster.api.merge(
        f"/apis/gangsched.io/v1alpha1/namespaces/{cluster.namespace}/podgroups/a/status",
        {"status": {"phase": "Reserved", "reservation": {"expires": "2026-01-01T00:00:00Z", "placements": []}}},
    )
    written = patched(cluster, group["uid"])
    version = metadata(cluster)["resourceVersion"]
    assert written == WriteResult(Outcome.WRITTEN, StatusWritten(GroupKey(cluster.namespace, "a"), version))
    assert cluster.phase("a") == "Queued"
    assert "reservation" not in cluster.status("a")
    again = patched(cluster, group["uid"], bound=1, resource_version=version)
    assert again.result is Outcome.WRITTEN, again
    assert cluster.status("a")["bound"] == 1


def test_a_status_on_condition_of_a_version_that_is_past_is_stale(cluster, group):
    cluster.change_spec("a", minMember=2)
    answer = patched(cluster, group["uid"], resource_version=group["resourceVersion"])
    assert answer.result is Outcome.STALE, answer
    assert cluster.status("a") == {}


def test_a_status_that_the_schema_forbids_is_refused_and_one_of_no_podgroup_is_gone(cluster, group):
    assert patched(cluster, group["uid"], bound=-1).result is Outcome.REFUSED
    cluster.delete_group("a")
    assert patched(cluster, group["uid"]).result is Outcome.GONE
