"""The registry of dialects: one row for each scheduler whose way of declaring a group gangsched understands.

The names in the configuration, the chart's values, their schema and its rights, the manifests and the tables of
docs/dialects.md (`make docs`) are generated from these rows. The module in gangsched/kube/dialects with a dialect's
name parses its values. A new dialect needs a row here and a module there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

_READ = ("list", "watch")


class Key(NamedTuple):
    """A label or annotation of pods. A name that begins with a dot, as no annotation can, means a field of the pod."""

    name: str
    label: bool = False

    def __str__(self) -> str:
        if self.name.startswith("."):
            return f"the field {self.name[1:]}"
        return f"the {'label' if self.label else 'annotation'} {self.name}"


@dataclass(frozen=True, kw_only=True)
class CustomResource:
    """A kind of another system. gangsched uses the first served one of `versions` and needs the rights `verbs`."""

    group: str
    versions: tuple[str, ...]
    plural: str = "podgroups"
    verbs: tuple[str, ...] = _READ

    @property
    def name(self) -> str:
        """Its usual name, such as `podgroups.scheduling.volcano.sh`."""
        return f"{self.plural}.{self.group}"

    @property
    def served_in(self) -> tuple[str, ...]:
        """Its versions in the form that discovery uses, such as `scheduling.volcano.sh/v1beta1`."""
        return tuple(f"{self.group}/{version}" for version in self.versions)

    def path(self, version: str) -> str:
        """The path that lists all its objects in this version."""
        return f"/apis/{self.group}/{version}/{self.plural}"


@dataclass(frozen=True, kw_only=True)
class DialectRow:
    """One dialect. `name` is its name in configuration, status and messages; `whose` names the other system in docs.

    The first key of `group` that has a value names the group. `minimum`, `time` and `role` work in the same way, and
    are empty if the dialect has no such key. `resources` are the kinds for which it needs rights, `settings` its keys
    in the configuration. `left_out` says why the chart's default omits it; empty if it does not.
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

GROUP_BY = Key("gangsched.io/group-by")
"""The annotation that says which label of the pod has the group's name, in gangsched's own dialect."""

GROUP_LABEL = "gangsched.io/pod-group"
"""The label by which a pod names its PodGroup."""


def _label(name: str) -> Key:
    return Key(name, label=True)


DIALECTS = {
    row.name: row
    for row in (
        DialectRow(
            name="gangsched",
            whose="gangsched's own",
            group=(_label(GROUP_LABEL),),
            minimum=(Key("gangsched.io/min-member"),),
            time=(Key("gangsched.io/max-schedule-time"),),
            role=(_label("gangsched.io/role"),),
        ),
        DialectRow(
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
            left_out="with it the operator may also write Demand objects in every namespace, for which that system's "
            "autoscaler adds nodes, and Spark applications of one instance group wait in FIFO order, across all owners",
        ),
        DialectRow(
            name="cosmin",
            whose="Spark drivers and executors, as cosmin-ionita's scheduler reads them",
            group=(_label("spark-app-selector"),),
            minimum=(_label("executors"),),
            role=(_label("spark-role"),),
        ),
        DialectRow(
            name="pfnet",
            whose="pfnet's gang plug-in; `PREFIX` is the setting `pfnet.gangAnnotationPrefix`",
            group=(Key("PREFIX-name"),),
            minimum=(Key("PREFIX-size"),),
            time=(Key("PREFIX-schedule-timeout-seconds"),),
            settings=("pfnet",),
        ),
        DialectRow(
            name="kueue",
            whose="Kueue's groups of plain pods",
            group=(_label("kueue.x-k8s.io/pod-group-name"),),
            minimum=(Key("kueue.x-k8s.io/pod-group-total-count"),),
        ),
        DialectRow(
            name="koordinator",
            whose="Koordinator's gangs",
            group=(Key("gang.scheduling.koordinator.sh/name"), _label("pod-group.scheduling.sigs.k8s.io")),
            minimum=(Key("gang.scheduling.koordinator.sh/min-available"),),
            time=(Key("gang.scheduling.koordinator.sh/waiting-time"),),
            resources=(CustomResource(group="scheduling.sigs.k8s.io", versions=("v1alpha1",)),),
        ),
        DialectRow(
            name="scheduler-plugins",
            whose="coscheduling of scheduler-plugins",
            group=(_label("scheduling.x-k8s.io/pod-group"), _label("pod-group.scheduling.sigs.k8s.io/name")),
            minimum=(_label("pod-group.scheduling.sigs.k8s.io/min-available"),),
            resources=(CustomResource(group="scheduling.x-k8s.io", versions=("v1alpha1",)),),
        ),
        DialectRow(
            name="yunikorn",
            whose="YuniKorn's applications with task groups",
            # In the order of precedence of YuniKorn itself.
            group=(
                _label("yunikorn.apache.org/app-id"),
                Key("yunikorn.apache.org/app-id"),
                _label("applicationId"),
                _label("spark-app-selector"),
            ),
            minimum=(Key("yunikorn.apache.org/task-groups"),),
            role=(Key("yunikorn.apache.org/task-group-name"),),
        ),
        DialectRow(
            name="volcano",
            whose="Volcano's PodGroups",
            group=(Key("scheduling.k8s.io/group-name"), Key("scheduling.volcano.sh/group-name")),
            minimum=(Key("scheduling.volcano.sh/group-min-member"),),
            role=(Key("volcano.sh/task-spec"), _label("volcano.sh/task-spec")),
            resources=(CustomResource(group="scheduling.volcano.sh", versions=("v1beta1",)),),
            settings=("volcano",),
        ),
        DialectRow(
            name="kai",
            whose="KAI's PodGroups",
            group=(Key("pod-group-name"),),
            role=(_label("kai.scheduler/subgroup-name"),),
            resources=(CustomResource(group="scheduling.run.ai", versions=("v2alpha2",)),),
        ),
        DialectRow(
            name="tenstack",
            whose="PodGroups of tenstack's batch-scheduler",
            group=(_label("group.batch.scheduler.tencent.com"),),
            resources=(CustomResource(group="batch.scheduler.tencent.com", versions=("v1",)),),
        ),
        DialectRow(
            name="native",
            whose="Kubernetes' own PodGroups, behind a feature gate",
            group=(SCHEDULING_GROUP,),
            resources=(
                CustomResource(group="scheduling.k8s.io", versions=("v1beta1", "v1alpha3", "v1alpha2")),
                CustomResource(group="scheduling.k8s.io", versions=("v1alpha3",), plural="compositepodgroups"),
            ),
            settings=("native",),
        ),
    )
}
"""All dialects by name, in order of precedence."""

NAMES = tuple(DIALECTS)

if TYPE_CHECKING:
    DialectName = str
else:
    # Literal[tuple] equals a Literal of the names. Only type checkers require them to be written out.
    DialectName = Literal[NAMES]
