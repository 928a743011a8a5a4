"""The workloads that run as gangs and the ways to declare them: what tests/workloads plays and what is impossible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.controllers.table import CONTROLLERS

AUTO, ANNOTATION, OWN, BY_HAND = "nothing", "annotation", "own", "podgroup"
COLUMNS = {
    AUTO: "nothing declared but `schedulerName`, in a namespace with the label `gangsched.io/gang: auto`",
    ANNOTATION: 'annotation `gangsched.io/gang: "true"` on the workload',
    OWN: "the controller's own integration",
    BY_HAND: "PodGroup by hand",
}
"""The ways to declare a gang, in the order of the table."""

RACE, FAILURE, SCALE, SUSPENSION = "race", "failure", "scale", "suspension"
PLAYS = {
    RACE: "Two where one fits: one runs whole, the other waits whole and runs once the first is deleted",
    FAILURE: "A member fails, its controller makes it again",
    SCALE: "Scaled up and down",
    SUSPENSION: "Suspended and resumed, or scaled to 0 and back where it cannot be suspended",
}
"""The plays for each workload, by their names in the figures."""

READY_AFTER_S = 20
"""Seconds that the pods of `late` workloads run before they are ready."""

_NOTHING = "With nothing declared"
_SECTIONS = {AUTO: _NOTHING, ANNOTATION: _NOTHING, BY_HAND: "With a PodGroup"}


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One row: a kind of workload, or a variant of its setup, and what is impossible with it and why.

    Mappings are by column, except `not_played`: its keys are a play or, for a single way to declare gangs, the play and
    the column.
    """

    kind: str
    page: str = ""
    """Name of the page that explains how to declare it; empty: the kind's own page."""
    controller: str = ""
    """Its controller's name in CONTROLLERS; empty for kube-controller-manager's kinds and for workloads not run."""
    system: str = "Kubernetes"
    """The system that creates its pods if none of CONTROLLERS does."""
    gated: bool = False
    """It needs the controller's feature gates, however it is declared."""
    late: bool = False
    """Some of its pods are created only once others are ready, which takes READY_AFTER_S."""
    sections: Mapping[str, str] = field(default_factory=dict)
    """Titles of the page's sections that differ from the usual ones."""
    noted: Mapping[str, str] = field(default_factory=dict)
    """Remarks that the table shows beside the result."""
    recorded: Mapping[str, str] = field(default_factory=dict)
    """Tests that play it with recorded pods, because their creator needs running containers."""
    not_declared: Mapping[str, str] = field(default_factory=dict)
    not_played: Mapping[str | tuple[str, str], str] = field(default_factory=dict)
    only_race: bool = False
    """The plays other than the race are those of the previous row."""

    def columns(self) -> list[str]:
        """The ways to declare it in which it is played with the real creator of its pods."""
        return [column for column in COLUMNS if column not in self.not_declared and column not in self.recorded]

    def plays(self, column: str) -> list[str]:
        """The plays that are possible when it is declared in that way."""
        if column not in self.columns():
            return []
        return [play for play in PLAYS if not (self.only_race and play != RACE) and not self.why_not(play, column)]

    def why_not(self, play: str, column: str) -> str:
        """The reason why the play is impossible with it; empty if it is possible."""
        return self.not_played.get(play) or self.not_played.get((play, column), "")

    def section(self, column: str) -> str:
        """The title of its page's section about that way to declare it."""
        return self.sections.get(column) or _SECTIONS[column]

    @property
    def file(self) -> str:
        """The path of its page in docs/workloads."""
        return self.page or f"{self.kind.lower()}.md"

    @property
    def of(self) -> str:
        """The name and version of its controller."""
        if not self.controller:
            return self.system
        return f"{self.controller} {CONTROLLERS[self.controller].version.removeprefix('v')}"


