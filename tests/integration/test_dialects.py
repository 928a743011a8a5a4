"""Pods as users of other schedulers write them, with gangsched as their schedulerName, on the real API server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gangsched.cli import main
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.integration.cluster import Cluster

pytestmark = pytest.mark.usefixtures("operator")


@dataclass(frozen=True, kw_only=True)
class Said:
    """The declaration in one pod's metadata."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


APPLICATION = {"applicationId": "spark-pi", "queue": "root.sandbox"}
TASK_GROUPS = json.dumps(
    [
        {"name": "spark-driver", "minMember": 1, "minResource": {"cpu": "1", "memory": "1Gi"}},
        {"name": "spark-executor", "minMember": 2, "minResource": {"cpu": "1"}, "nodeSelector": {}, "tolerations": []},
    ]
)
EXECUTOR = Said(labels=APPLICATION, annotations={"yunikorn.apache.org/task-group-name": "spark-executor"})
MANIFESTS: dict[str, tuple[str, list[Said]]] = {
    "pfnet": (
        "awesome_pfn",
        [
            Said(
                annotations={
                    "gang-scheduling.preferred.jp/gang-name": "awesome_pfn",
                    "gang-scheduling.preferred.jp/gang-size": "3",
                    "gang-scheduling.preferred.jp/gang-schedule-timeout-seconds": "60",
                }
            )
        ]
        * 3,
    ),
    "kueue": (
        "sample",
        [
            Said(
                labels={"kueue.x-k8s.io/queue-name": "user-queue", "kueue.x-k8s.io/pod-group-name": "sample"},
                annotations={"kueue.x-k8s.io/pod-group-total-count": "2"},
            )
        ]
        * 2,
    ),
    "koordinator": (
        "gang-a",
        [
            Said(
                annotations={
                    "gang.scheduling.koordinator.sh/name": "gang-a",
                    "gang.scheduling.koordinator.sh/min-available": "2",
                    "gang.scheduling.koordinator.sh/waiting-time": "30s",
                    "gang.scheduling.koordinator.sh/mode": "Strict",
                    "gang.scheduling.koordinator.sh/groups": '["gang-a"]',
                }
            )
        ]
        * 2,
    ),
    "scheduler-plugins": (
        "nginx",
        [
            Said(
                labels={
                    "pod-group.scheduling.sigs.k8s.io/name": "nginx",
                    "pod-group.scheduling.sigs.k8s.io/min-available": "3",
                }
            )
        ]
        * 3,
    ),
    "yunikorn": (
        "spark-pi",
        [
            Said(
                labels=APPLICATION,
                annotations={
                    "yunikorn.apache.org/task-group-name": "spark-driver",
                    "yunikorn.apache.org/task-groups": TASK_GROUPS,
                },
            ),
            EXECUTOR,
            EXECUTOR,
        ],
    ),
}


@pytest.mark.parametrize("system", MANIFESTS)
def test_a_gang_in_another_schedulers_words_is_bound_whole_when_complete_and_not_before(
    cluster: Cluster, with_crd: ControlPlane, capsys, system: str
) -> None:
    group, said = MANIFESTS[system]
    cluster.add_node("n1")
    for number, pod in enumerate(said[:-1]):
        cluster.add_pod(f"member-{number}", labels=pod.labels, annotations=pod.annotations)
    cluster.until(lambda: cluster.told("member-0").get("reason") == "GangIncomplete")
    message = cluster.told("member-0")["message"]
    before = dict(cluster.bound())
    status = main(["explain", "--kubeconfig", str(with_crd.kubeconfig), f"{cluster.namespace}/{group}"])
    explained = capsys.readouterr().out
    cluster.add_pod("last", labels=said[-1].labels, annotations=said[-1].annotations)
    cluster.until(lambda: len(cluster.bound()) == len(said))
    cluster.until(lambda: any(cluster.events(f"member-{number}", "Scheduled") for number in range(len(said))))

    assert before == {}
    assert message.startswith(f"Group {group}: {len(said) - 1} of {len(said)} members exist")
    assert status == 0
    assert f"declared    by {system} pods" in explained
    [event] = [event for number in range(len(said)) for event in cluster.events(f"member-{number}", "Scheduled")]
    assert event["note"] == f"Bound {len(said)} members to n1 ({len(said)})."


def test_two_schedulers_words_that_name_different_groups_bind_nobody_and_are_told(cluster: Cluster) -> None:
    cluster.add_node("n1")
    _, [koordinator, *_] = MANIFESTS["koordinator"]
    _, [kueue, *_] = MANIFESTS["kueue"]
    for number in range(2):
        cluster.add_pod(
            f"torn-{number}", labels=kueue.labels, annotations={**kueue.annotations, **koordinator.annotations}
        )
    cluster.until(lambda: cluster.told("torn-0").get("reason") == "Contradiction")

    assert (
        "'sample' according to the label kueue.x-k8s.io/pod-group-name, but 'gang-a' according to the annotation"
        in (cluster.told("torn-0")["message"])
    )
    assert not cluster.bound()


def test_a_dialect_that_the_configuration_leaves_out_makes_no_group(
    cluster: Cluster, with_crd: ControlPlane, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "schedulerNames: [narrow]\n"
        "dialects: [gangsched, pfnet]\n"
        "pfnet: {gangAnnotationPrefix: scheduling.k8s.pfn.io/gang}\n"
    )
    _, [koordinator, *_] = MANIFESTS["koordinator"]
    prefix = "scheduling.k8s.pfn.io/gang"
    cluster.add_node("n1")
    with Operator(with_crd, "--config", str(config)):
        cluster.add_pod("alone", scheduler="narrow", annotations=koordinator.annotations)
        cluster.add_pod("half", scheduler="narrow", annotations={f"{prefix}-name": "g", f"{prefix}-size": "2"})
        cluster.until(lambda: cluster.bound() == {"alone": "n1"})
        cluster.until(lambda: cluster.told("half").get("reason") == "GangIncomplete")
