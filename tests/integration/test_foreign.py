"""Groups that other systems' custom resources declare, on the real API server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest

from gangsched.cli import main
from gangsched.core.objects.events import Event, ForeignGroupSeen, ForeignGroupsHidden, ForeignGroupsReplaced
from gangsched.kube.client.discovery import LOOK_S, Discovery, listed_versions
from gangsched.kube.client.session import connect
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.foreign.watch import ForeignWatch, groups
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.faults.plan import Fault
from tests.faults.proxy import ProxyProcess
from tests.integration.cluster import Cluster
from tests.integration.foreign import DIALECTS, WORDS, Words, install, remove, served

Until = Callable[[str], Awaitable[None]]
CHART = Path(__file__).resolve().parent.parent.parent / "charts" / "gangsched"
NAMESPACE = "gangsched-foreign"

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module", autouse=True)
def kinds(with_crd: ControlPlane) -> Iterator[None]:
    with served(with_crd, *DIALECTS):
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


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_group_of_another_system_is_bound_whole_when_complete_and_not_before(
    cluster: Cluster, with_crd: ControlPlane, capsys, dialect: str
) -> None:
    words = WORDS[dialect]
    cluster.add_node("n1")
    add_pods(cluster, words, "one")
    cluster.until(lambda: cluster.told("one").get("reason") == "PodGroupNotFound")
    missing = cluster.told("one")["message"]
    declare(cluster, words)
    cluster.until(lambda: cluster.told("one").get("reason") == "GangIncomplete")
    said = explained(with_crd, cluster, capsys)
    before = dict(cluster.bound())
    add_pods(cluster, words, "two")
    cluster.until(lambda: len(cluster.bound()) == 2)

    assert f"There is no {DEFAULT.kinds[dialect].name} g in namespace {cluster.namespace}: create it" in missing
    assert before == {}
    assert f"declared    by {dialect} PodGroup" in said
    assert "1 of 2 exist" in said


@pytest.mark.usefixtures("operator")
def test_nothing_is_written_to_other_systems_objects_and_no_pod_is_changed(
    cluster: Cluster, with_crd: ControlPlane
) -> None:
    words = WORDS["volcano"]
    cluster.add_node("n1")
    declare(cluster, words)
    add_pods(cluster, words, "one", "two")
    cluster.until(lambda: len(cluster.bound()) == 2)
    ours = [
        entry
        for entry in with_crd.audited(naming="gangsched")
        if entry.get("userAgent") == "gangsched"
        and "resource" in (about := entry.get("objectRef", {}))
        and about.get("namespace", "") in ("", cluster.namespace)
    ]
    foreign = {kind.resource.group for kind in DEFAULT.kinds.values()}

    assert {entry["verb"] for entry in ours if entry["objectRef"].get("apiGroup") in foreign} == {"list", "watch"}
    written = {
        (entry["verb"], entry["objectRef"].get("subresource"))
        for entry in ours
        if entry["objectRef"]["resource"] == "pods" and entry["verb"] not in ("get", "list", "watch")
    }
    assert written <= {("create", "binding"), ("patch", "status"), ("create", "eviction")}


@pytest.mark.usefixtures("operator")
def test_a_deleted_object_leaves_bound_members_and_lets_others_wait(cluster: Cluster) -> None:
    words = WORDS["kai"]
    cluster.add_node("n1")
    declare(cluster, words)
    add_pods(cluster, words, "one", "two")
    cluster.until(lambda: len(cluster.bound()) == 2)
    cluster.api.delete(f"{words.at(cluster.namespace)}/g")
    add_pods(cluster, words, "three")
    cluster.until(lambda: cluster.told("three").get("reason") == "PodGroupNotFound")
    still = set(cluster.bound())
    declare(cluster, words)
    cluster.until(lambda: len(cluster.bound()) == 3)

    assert still == {"one", "two"}


@pytest.mark.usefixtures("operator")
def test_a_topology_that_koordinator_must_keep_to_is_refused_by_name(cluster: Cluster) -> None:
    words = WORDS["koordinator"]
    key = "gang.scheduling.koordinator.sh/network-topology-spec"
    rule = {"gatherStrategy": [{"layer": "BlockLayer", "strategy": "MustGather"}]}
    cluster.add_node("n1")
    cluster.api.post(
        words.at(cluster.namespace),
        words.body | {"metadata": {"name": "g", "annotations": {key: json.dumps(rule)}}},
    )
    add_pods(cluster, words, "one", "two")
    cluster.until(lambda: cluster.told("one").get("reason") == "NotSupported")
    refused = cluster.told("one")["message"]
    before = dict(cluster.bound())
    cluster.api.delete(f"{words.at(cluster.namespace)}/g")
    declare(cluster, words)
    cluster.until(lambda: len(cluster.bound()) == 2)

    assert f"does not support the annotation {key} with the strategy MustGather: declare the group without" in refused
    assert before == {}


def neighbour(words: Words) -> str:
    """The CRD of another kind of the same group and version, as a system's queues are installed before its groups."""
    group, _, version = words.path.partition("/")
    schema = {"openAPIV3Schema": {"type": "object"}}
    spec = {
        "group": group,
        "names": {"plural": "queues", "singular": "queue", "kind": "Queue"},
        "scope": "Cluster",
        "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
    }
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return json.dumps({**kind, "metadata": {"name": f"queues.{group}"}, "spec": spec})


