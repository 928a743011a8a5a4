"""`kubectl gang` as people call it: the real kubectl, the real API server, users with fewer rights, a terminal."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.integration.access import may
from tests.integration.cluster import Cluster
from tests.integration.plugin import Kubectl
from tests.integration.waiting import until
from tests.terminal import Terminal

pytestmark = pytest.mark.usefixtures("operator")


@pytest.fixture(autouse=True)
def _no_nodes_left() -> None:
    """Overridden: here the node and the gangs stay from one test to the next."""


@pytest.fixture(scope="module")
def waiting(with_crd: ControlPlane) -> Iterator[Cluster]:
    """A bound group, one that waits for room, one without enough members, and one that only its pods declare."""
    with_crd.delete_nodes()
    cluster = Cluster(with_crd, f"gangs-{secrets.token_hex(4)}")
    with_crd.kubectl("create", "namespace", cluster.namespace)
    with_crd.kubectl("wait", "--for=create", "serviceaccount/default", "-n", cluster.namespace)
    cluster.add_node("n1", cpu="3")
    cluster.add_gang("holder", 2)
    cluster.until_bound("holder", 2)
    cluster.until(lambda: cluster.phase("holder") == "Running")
    cluster.add_group("waiter", min_member=3, maxScheduleTime="1h")
    cluster.add_pods("waiter", 3)
    cluster.until_reason("waiter", "Unschedulable")
    cluster.add_group("few", min_member=4)
    cluster.add_pods("few", 1)
    cluster.until_reason("few", "GangIncomplete")
    for number in range(2):
        cluster.add_pod(f"bare-{number}", "bare", annotations={"gangsched.io/min-member": "2"}, requests={"cpu": "2"})
    cluster.until(lambda: cluster.told("bare-0").get("reason") == "Unschedulable")
    yield cluster
    with_crd.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "-n", cluster.namespace)
    with_crd.kubectl("delete", "namespace", cluster.namespace, "--wait=false")
    with_crd.delete_nodes()


@pytest.fixture
def kubectl(waiting: Cluster, tmp_path: Path) -> Kubectl:
    """kubectl in the namespace of these gangs."""
    return Kubectl(waiting.control_plane, waiting.namespace, tmp_path)


def grant(cluster: Cluster, user: str, resources: Sequence[str], *, group: str = "") -> None:
    """Let the user of the namespace get and list these."""
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{cluster.namespace}"
    rules = [{"apiGroups": ["*"], "resources": list(resources), "verbs": ["get", "list"]}]
    cluster.api.post(f"{rbac}/roles", {"metadata": {"name": user}, "rules": rules})
    subject = {"kind": "Group", "name": group} if group else {"kind": "User", "name": user}
    cluster.api.post(
        f"{rbac}/rolebindings",
        {
            "metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", **subject}],
        },
    )
    if not group:
        # The API server's authorizer learns of the binding by a watch.
        until(lambda: may(cluster.api, user, "list", resources[0], namespace=cluster.namespace))


def table(text: str) -> list[list[str]]:
    return [re.split(r"\s{3,}", line) for line in text.splitlines()]


class TestList:
    def test_what_waits_longest_comes_first_in_the_namespace_of_the_context(self, kubectl):
        head, *rows = table(kubectl.run("gang", "list"))
        assert head == ["NAME", "PHASE", "MEMBERS", "BOUND", "WAITS", "REASON"]
        # A group declared only by pods waits since their creation, in whole seconds.
        [bare] = [row for row in rows if row[0] == "bare"]
        rows.remove(bare)
        assert [row[:4] for row in rows] == [
            ["waiter", "Queued", "3/3", "0"],
            ["few", "Pending", "1/4", "0"],
            ["holder", "Running", "2/2", "2"],
        ]
        assert [row[5] for row in rows] == ["Unschedulable", "GangIncomplete", "Scheduled"]
        assert all(re.fullmatch(r"(\d+m)?\d+s", row[4]) for row in rows[:2])
        assert rows[2][4] == "-"
        assert bare[:4] + bare[5:] == ["bare", "Queued", "2/2", "0", "Unschedulable"]

    def test_all_namespaces_have_a_column_of_their_own(self, waiting, kubectl):
        head, *rows = table(kubectl.run("gang", "list", "-A"))
        assert head[:2] == ["NAMESPACE", "NAME"]
        assert [waiting.namespace, "waiter", "Queued"] in [row[:3] for row in rows]

    def test_programs_get_names_json_and_yaml_of_the_same(self, waiting, kubectl):
        names = kubectl.run("gang", "list", "-o", "name", "-n", waiting.namespace).splitlines()
        declared = {f"podgroup.gangsched.io/{name}" for name in ("waiter", "few", "holder")}
        assert set(names) == {"gang.gangsched.io/bare", *declared}
        for name in names:
            assert kubectl.run("gang", "explain", name, "-n", waiting.namespace, "-o", "name") == f"{name}\n"
        found = json.loads(kubectl.run("gang", "list", "-o", "json"))
        assert yaml.safe_load(kubectl.run("gang", "list", "-o", "yaml")) == found
        [few] = [each for each in found["groups"] if each["name"] == "few"]
        assert (few["name"], few["phase"], few["reason"]) == ("few", "Pending", "GangIncomplete")
        assert (few["members"], few["minimum"], few["bound"], few["podGroup"]) == (1, 4, 0, True)
        assert few["waitingSince"].endswith("Z")
        assert few["pods"] == ["few-0"]

    @pytest.mark.parametrize(("flags", "place"), [(["-A"], "all namespaces"), ([], "the namespace")])
    def test_who_may_list_nothing_is_told_which_right_to_ask_for(self, kubectl, flags, place):
        """Regression: with -A, too, the right in one namespace was named, which is not enough."""
        status, out, err = kubectl.tried("gang", "list", *flags, "--as", "nobody")
        assert (status, out) == (1, "")
        assert f"ask for the right to list podgroups.gangsched.io and pods in {place};" in err

    def test_an_empty_namespace_is_told_on_standard_error(self, cluster, kubectl):
        status, out, err = kubectl.tried("gang", "list", "-n", cluster.namespace)
        assert (status, out) == (0, "")
        assert err == f"kubectl gang list: No groups in namespace {cluster.namespace}; -A lists all.\n"

    def test_who_may_list_podgroups_alone_sees_what_these_say(self, waiting, kubectl):
        grant(waiting, "lister", ["podgroups"])
        status, out, err = kubectl.tried("gang", "list", "--as", "lister")
        assert status == 0
        assert [row[:4] for row in table(out)[1:]] == [
            ["waiter", "Queued", "3/3", "0"],
            ["few", "Pending", "1/4", "0"],
            ["holder", "Running", "2/2", "2"],
        ]
        assert 'only the status of PodGroups, because the API server says: pods is forbidden: User "lister"' in err

    def test_a_group_that_is_impersonated_counts(self, waiting, kubectl):
        grant(waiting, "viewers", ["podgroups", "pods"], group="team")
        assert kubectl.tried("gang", "list", "--as", "joe")[0] == 1
        assert "waiter" in kubectl.run("gang", "list", "--as", "joe", "--as-group", "team")

    def test_who_may_see_nothing_is_told_what_to_ask_for(self, kubectl):
        status, out, err = kubectl.tried("gang", "list", "--as", "nobody")
        assert (status, out) == (1, "")
        assert err.startswith("kubectl gang list: error: podgroups.gangsched.io is forbidden")
        assert "ask for the right to list podgroups.gangsched.io and pods in the namespace" in err

    def test_a_group_without_a_user_to_impersonate_is_refused(self, kubectl):
        status, _, err = kubectl.tried("gang", "list", "--as-group", "team")
        assert status == 2
        assert "add --as USER" in err

    def test_a_hostile_message_is_shown_escaped(self, cluster, kubectl):
        cluster.add_pod(
            "evil-0", "evil", annotations={"gangsched.io/min-member": "\x1b]0;owned\x07"}, requests={"cpu": "1"}
        )
        cluster.until(lambda: "min-member" in str(cluster.told("evil-0")))
        for arguments in (["list", "-o", "wide"], ["explain", "evil"], ["events", "evil", "-o", "wide"]):
            out = kubectl.run("gang", *arguments, "-n", cluster.namespace)
            assert "evil" in out
            assert "\x1b" not in out
            assert "\x07" not in out
        assert "\\x1b]0;owned" in kubectl.run("gang", "list", "-o", "wide", "-n", cluster.namespace)


class TestWatch:
    def test_a_change_is_shown_and_ctrl_c_is_no_failure(self, cluster, kubectl):
        for name in ("still", "grows"):
            cluster.add_group(name, min_member=3)
        cluster.until_reason("grows", "NoMembers")
        command = [kubectl.binary, "gang", "list", "--watch", "-n", cluster.namespace]
        with Terminal(command, env=kubectl.env(TERM="dumb")) as terminal:
            terminal.until(lambda shown: "still" in shown and "grows" in shown)
            cluster.add_pods("grows", 1)
            terminal.until(lambda shown: "1/3" in shown)
            for text in ("NAME ", "still "):
                assert terminal.shown.count(text) == 1
            terminal.interrupt()
            assert terminal.ended() == 0
            assert "Traceback" not in terminal.shown


class TestExplain:
    def test_json_and_yaml_say_the_same_of_a_group_in_the_namespace_of_the_context(self, waiting, kubectl):
        found = json.loads(kubectl.run("gang", "explain", "waiter", "-o", "json"))
        assert found == yaml.safe_load(kubectl.run("gang", "explain", "waiter", "-o", "yaml"))
        assert (found["namespace"], found["name"], found["reason"]) == (waiting.namespace, "waiter", "Unschedulable")
        assert (found["shortfall"]["fits"], found["shortfall"]["lacks"]) == (1, {"cpu": "2"})

    def test_without_a_name_all_that_wait_are_listed(self, waiting, kubectl):
        told = json.loads(kubectl.run("gang", "explain", "-A", "--json"))
        names = {each["name"] for each in told["waiting"] if each["namespace"] == waiting.namespace}
        assert names == {"waiter", "few", "bare"}

    def test_who_may_see_podgroups_alone_is_told_their_status_and_that_pods_are_unknown(self, waiting, kubectl):
        grant(waiting, "viewer", ["podgroups"])
        told = json.loads(kubectl.run("gang", "explain", "waiter", "--json", "--as", "viewer"))
        assert (told["reason"], told["message"]) == ("Unschedulable", waiting.condition("waiter")["message"])
        assert told["shortfall"] is None
        assert "forbidden" in told["fromStatusAlone"]
        status, out, err = kubectl.tried("gang", "explain", "none", "--as", "viewer")
        assert (status, out) == (1, "")
        assert "gangsched cannot see whether pods declare such a group" in err


class TestEvents:
    def test_those_of_the_group_and_its_members_come_in_the_order_of_time(self, waiting, kubectl):
        until(lambda: "podgroup/holder" in kubectl.run("gang", "events", "holder"))
        waiting.api.post(
            f"/api/v1/namespaces/{waiting.namespace}/events",
            {
                "metadata": {"name": "pulled"},
                "involvedObject": {"kind": "Pod", "name": "holder-1", "namespace": waiting.namespace},
                "reason": "Pulled",
                "type": "Normal",
                "message": "Image is there.",
                "count": 3,
                "lastTimestamp": (datetime.now(UTC) + timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            },
        )
        head, *rows = table(kubectl.run("gang", "events", "holder"))
        assert head == ["LAST", "TYPE", "REASON", "OBJECT", "MESSAGE"]
        assert rows[-1] == ["0s (×3)", "Normal", "Pulled", "pod/holder-1", "Image is there."]
        [scheduled] = [row for row in rows if row[2:4] == ["Scheduled", "podgroup/holder"]]
        assert "Bound 2 members to n1 (2)." in scheduled[4]
        assert not [row for row in rows if "waiter" in row[3]]
        found = json.loads(kubectl.run("gang", "events", "holder", "-o", "json"))
        assert [each["reason"] for each in found["items"]] == [row[2] for row in rows]

    def test_who_may_not_list_pods_sees_those_of_the_podgroup(self, waiting, kubectl):
        grant(waiting, "watcher", ["events"])
        status, out, err = kubectl.tried("gang", "events", "waiter", "--as", "watcher")
        assert status == 0
        assert {row[3] for row in table(out)[1:]} == {"podgroup/waiter"}
        assert "only Events of the PodGroup, because you may not list its members" in err


class TestPlugin:
    def test_it_calls_itself_what_people_type_and_installs_no_operator(self, kubectl):
        status, told, err = kubectl.started("gang", "--help")
        assert (status, err) == (0, "")
        assert told.startswith("usage: kubectl gang ")
        assert "run the operator" not in told
        status, _, err = kubectl.started("gang", "explain", "a/b/c")
        assert (status, err.split(":")[0]) == (2, "kubectl gang explain")

    def test_kubectl_completes_commands_flags_groups_namespaces_and_contexts(self, waiting, kubectl):
        def completed(*words: str) -> list[str]:
            *found, _ = kubectl.run("__complete", "gang", *words).splitlines()
            return [line.split("\t")[0] for line in found]

        assert completed("ex") == ["explain"]
        assert "--all-namespaces" in completed("list", "--a")
        # Completion waits at most 2 s for the cluster's answer; a busy machine may need several tries.
        until(lambda: completed("explain", "w") == ["waiter"], 60)
        until(lambda: f"{waiting.namespace}/few" in completed("explain", f"{waiting.namespace}/"), 60)
        until(lambda: f"{waiting.namespace}/few" in completed("explain", "-A", waiting.namespace[:-1]), 60)
        until(lambda: completed("list", "-n", waiting.namespace[:-1]) == [waiting.namespace], 60)
        assert completed("list", "--context", "") == ["testbed"]
        assert completed("explain", "--as", "nobody", "w") == []

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_each_shell_gets_a_script(self, kubectl, shell):
        assert "gangsched" in kubectl.run("gang", "completion", shell)


class TestTerminal:
    GREEN, YELLOW = "\x1b[32mRunning\x1b[0m", "\x1b[33mQueued\x1b[0m"

    def listed(self, kubectl: Kubectl, **env: str) -> list[str]:
        with Terminal([kubectl.binary, "gang", "list"], env=kubectl.env(**env)) as terminal:
            assert terminal.ended() == 0
            return terminal.lines

    def test_phases_are_coloured_where_that_is_welcome(self, kubectl):
        coloured = "\n".join(self.listed(kubectl, TERM="xterm"))
        assert self.GREEN in coloured
        assert self.YELLOW in coloured
        assert "\x1b[3" not in "\n".join(self.listed(kubectl, TERM="xterm", NO_COLOR="1"))
        assert "\x1b" not in kubectl.run("gang", "list")


class TestTop:
    def test_off_a_terminal_it_is_printed_once(self, waiting, kubectl):
        out = kubectl.run("gang", "top")
        assert "1 node · cpu 67% · " in out.splitlines()[0]
        assert re.search(rf"^{waiting.namespace}/waiter +Queued +3/3 +0 +\S+ +- +Unschedulable$", out, re.MULTILINE)
        assert re.search(rf"^n1 +67% .* {waiting.namespace}/holder \(2\)$", out, re.MULTILINE)
        assert json.loads(kubectl.run("gang", "top", "-o", "json"))["nodes"][0]["name"] == "n1"

    def test_on_a_terminal_it_is_refreshed_until_ctrl_c(self, cluster, kubectl):
        with Terminal([kubectl.binary, "gang", "top"], env=kubectl.env(TERM="xterm"), columns=100) as terminal:
            terminal.until(lambda shown: "Ctrl-C ends" in shown and "holder (2)" in shown)
            cluster.add_group("later", min_member=1)
            terminal.until(lambda shown: f"{cluster.namespace}/later" in shown)
            terminal.interrupt()
            assert terminal.ended() == 0
            assert "Traceback" not in terminal.shown

    def test_on_a_terminal_too_it_is_printed_once_if_that_is_asked_for(self, waiting, kubectl):
        with Terminal([kubectl.binary, "gang", "top", "--once"], env=kubectl.env(TERM="xterm")) as terminal:
            assert terminal.ended() == 0
            assert f"{waiting.namespace}/holder (2)" in terminal.shown
            assert "Ctrl-C ends" not in terminal.shown

    def test_who_may_not_see_nodes_sees_the_groups_of_the_namespace(self, waiting, kubectl):
        grant(waiting, "topper", ["podgroups"])
        status, out, err = kubectl.tried("gang", "top", "--as", "topper")
        assert status == 0
        assert f"{waiting.namespace}/waiter" in out
        assert "NODE" not in out
        assert "only groups, without nodes, because the API server says: " in err


class TestRulesOfTheOperator:
    @pytest.fixture
    def other(self, with_crd: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Operator]:
        """An operator that serves another schedulerName, with settings of its own."""
        path = tmp_path / "settings.yaml"
        path.write_text(
            json.dumps({"leaderElection": {"resourceName": namespace}, "dialects": ["gangsched"], "maxPriority": 7})
        )
        arguments = ("--config", str(path), "--scheduler-name", namespace)
        with Operator(with_crd, *arguments, leader_elect=True) as running:
            until(lambda: running.metric("gangsched_leader") == 1)
            yield running
        with_crd.api.delete(f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{namespace}")

    @pytest.mark.usefixtures("other")
    def test_they_decide_unless_a_file_is_named(self, cluster, kubectl, tmp_path):
        name = cluster.namespace
        lone = f"{name}/lone"
        cluster.add_pod("lone", scheduler=name, requests={"cpu": "1000"})
        out = kubectl.run("gang", "explain", lone)
        said = f"Decided by the operator's settings, from the Lease default/{name}: dialects, maxPriority,"
        assert "0 of 1 that must fit together" in out
        assert said in " ".join(out.split())
        assert any(
            said in " ".join(each.split())
            for each in json.loads(kubectl.run("gang", "explain", lone, "--json"))["settings"]
        )

        manifest = tmp_path / "pod.yaml"
        containers = [{"name": "main", "image": "i"}]
        pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"schedulerName": name, "containers": containers}}
        manifest.write_text(json.dumps({"apiVersion": "v1", **pod}))
        assert "1 pod without a group not bound: default/p" in kubectl.run("gang", "simulate", str(manifest))
        status, out, err = kubectl.tried("gang", "simulate", str(manifest), "--kubeconfig", str(kubectl.kubeconfig))
        assert (status, "default/p" in out) == (0, True)
        assert said in err

        (tmp_path / "own.yaml").write_text("{}")
        status, _, err = kubectl.tried("gang", "explain", lone, "--config", str(tmp_path / "own.yaml"))
        assert status == 1
        assert f"has the schedulerName {name}, not gangsched" in err
