"""ResourceQuotas of a simulated cluster: which pods they still admit.

The rules are `podEvaluator` in k8s.io/kubernetes/pkg/quota/v1/evaluator/core/pods.go and the admission plug-in
ResourceQuota, at v1.37.2. Only what limits pods is applied.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from gangsched.core.objects.quantity import Exact, format_amount
from gangsched.whatif.world import pod_amounts
from gangsched.whatif.world.defaults import check_quantities
from gangsched.whatif.world.label_keys import PREFERRED, REQUIRED
from gangsched.whatif.world.manifests import Manifest, mapping, mappings

_COUNTS = ("pods", "count/pods")
_DEMANDED = {
    f"{prefix}{name}": (field, name)
    for name in ("cpu", "memory")
    for prefix, field in (("", "requests"), ("requests.", "requests"), ("limits.", "limits"))
}
"""The quotas that every container must have an amount for, with the field and the resource of that amount."""
_ENDED = ("Succeeded", "Failed")
_EFFECTLESS = ("services", "configmaps", "secrets", "resourcequotas", "endpoints", "events", "roles", "serviceaccounts")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")

Body = Mapping[str, Any]


class _Quota:
    def __init__(self, manifest: Manifest) -> None:
        hard, used = manifest.spec.get("hard"), manifest.status.get("used")
        check_quantities(hard, f"{manifest}: spec.hard")
        check_quantities(used, f"{manifest}: status.used")
        self.title = f"ResourceQuota {manifest.name}"
        self.hard = {name: _amount(name, text) for name, text in mapping(hard).items() if _of_pods(name)}
        self._recorded = {name: _amount(name, text) for name, text in mapping(used).items()}
        self._scopes = [
            *({"scopeName": scope, "operator": "Exists"} for scope in manifest.spec.get("scopes") or ()),
            *mappings(mapping(manifest.spec.get("scopeSelector")).get("matchExpressions")),
        ]
        self._existing: Counter[str] = Counter()
        self._created: Counter[str] = Counter()

    def matches(self, spec: Body) -> bool:
        """Whether the quota counts a pod with this spec."""
        return bool(self.hard) and all(_in_scope(scope, spec) for scope in self._scopes)

    def use(self, usage: Mapping[str, Exact], *, recorded: bool) -> None:
        """Count this usage, of a pod that existed before or of one that is made."""
        (self._existing if recorded else self._created).update(usage)

    def excess(self, usage: Mapping[str, Exact]) -> Iterator[str]:
        """The resources of which this usage would be too much, each as a clause with amounts."""
        for name, hard in self.hard.items():
            used = max(self._existing[name], self._recorded.get(name, 0)) + self._created[name]
            more = usage.get(name, 0)
            if more and used + more > hard:
                shown = [format_amount(_plain(name), int(size)) for size in (more, used, hard)]
                yield f"{name}: {shown[0]} more than the {shown[1]} in use, of {shown[2]}"


class Quotas:
    """The ResourceQuotas by namespace. Pods are counted in the order in which they are admitted."""

    def __init__(self) -> None:
        self._quotas: defaultdict[str, list[_Quota]] = defaultdict(list)

    def add(self, manifest: Manifest) -> None:
        """Add a ResourceQuota.

        Raises:
            ManifestError: it is unreadable.
        """
        self._quotas[manifest.namespace].append(_Quota(manifest))

    def count(self, pod: Manifest) -> None:
        """Count a pod that existed before."""
        if pod.status.get("phase") not in _ENDED:
            for quota in self._matching(pod.namespace, pod.spec):
                quota.use(_usage(pod.spec), recorded=True)

    def refusal(self, namespace: str, spec: Body) -> str:
        """Why no pod with this spec is admitted, a clause; empty if one is, which is then counted."""
        matching = self._matching(namespace, spec)
        if not matching:
            return ""
        usage = _usage(spec)
        for quota in matching:
            if missing := _missing(quota.hard, spec):
                return f"{quota.title} demands that each container has {missing}"
            if excess := next(quota.excess(usage), ""):
                return f"{quota.title} does not admit it ({excess})"
        for quota in matching:
            quota.use(usage, recorded=False)
        return ""

    def _matching(self, namespace: str, spec: Body) -> list[_Quota]:
        return [quota for quota in self._quotas.get(namespace, ()) if quota.matches(spec)]


def unapplied(manifest: Manifest) -> Iterator[str]:
    """A sentence about what the quota limits beside pods, unless no pod depends on it."""
    names = [name for name in mapping(manifest.spec.get("hard")) if not _of_pods(name)]
    names = [name for name in names if not name.removeprefix("count/").startswith(_EFFECTLESS)]
    if names:
        yield f"{manifest} limits {', '.join(names)}, which is not applied here: see that enough of it is left"


def _of_pods(name: str) -> bool:
    """Whether a quota of this name limits pods."""
    extended = name.startswith("requests.") and ("/" in name or name.startswith("requests.hugepages-"))
    return name in _COUNTS or extended or _plain(name) in _COMPUTE or name.startswith("hugepages-")


def _plain(name: str) -> str:
    return name.removeprefix("requests.").removeprefix("limits.")


def _amount(name: str, text: str | float) -> Exact:
    plain = _plain(name)
    return pod_amounts.exact({plain: text})[plain]


def _usage(spec: Body) -> Mapping[str, Exact]:
    """What one pod takes of each quota."""
    usage: dict[str, Exact] = dict.fromkeys(_COUNTS, 1)
    for name, size in pod_amounts.of_pod(spec, "requests", overhead=True).items():
        usage[f"requests.{name}"] = size
        if name in _COMPUTE or name.startswith("hugepages-"):
            usage[name] = size
    for name, size in pod_amounts.of_pod(spec, "limits", overhead=True).items():
        if name in _COMPUTE:
            usage[f"limits.{name}"] = size
    return usage


def _missing(hard: Mapping[str, Exact], spec: Body) -> str:
    """The first quota for which a container of the pod has no amount; empty if there is none."""
    if any(mapping(spec, "resources").get(field) for field in ("requests", "limits")):
        return ""
    containers = pod_amounts.containers(spec)
    for name, (field, resource) in _DEMANDED.items():
        if name in hard and not all(resource in mapping(container, "resources", field) for container in containers):
            return name
    return ""


def _in_scope(scope: Body, spec: Body) -> bool:
    ends = spec.get("activeDeadlineSeconds") is not None
    name = str(scope.get("scopeName"))
    if name == "PriorityClass":
        return _is_of_class(scope, spec)
    return {
        "Terminating": ends,
        "NotTerminating": not ends,
        "BestEffort": _is_best_effort(spec),
        "NotBestEffort": not _is_best_effort(spec),
        "CrossNamespacePodAffinity": _reaches_other_namespaces(spec),
    }.get(name, False)


def _is_of_class(scope: Body, spec: Body) -> bool:
    operator, values = scope.get("operator"), scope.get("values") or ()
    priority_class = spec.get("priorityClassName") or ""
    return {
        "Exists": bool(priority_class),
        "DoesNotExist": not priority_class,
        "In": priority_class in values,
        "NotIn": priority_class not in values,
    }.get(str(operator), False)


def _is_best_effort(spec: Body) -> bool:
    parts = [spec, *pod_amounts.containers(spec)]
    amounts = [mapping(part, "resources", field) for part in parts for field in ("requests", "limits")]
    return not any(values.get(name) for values in amounts for name in ("cpu", "memory"))


def _reaches_other_namespaces(spec: Body) -> bool:
    both = [mapping(spec, "affinity", kind) for kind in ("podAffinity", "podAntiAffinity")]
    terms = [term for side in both for term in mappings(side.get(REQUIRED))]
    terms += [mapping(term.get("podAffinityTerm")) for side in both for term in mappings(side.get(PREFERRED))]
    return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms)