@pytest.mark.parametrize("dialect", ["scheduler-plugins", "volcano"])
def test_pods_of_a_kind_that_is_installed_later_are_bound_once_it_is_found(
    cluster: Cluster, with_crd: ControlPlane, show: Callable[[str], None], dialect: str
) -> None:
    """gangsched starts without the kind; pods that name a PodGroup of it wait; its CRD is applied.

    Volcano's group and version are there before, with another kind.
    """
    words = WORDS[dialect]
    cluster.add_node("n1")
    remove(with_crd, dialect)
    try:
        if dialect == "volcano":
            with_crd.kubectl("apply", "--filename", "-", stdin=neighbour(words))
        with Operator(with_crd, "--scheduler-name", "late"):
            add_pods(cluster, words, "one", "two", scheduler="late")
            cluster.until(lambda: cluster.told("one").get("reason") == "PodGroupNotFound")
            install(with_crd, dialect)
            began = time.monotonic()
            declare(cluster, words)
            cluster.until(lambda: len(cluster.bound()) == 2, within_s=60)
            took_s = time.monotonic() - began
    finally:
        install(with_crd, dialect)
        with_crd.kubectl("delete", "--ignore-not-found", "--filename", "-", stdin=neighbour(words))

    show(f"{dialect}: bound {took_s:.1f} s after its CRD was served")


# Rights


@pytest.fixture
def account(with_crd: ControlPlane) -> Iterator[Path]:
    """A kubeconfig of the chart's account with the rights of an installation whose dialects are gangsched and kai."""
    shown = [f"--show-only=templates/{name}.yaml" for name in ("rbac", "serviceaccount")]
    chosen = ("--set", "image.repository=none", "--set", "dialects={gangsched,kai}")
    text = with_crd.helm("template", "gangsched", CHART, "--namespace", NAMESPACE, *chosen, *shown)
    with_crd.kubectl("create", "namespace", NAMESPACE)
    with_crd.kubectl("apply", "-f", "-", stdin=text)
    yield with_crd.kubeconfig_of_service_account(NAMESPACE, "gangsched")
    with_crd.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text)
    # The next test creates it again.
    with_crd.kubectl("delete", "namespace", NAMESPACE)


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


