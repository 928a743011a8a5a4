"""Common mistakes are answered with their remedy: tests the table of documentation/mistakes.py.

All objects of the table are created at once, beside three nodes; each row has its own names.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from documentation.manifests import CHART
from documentation.mistakes.row import Mistake, Where, said
from documentation.mistakes.table import MISTAKES, UNINSTALLED
from gangsched.cli import main
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.integration.cluster import Cluster
from tests.integration.foreign import served
from tests.integration.waiting import until

Json = dict[str, Any]
_WITHIN_S = 30
EXPIRED = Path(__file__).resolve().parent / "expired.pem"
"""A client certificate that was valid on one day in 2020, and its key."""
FILES = {
    "config.yaml": {"defaultMaxScheduleTim": "5m"},
    "workload.yaml": {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "s"},
    },
}

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True)
class Stage:
    """The namespace with all mistakes, another one, and the operators by schedulerName."""

    cluster: Cluster
    elsewhere: Cluster
    operators: dict[str, Operator]
    folder: Path

    @property
    def words(self) -> dict[str, str]:
        """The values of the placeholders in braces."""
        return {
            "namespace": self.cluster.namespace,
            "elsewhere": self.elsewhere.namespace,
            "folder": str(self.folder),
        }


@pytest.fixture(autouse=True)
def _no_nodes_left() -> None:
    """Overridden: here the nodes, like everything else, stay from one test to the next."""


@pytest.fixture(scope="module")
def stage(with_crd: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with_crd.delete_nodes()
    folder = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (folder / name).write_text(yaml.safe_dump(content))
    names = [f"mistakes-{secrets.token_hex(3)}" for _ in range(2)]
    for name in names:
        with_crd.kubectl("create", "namespace", name)
    with_crd.kubectl("label", "namespace", names[1], "gangsched.io/gang=yes")
    cluster, elsewhere = (Cluster(with_crd, name) for name in names)
    for number in range(2):
        cluster.add_node(f"n{number}", cpu="8")
    cluster.add_node(
        "g0", cpu="8", labels={"pool": "gpus"}, taints=[{"key": "dedicated", "value": "gpus", "effect": "NoSchedule"}]
    )
    cluster.api.post(f"/api/v1/namespaces/{names[0]}/serviceaccounts", {"metadata": {"name": "nobody"}})
    with served(with_crd, "scheduler-plugins"), contextlib.ExitStack() as running:
        operators = {}
        for scheduler, arguments in (
            ("gangsched", ()),
            ("other", ("--scheduler-name", "gangsched", "--namespace", "nosuch")),
        ):
            lease = {"resourceName": f"{scheduler}-of-mistakes", "resourceNamespace": names[0]}
            config = folder / f"{scheduler}.yaml"
            config.write_text(yaml.safe_dump({"leaderElection": lease}))
            flags = ("--scheduler-name", scheduler, "--config", str(config), *arguments)
            operators[scheduler] = running.enter_context(Operator(with_crd, *flags, leader_elect=True))
        for namespace, away in zip(names, (False, True), strict=True):
            bodies = [
                {key: value for key, value in each.items() if key != "elsewhere"}
                for mistake in MISTAKES.values()
                if not mistake.alone
                for each in mistake.objects
                if ("elsewhere" in each) is away
            ]
            # A quota has no effect before its controller and the API server have seen it.
            quotas = [each for each in bodies if each["kind"] == "ResourceQuota"]
            apply(with_crd, namespace, quotas)
            until(partial(_count, with_crd, namespace, len(quotas)))
            apply(with_crd, namespace, [each for each in bodies if each not in quotas])
        yield Stage(cluster, elsewhere, operators, folder)
    with_crd.delete_nodes()
    for name in names:
        with_crd.kubectl("delete", "namespace", name, "--wait=false")


def apply(control_plane: ControlPlane, namespace: str, objects: Sequence[Json]) -> None:
    if objects:
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        control_plane.kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=listed)


def _count(control_plane: ControlPlane, namespace: str, number: int) -> bool:
    """Whether all `number` quotas are in effect."""
    found = control_plane.api.get(f"/api/v1/namespaces/{namespace}/resourcequotas")["items"]
    return sum("used" in each.get("status", {}) for each in found) == number


@pytest.fixture
def asked(stage: Stage, capsys: pytest.CaptureFixture[str]) -> Callable[[Mistake, Where], Sequence[str]]:
    """The current messages about a mistake in this place; each of them must contain the sentence."""
    cluster = stage.cluster
    control_plane = cluster.control_plane

    def of_command(mistake: Mistake) -> tuple[str, str]:
        command = list(mistake.command) or ["explain", f"{{namespace}}/{mistake.group}"]
        if command[0] == "explain":
            command[1:1] = ["--kubeconfig", str(_access(stage, mistake.access))]
        main([_filled(part, stage.words) for part in command])
        return capsys.readouterr()

    def of_pods(mistake: Mistake) -> Sequence[str]:
        name = mistake.objects[-1]["metadata"]["name"]
        place = stage.elsewhere if "elsewhere" in mistake.objects[-1] else cluster
        pods = [pod["metadata"]["name"] for pod in place.pods() if pod["metadata"]["name"].startswith(f"{name}-")]
        return ["\n".join(event["note"] for event in place.events(pod)) for pod in pods]

    def ask(mistake: Mistake, where: Where) -> Sequence[str]:
        match where:
            case Where.EXPLAIN | Where.OUTPUT:
                return [of_command(mistake)[0]]
            case Where.ERROR:
                return [of_command(mistake)[1]]
            case Where.GROUP:
                return [str(cluster.condition(mistake.group).get("message", ""))]
            case Where.POD:
                name = mistake.objects[-1]["metadata"]["name"]
                pods = [pod for pod in cluster.pods() if pod["metadata"]["name"].startswith(f"{name}-")]
                return [*of_pods(mistake), *(str(cluster.told(pod["metadata"]["name"])) for pod in pods)]
            case Where.EVENT:
                return ["\n".join(of_pods(mistake))]
            case Where.KUBECTL:
                body = json.dumps(mistake.objects[0])
                return [control_plane.kubectl("apply", "-n", cluster.namespace, "-f", "-", stdin=body, check=False)]
            case Where.HELM:
                flags = [part for value in mistake.chart or () for part in ("--set", value)]
                return [control_plane.helm("template", "gangsched", CHART, *flags, check=False)]
            case Where.LOG:
                return ["\n".join(operator.log for operator in stage.operators.values())]

    return ask


def _filled(text: str, words: dict[str, str]) -> str:
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return text


def _access(stage: Stage, name: str) -> Path:
    """A kubeconfig with the credentials of that name."""
    control_plane = stage.cluster.control_plane
    if not name:
        return control_plane.kubeconfig
    if name == "no file":
        return stage.folder / "no-kubeconfig"
    if name == "no rights":
        return control_plane.kubeconfig_of_service_account(stage.cluster.namespace, "nobody")
    path = control_plane.kubeconfig_for(token="wrong")
    users = {
        "wrong token": {"token": "wrong"},
        "expired certificate": {"client-certificate": str(EXPIRED), "client-key": str(EXPIRED)},
        "missing plug-in": {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "kubelogin-of-nobody",
                "interactiveMode": "Never",
            }
        },
    }
    content = json.loads(path.read_text())
    content["users"][0]["user"] = users[name]
    path.write_text(json.dumps(content))
    return path


ROWS = [pytest.param(what, where, id=f"{what} - {where}") for what, row in MISTAKES.items() for where in row.told]


@pytest.mark.parametrize(("what", "where"), ROWS)
def test_a_mistake_is_answered_with_its_remedy(
    stage: Stage, asked: Callable[[Mistake, Where], Sequence[str]], what: str, where: Where
) -> None:
    _await(stage, asked, MISTAKES[what], where)


def test_who_uninstalls_while_a_group_waits_is_told_that_nobody_leads_any_more(
    stage: Stage, asked: Callable[[Mistake, Where], Sequence[str]]
) -> None:
    """Steps: a group gets its status; the operators that lead end; the status stays, and explain says why."""
    stage.cluster.until_reason(UNINSTALLED.group, "NeverFits")
    for operator in stage.operators.values():
        operator.stop()
    _await(stage, asked, UNINSTALLED, Where.EXPLAIN)
    assert stage.cluster.condition(UNINSTALLED.group)["reason"] == "NeverFits"


def test_there_are_at_least_thirty_rows_and_each_answers_in_one_place_at_least() -> None:
    assert len(MISTAKES) >= 30
    assert all(row.told for row in MISTAKES.values())


def _await(stage: Stage, asked: Callable[[Mistake, Where], Sequence[str]], mistake: Mistake, where: Where) -> None:
    sentence, answers = said(mistake.told[where], **stage.words), list[str]()

    def answered() -> bool:
        answers[:] = asked(mistake, where)
        return bool(answers) and all(sentence.search(each) for each in answers)

    until(answered, _WITHIN_S, what=lambda: f"{sentence.pattern!r} in {answers}")
