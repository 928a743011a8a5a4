"""The registry of dialects: which other schedulers' ways of naming a group are understood, one row for each.

From these rows come the configuration's names, the chart's values, their schema and its rights, the manifests and the
tables of docs/dialects.md (`make docs`). How a dialect's texts are read is in the file of its name in
gangsched/kube/dialects. A new dialect is a row here and a file there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

_READ = ("list", "watch")


class Key(NamedTuple):
    """A label (else an annotation) of pods. A name that begins with a dot, as no annotation's can, is a field's."""

    name: str
    label: bool = False

    def __str__(self) -> str:
        if self.name.startswith("."):
            return f"the field {self.name[1:]}"
        return f"the {'label' if self.label else 'annotation'} {self.name}"


@dataclass(frozen=True, kw_only=True)
class CustomResource:
    """A kind of another system, served in one of `versions`, the first that is there, and what is done with it."""

    group: str
    versions: tuple[str, ...]
    plural: str = "podgroups"
    verbs: tuple[str, ...] = _READ

    @property
    def name(self) -> str:
        """What people call it, such as `podgroups.scheduling.volcano.sh`."""
        return f"{self.plural}.{self.group}"

    @property
    def served_in(self) -> tuple[str, ...]:
        """Its versions as discovery names them, such as `scheduling.volcano.sh/v1beta1`."""
        return tuple(f"{self.group}/{version}" for version in self.versions)

    def path(self, version: str) -> str:
        """Where all its objects are listed in the version."""
        return f"/apis/{self.group}/{version}/{self.plural}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One dialect. `name` is its name in configuration, status and messages; `whose` says for docs whose words it has.

    The first key of `group` that has a text names the group; so do `minimum`, `time` and `role` the terms, empty where
    the dialect has no such key. `resources` are the kinds for which it needs rights, `settings` the keys of the
    configuration by which it is adjusted. `left_out` says why the chart's default leaves it out; empty where it has it.
    """

    name: str
    whose: str
    group: tuple[Key, ...]
    minimum: tuple[Key, ...] = ()
    time: tuple[Key, ...] = ()
    role: tuple[Key, ...] = ()
    resources: tuple[CustomResource, ...] = ()
    settings: tuple[str, ...] = ()
    left_out: str = ""


SCHEDULING_GROUP = Key(".spec.schedulingGroup.podGroupName")
"""The only field of a pod's spec that names a group."""


def _label(name: str) -> Key:
    return Key(name, label=True)


DIALECTS = {
    row.name: row
    for row in (
        Row(
            name="gangsched",
            whose="gangsched's own",
            group=(_label("gangsched.io/pod-group"),),
            minimum=(Key("gangsched.io/min-member"),),
            time=(Key("gangsched.io/max-schedule-time"),),
            role=(_label("gangsched.io/role"),),
        ),
        Row(
            name="palantir",
            whose="Spark drivers and executors, as palantir's k8s-spark-scheduler reads them",
            group=(_label("spark-app-id"),),
            minimum=(Key("spark-executor-count"),),
            role=(_label("spark-role"),),
            resources=(
                CustomResource(
                    group="scaler.palantir.com",
                    versions=("v1alpha2",),
                    plural="demands",
                    verbs=(*_READ, "create", "patch", "delete"),
                ),
            ),
            settings=("spark", "fifo"),
            left_out="with it the operator may also write Demand objects in every namespace, of which that system's "
            "autoscaler makes nodes, and Spark applications of one instance group wait in line, whoever they are of",
        ),
        Row(
            name="cosmin",
            whose="Spark drivers and executors, as cosmin-ionita's scheduler reads them",
            group=(_label("spark-app-selector"),),
            minimum=(_label("executors"),),
            role=(_label("spark-role"),),
        ),
        Row(
            name="pfnet",
            whose="pfnet's gang plug-in; `PREFIX` is the setting `pfnet.gangAnnotationPrefix`",
            group=(Key("PREFIX-name"),),
            minimum=(Key("PREFIX-size"),),
            time=(Key("PREFIX-schedule-timeout-seconds"),),
            settings=("pfnet",),
        ),
        Row(
            name="kueue",
            whose="Kueue's groups of plain pods",
            group=(_label("kueue.x-k8s.io/pod-group-name"),),
            minimum=(Key("kueue.x-k8s.io/pod-group-total-count"),),
        ),
        Row(
            name="koordinator",
            whose="Koordinator's gangs",
            group=(Key("gang.scheduling.koordinator.sh/name"), _label("pod-group.scheduling.sigs.k8s.io")),
            minimum=(Key("gang.scheduling.koordinator.sh/min-available"),),
            time=(Key("gang.scheduling.koordinator.sh/waiting-time"),),
            resources=(CustomResource(group="scheduling.sigs.k8s.io", versions=("v1alpha1",)),),
        ),
        Row(
            name="scheduler-plugins",
            whose="coscheduling of scheduler-plugins",
            group=(_label("scheduling.x-k8s.io/pod-group"), _label("pod-group.scheduling.sigs.k8s.io/name")),
            minimum=(_label("pod-group.scheduling.sigs.k8s.io/min-available"),),
            resources=(CustomResource(group="scheduling.x-k8s.io", versions=("v1alpha1",)),),
        ),
        Row(
            name="yunikorn",
            whose="YuniKorn's applications with task groups",
            # In the order in which YuniKorn itself looks for them.
            group=(
                _label("yunikorn.apache.org/app-id"),
                Key("yunikorn.apache.org/app-id"),
                _label("applicationId"),
                _label("spark-app-selector"),
            ),
            minimum=(Key("yunikorn.apache.org/task-groups"),),
            role=(Key("yunikorn.apache.org/task-group-name"),),
        ),
        Row(
            name="volcano",
            whose="Volcano's PodGroups",
            group=(Key("scheduling.k8s.io/group-name"), Key("scheduling.volcano.sh/group-name")),
            minimum=(Key("scheduling.volcano.sh/group-min-member"),),
            role=(Key("volcano.sh/task-spec"), _label("volcano.sh/task-spec")),
            resources=(CustomResource(group="scheduling.volcano.sh", versions=("v1beta1",)),),
        ),
        Row(
            name="kai",
            whose="KAI's PodGroups",
            group=(Key("pod-group-name"),),
            role=(_label("kai.scheduler/subgroup-name"),),
            resources=(CustomResource(group="scheduling.run.ai", versions=("v2alpha2",)),),
        ),
        Row(
            name="tenstack",
            whose="PodGroups of tenstack's batch-scheduler",
            group=(_label("group.batch.scheduler.tencent.com"),),
            resources=(CustomResource(group="batch.scheduler.tencent.com", versions=("v1",)),),
        ),
        Row(
            name="native",
            whose="Kubernetes' own PodGroups, behind a feature gate",
            group=(SCHEDULING_GROUP,),
            resources=(CustomResource(group="scheduling.k8s.io", versions=("v1beta1", "v1alpha3", "v1alpha2")),),
        ),
    )
}
"""All dialects by their names, in the order in which they are asked."""

NAMES = tuple(DIALECTS)

if TYPE_CHECKING:
    DialectName = str
else:
    # A tuple in brackets is what a Literal of several names is; only type checkers want them written there.
    DialectName = Literal[NAMES]