@pytest.fixture
def viewer(cluster: Cluster, with_crd: ControlPlane) -> Iterator[Path]:
    """A kubeconfig of an account that may read all that explain needs, but no PodGroups of other systems."""
    kinds = "pods,nodes,namespaces,persistentvolumeclaims,persistentvolumes,storageclasses.storage.k8s.io"
    kinds += ",csinodes.storage.k8s.io,volumeattachments.storage.k8s.io,priorityclasses.scheduling.k8s.io"
    kinds += ",csidrivers.storage.k8s.io,csistoragecapacities.storage.k8s.io"
    kinds += ",deviceclasses.resource.k8s.io,resourceclaims.resource.k8s.io,resourceslices.resource.k8s.io"
    kinds += ",podgroups.gangsched.io"
    name = f"viewer-{cluster.namespace}"
    with_crd.kubectl("create", "clusterrole", name, "--verb=get,list", f"--resource={kinds}")
    # Not served by default, so that kubectl does not know the kind; the right is asked for all the same.
    rule = '{"apiGroups":["resource.k8s.io"],"resources":["devicetaintrules"],"verbs":["list"]}'
    added = f'[{{"op":"add","path":"/rules/-","value":{rule}}}]'
    with_crd.kubectl("patch", "clusterrole", name, "--type=json", f"--patch={added}")
    with_crd.kubectl(
        "create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount={cluster.namespace}:default"
    )
    yield with_crd.kubeconfig_of_service_account(cluster.namespace, "default")
    with_crd.kubectl("delete", "clusterrolebinding,clusterrole", name)


@pytest.mark.usefixtures("operator")
def test_explain_says_what_the_caller_may_not_see(viewer: Path, cluster: Cluster, capsys) -> None:
    words = WORDS["volcano"]
    declare(cluster, words)
    add_pods(cluster, words, "one")
    cluster.until(lambda: cluster.told("one").get("reason") == "GangIncomplete")
    status = main(["explain", "--kubeconfig", str(viewer), f"{cluster.namespace}/g"])
    said, refused = capsys.readouterr()

    assert status == 0, refused
    assert "g: Pending PodGroupUnreadable" in said
    assert "why         You may not list podgroups.scheduling.volcano.sh (" in said
    assert "note        You may not list podgroups.scheduling.run.ai (" in said


# A server that fails for one kind


@pytest.fixture
def proxy(with_crd: ControlPlane) -> Iterator[ProxyProcess]:
    with ProxyProcess(with_crd, seed=5) as running:
        running.calm()
        yield running


def test_nothing_is_decided_before_what_is_served_is_listed(
    proxy: ProxyProcess, cluster: Cluster, with_crd: ControlPlane
) -> None:
    words = WORDS["volcano"]
    cluster.add_node("n1")
    declare(cluster, words)
    add_pods(cluster, words, "one", "two", scheduler="late")
    proxy.next(fault=Fault.ERROR, path_contains="scheduling.volcano.sh", times=3)
    with Operator(with_crd, "--scheduler-name", "late", kubeconfig=proxy.kubeconfig_for()) as running:
        cluster.until(lambda: len(cluster.bound()) == 2)
        log = running.log

    assert "looking for another system's objects failed" in log
    assert log.index("looking for another") < log.index("scheduling begins")
    assert [event["reason"] for event in cluster.events("one")] in ([], ["Scheduled"])


def test_a_kind_that_cannot_be_listed_keeps_nobody_waiting_but_its_own_pods_until_it_can(
    proxy: ProxyProcess, cluster: Cluster, with_crd: ControlPlane
) -> None:
    words = WORDS["volcano"]
    cluster.add_node("n1")
    declare(cluster, words)
    add_pods(cluster, words, "one", "two", scheduler="late")
    cluster.add_pod("plain", scheduler="late")
    proxy.next(fault=Fault.ERROR, path_contains="scheduling.volcano.sh", times=100_000)
    with Operator(with_crd, "--scheduler-name", "late", kubeconfig=proxy.kubeconfig_for()):
        cluster.until(lambda: set(cluster.bound()) == {"plain"}, within_s=45)
        cluster.until(lambda: cluster.told("one").get("reason") == "PodGroupUnreadable")
        message = cluster.told("one")["message"]
        proxy.forget()
        cluster.until(lambda: len(cluster.bound()) == 3)

    assert message.startswith("Group g: gangsched has not been able to list podgroups.scheduling.volcano.sh yet")