_NO_GROUP = "its controller declares no group"
_ONE_LABEL = "one label names one group for all replicas"
_OTHER_NAME = "with `schedulerName: scheduler-plugins-scheduler`"
_NO_GANG_JOBSET = "JobSet 0.12 has no gang scheduling of its own"
_FIXED_JOBSET = "a JobSet's number of jobs and their parallelism cannot be changed"


def _nowhere(why: str, *columns: str) -> dict[str, str]:
    """The same reason for several columns, by default for all."""
    return dict.fromkeys(columns or COLUMNS, why)


_ROWS = (
    Workload(
        kind="Job",
        not_declared={
            OWN: "its controller makes groups only with the feature gate WorkloadWithJob, as in the next row"
        },
    ),
    Workload(
        kind="Job, WorkloadWithJob",
        page="job.md",
        gated=True,
        sections={OWN: "With the Job controller's own group"},
        noted={OWN: "by `spec.scheduling`"},
    ),
    Workload(
        kind="CronJob",
        sections={BY_HAND: "With a group for each run"},
        noted={BY_HAND: "by the annotation `gangsched.io/group-by`"},
        not_declared={OWN: _NO_GROUP},
        only_race=True,
    ),
    Workload(
        kind="Deployment",
        not_declared={
            OWN: _NO_GROUP,
            **_nowhere("its pods are scheduled one by one: each replica serves without the others", AUTO, ANNOTATION),
        },
    ),
    Workload(kind="StatefulSet", not_declared={OWN: _NO_GROUP}),
    Workload(
        kind="StatefulSet, OrderedReady",
        page="statefulset.md",
        late=True,
        sections={BY_HAND: "With a PodGroup and OrderedReady"},
        not_declared={OWN: _NO_GROUP},
    ),
    Workload(
        kind="JobSet",
        controller="jobset",
        not_declared={OWN: _NO_GANG_JOBSET},
        not_played={SCALE: _FIXED_JOBSET},
    ),
    Workload(
        kind="JobSet, dependsOn",
        page="jobset.md",
        controller="jobset",
        late=True,
        sections={BY_HAND: "With a PodGroup and dependsOn"},
        not_declared={OWN: _NO_GANG_JOBSET},
        not_played={SCALE: _FIXED_JOBSET},
    ),
    Workload(
        kind="LeaderWorkerSet",
        controller="lws",
        sections={OWN: "With LWS's integration"},
        not_played={(SCALE, BY_HAND): _ONE_LABEL},
    ),
    Workload(
        kind="LeaderWorkerSet, 2 replicas",
        page="leaderworkerset.md",
        controller="lws",
        sections={OWN: "With LWS's integration", BY_HAND: "With a group for each replica"},
        noted={BY_HAND: "by the annotation `gangsched.io/group-by`"},
        only_race=True,
    ),
    Workload(
        kind="LeaderWorkerSet, LeaderReady",
        page="leaderworkerset.md",
        controller="lws",
        late=True,
        sections={BY_HAND: "With a PodGroup and LeaderReady"},
        not_declared={
            OWN: "LWS's PodGroup asks for the leader alone: room for all pods is checked before it is bound, and the "
            "workers follow one by one ([the check](../dialects.md#the-check-before-the-start))"
        },
        not_played={(SCALE, BY_HAND): _ONE_LABEL},
    ),
    Workload(
        kind="DisaggregatedSet",
        controller="lws",
        sections={OWN: "With LWS's integration", BY_HAND: "With a group for each replica"},
        noted={**_nowhere("each replica of each role"), BY_HAND: "by the annotation `gangsched.io/group-by`"},
        only_race=True,
    ),
    Workload(
        kind="DisaggregatedSet, one gang",
        page="disaggregatedset.md",
        controller="lws",
        sections={BY_HAND: "With one PodGroup for all roles"},
        not_declared=_nowhere(
            "without a PodGroup each replica of each role is a gang, as in the row above", AUTO, ANNOTATION, OWN
        ),
        not_played={
            SCALE: _ONE_LABEL,
            FAILURE: "LWS makes all pods of the role's replica again, and another gang may take their room meanwhile",
        },
    ),
    Workload(
        kind="RayCluster",
        controller="kuberay",
        sections={OWN: "With KubeRay's integration"},
        noted={OWN: _OTHER_NAME},
    ),
    Workload(
        kind="RayJob",
        page="raycluster.md",
        controller="kuberay",
        not_declared={OWN: "KubeRay 1.6 makes no RayCluster for a RayJob with `--batch-scheduler=scheduler-plugins`"},
        not_played={SCALE: "the RayCluster of a RayJob keeps the size that it was created with"},
    ),
    Workload(
        kind="RayService",
        page="raycluster.md",
        controller="kuberay",
        sections={OWN: "With KubeRay's integration"},
        noted={OWN: _OTHER_NAME},
        not_played={SCALE: "KubeRay does not pass a changed number of workers on to the RayCluster of a RayService"},
    ),
    Workload(
        kind="MPIJob",
        controller="mpi-operator",
        sections={OWN: "With the operator's flag: no change of the job"},
    ),
    Workload(
        kind="MPIJob, WaitForWorkersReady",
        page="mpijob.md",
        controller="mpi-operator",
        late=True,
        sections={BY_HAND: "With a PodGroup and WaitForWorkersReady"},
        not_declared={OWN: "mpi-operator counts the launcher, but creates it only when the workers are ready"},
    ),
    Workload(
        kind="PyTorchJob",
        controller="training-operator",
        sections={OWN: "With the operator's flag: no change of the job"},
    ),
    Workload(
        kind="TrainJob",
        controller="trainer",
        sections={OWN: "With Trainer's integration"},
        not_played={SCALE: "the number of a TrainJob's nodes cannot be changed"},
    ),
    Workload(
        kind="TrainJob, initializer",
        page="trainjob.md",
        controller="trainer",
        late=True,
        not_declared={OWN: "Trainer counts the initializers, but creates the other pods only when they have ended"},
        only_race=True,
    ),
    Workload(
        kind="Job in a queue",
        page="kueue.md",
        controller="kueue",
        not_declared={OWN: "Kueue makes groups only of plain pods ([from Kueue](../migrate/kueue.md))"},
        not_played={
            SCALE: "Kueue admits a Job for the size that it has",
            SUSPENSION: "`spec.suspend` is Kueue's to set",
        },
    ),
    Workload(
        kind="Argo Workflow",
        page="../gangs.md",
        system="Argo 3.6",
        recorded={BY_HAND: "tests/integration/test_recorded.py"},
        not_declared=_nowhere(
            "its steps are scheduled one by one: each begins when those before it have ended", AUTO, ANNOTATION, OWN
        ),
    ),
    Workload(
        kind="Spark driver",
        page="../dialects.md#spark",
        system="Spark",
        noted={BY_HAND: "by annotations on the driver"},
        recorded={BY_HAND: "tests/integration/test_recorded.py"},
        not_declared=_nowhere(
            "only the driver's image creates the executors and knows their number", AUTO, ANNOTATION, OWN
        ),
    ),
    Workload(
        kind="SparkApplication",
        page="../dialects.md#spark",
        system="Spark operator",
        noted={BY_HAND: "by annotations in `spec.driver`"},
        recorded={BY_HAND: "tests/integration/test_recorded.py"},
        not_declared=_nowhere(
            "only the driver's image creates the executors, in the same way as without the operator",
            AUTO,
            ANNOTATION,
            OWN,
        ),
    ),
    Workload(
        kind="PodCliqueSet",
        page="custom.md",
        system="Grove",
        not_declared=_nowhere(
            "it was not tried, because the source of its operator is not served as a Go module; if a label of its pods "
            "names the gang, the annotation `gangsched.io/group-by` makes a gang of each value"
        ),
    ),
)
EXPECTED = {row.kind: row for row in _ROWS}
"""What the tests play, in the order of the table. Every gang that is not excluded ends whole."""
