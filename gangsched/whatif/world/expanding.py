"""The pods that controllers create for the workloads in the files, and Kubernetes' own groups made for these pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from gangsched.core.objects.wording import number_of
from gangsched.whatif.world import builtin_workloads, group_templates, native_groups, operators
from gangsched.whatif.world.group_templates import COMPOSITES, GROUPS, WORKLOADS
from gangsched.whatif.world.made import MOST_PODS, Existing, MadePod, is_recorded, manager, rests
from gangsched.whatif.world.manifests import Manifest, ManifestError

POD = ("v1", "Pod")
MAKERS = {**builtin_workloads.MAKERS, **operators.MAKERS}
"""The functions that expand workloads into pods, by apiVersion and kind."""

_TOO_MANY = (
    f"makes more than {MOST_PODS} pods, together with the workloads before it, and simulate expands no more: reduce "
    "its number of pods"
)


def creates(manifest: Manifest) -> bool:
    """Whether pods are created for it: it is no pod that exists, and no workload whose pods are recorded too."""
    if manifest.gvk == POD:
        return not manifest.metadata.get("uid")
    return manifest.gvk in MAKERS and not is_recorded(manifest)


class Expansion:
    """The pods of each workload among these manifests, and the native groups of the pods that are not among them."""

    def __init__(self, manifests: Sequence[Manifest], existing: Existing) -> None:
        self._manifests = manifests
        self._existing = existing
        self._made_pods: dict[int, Sequence[MadePod]] = {}
        self._number = 0
        self.doubts: list[str] = []
        self.idle: list[str] = []

    def expand(self, workload: Manifest) -> None:
        """Expand the workload, if its own controller creates its pods.

        Raises:
            ManifestError: the API server or the controller would refuse it, or it has too many pods.
        """
        if not creates(workload) or manager(workload) or self._number > MOST_PODS:
            return
        made_pods = list(islice(MAKERS[workload.gvk](workload, self._existing), MOST_PODS - self._number + 1))
        self._number += len(made_pods)
        if not made_pods and (why := rests(workload)):
            self.idle.append(f"{workload}: makes no pods, because {why}")
        if self._number > MOST_PODS:
            raise ManifestError([f"{workload}: {_TOO_MANY}"])
        later = [pod.name for pod in made_pods if pod.once_ended]
        if later:
            self.doubts.append(
                f"{workload}: {number_of(len(later), 'pod')}, such as {later[0]}, will be created only once other Jobs "
                "are complete, and nothing ends here: ask about them without their dependsOn"
            )
        self.doubts += (f"{workload}: {doubt}" for doubt in dict.fromkeys(pod.doubt for pod in made_pods if pod.doubt))
        self._made_pods[id(workload)] = [pod for pod in made_pods if not pod.once_ended]

    def pods(self, workload: Manifest) -> Sequence[MadePod]:
        """The pods of the workload; empty if it could not be expanded."""
        return self._made_pods.get(id(workload), ())

    def parts(self, workload: Manifest) -> Sequence[Manifest]:
        """The objects that are created on the way from the workload to its pods."""
        objects = {id(manifest): manifest for pod in self.pods(workload) for manifest in (*pod.above, pod.maker)}
        return [manifest for manifest in objects.values() if manifest is not workload]

    def groups(self) -> Iterator[tuple[Manifest, Manifest]]:
        """The native groups that controllers make, each with the manifest because of which it is made.

        Adds to `doubts` what is not certain about them. All workloads must have been expanded.
        """
        ids = {id(manifest) for manifest in self._manifests}
        named: defaultdict[str, dict[str, None]] = defaultdict(dict)
        taken = {(manifest.namespace, manifest.name) for manifest in self._manifests if manifest.gvk in GROUPS}
        for manifest in self._manifests:
            for part in (*self.parts(manifest), *self._groups_of_pods(manifest)):
                if part.gvk in GROUPS and id(part) not in ids and (part.namespace, part.name) not in taken:
                    taken.add((part.namespace, part.name))
                    yield part, manifest
            specs = [manifest.spec] if manifest.gvk == POD else [pod.template for pod in self.pods(manifest)]
            named[manifest.namespace].update(dict.fromkeys(map(native_groups.named_in, specs)))
        composites = {(manifest.namespace, manifest.name) for manifest in self._manifests if manifest.gvk in COMPOSITES}
        by_namespace: defaultdict[str, list[Manifest]] = defaultdict(list)
        for manifest in (candidate for candidate in self._manifests if candidate.gvk in WORKLOADS):
            by_namespace[manifest.namespace].append(manifest)
        for namespace, workloads in by_namespace.items():
            missing = [name for name in named[namespace] if name and (namespace, name) not in taken]
            groups, doubts = group_templates.from_templates(workloads, missing, composites)
            yield from groups
            self.doubts += doubts

    def _groups_of_pods(self, workload: Manifest) -> Iterator[Manifest]:
        """The group of a Job that its pods in the files name."""
        if workload.gvk == builtin_workloads.JOB and id(workload) in self._made_pods:
            group = native_groups.of_job(workload, self._existing)
            names = {native_groups.named_in(pod.spec) for pod in self._existing.pods_of(workload)}
            if group is not None and group.name in names:
                yield group