# Kinds that come and go


@contextlib.asynccontextmanager
async def watching(dialect: str, kubeconfig: Path) -> AsyncIterator[tuple[list[str], Until]]:
    """The events of a watch that polls discovery every 0.2 s, and a way to wait for them."""
    said: list[str] = []
    news = asyncio.Event()

    def post(events: Sequence[Event]) -> None:
        for event in events:
            match event:
                case ForeignGroupsReplaced(_, groups):
                    said.append(f"all {len(groups)}")
                case ForeignGroupSeen(group):
                    said.append(f"seen {group.key.name}")
                case ForeignGroupsHidden():
                    said.append("hidden")
        news.set()

    async def until(pattern: str) -> None:
        async with asyncio.timeout(30):
            while not (said and re.fullmatch(pattern, said[-1])):
                news.clear()
                await news.wait()

    session = await connect(kubeconfig=str(kubeconfig))
    watch = ForeignWatch(
        session,
        groups(dialect, DEFAULT.kinds[dialect]),
        post,
        observer=Uncounted(),
        discovery=Discovery(session, every_s=0.2),
        retry_s=0.2,
    )
    task = asyncio.create_task(watch.run())
    try:
        yield said, until
    finally:
        task.cancel()
        await asyncio.wait([task])
        await session.close()
        assert task.cancelled()


class Uncounted:
    def watch_events(self, resource: str, count: int) -> None:
        pass

    def relisted(self, resource: str, cause: str) -> None:
        pass


async def test_a_kind_that_is_installed_later_is_found_and_one_that_is_removed_is_missed_without_a_log_storm(
    with_crd: ControlPlane, cluster: Cluster, caplog
) -> None:
    words = WORDS["tenstack"]
    await asyncio.to_thread(remove, with_crd, "tenstack")
    async with watching("tenstack", with_crd.kubeconfig) as (_, until):
        await until("all 0")
        await asyncio.to_thread(install, with_crd, "tenstack")
        await asyncio.to_thread(declare, cluster, words)
        await until("seen g|all 1")
        await asyncio.to_thread(remove, with_crd, "tenstack")
        await until("all 0")
        await asyncio.sleep(1)
        warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
        await asyncio.to_thread(install, with_crd, "tenstack")
        await asyncio.to_thread(declare, cluster, words)
        await until("seen g|all 1")

    assert len(warnings) <= 3, warnings


async def test_asking_discovery_for_ever_costs_next_to_nothing(
    with_crd: ControlPlane, show: Callable[[str], None]
) -> None:
    session = await connect(kubeconfig=str(with_crd.kubeconfig))
    asked = 200
    await listed_versions(session)
    began = time.process_time()
    for _ in range(asked):
        await listed_versions(session)
    hourly_s = (time.process_time() - began) / asked * 3600 / LOOK_S
    await session.close()

    show(f"discovery: {hourly_s:.2f} s of processor time an hour")
    assert hourly_s < 5


async def test_rights_that_are_granted_later_are_used(
    account: Path, with_crd: ControlPlane, cluster: Cluster, caplog
) -> None:
    await asyncio.to_thread(declare, cluster, WORDS["volcano"])
    role = ("create", "clusterrole", "late", "--verb=list,watch", "--resource=podgroups.scheduling.volcano.sh")
    who = ("create", "clusterrolebinding", "late", "--clusterrole=late", f"--serviceaccount={NAMESPACE}:gangsched")
    try:
        async with watching("volcano", account) as (said, until):
            await until("hidden")
            await asyncio.sleep(1)
            hidden = list(said)
            for command in (role, who):
                await asyncio.to_thread(with_crd.kubectl, *command)
            await until("all [1-9][0-9]*")
    finally:
        with_crd.kubectl("delete", "clusterrolebinding,clusterrole", "late", "--ignore-not-found")

    assert hidden == ["hidden"]
    assert len([record for record in caplog.records if "missing right to read" in record.message]) == 1
