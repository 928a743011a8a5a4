"""What a Job states in `spec.scheduling`, as the API server of Kubernetes 1.37 accepts it.

The rules are those of `JobSchedulingConfiguration` in k8s.io/api/batch/v1/types.go, of the WorkloadPodGroup types in
k8s.io/api/scheduling/v1alpha3/types.go, and `validateGangMinCount` and `validateJobScheduling` in
k8s.io/kubernetes/pkg/apis/batch/validation/validation.go, at v1.37.2. Only the forms of names are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from gangsched.kube import wire
from gangsched.whatif.world.manifests import Manifest, ManifestError

_MOST_CLAIMS = 4
_Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
_Name = Annotated[str, Meta(min_length=1)]


class _Gang(Struct, rename="camel"):
    min_count: _Count | None = None


class _Policy(Struct):
    basic: wire.Present | None = None
    gang: _Gang | None = None


class _Level(Struct):
    key: _Name


class _Constraints(Struct):
    topology: Annotated[list[_Level], Meta(max_length=1)] | None = None


class _Disruption(Struct):
    single: wire.Present | None = None
    all: wire.Present | None = None


class _Claim(Struct, rename="camel"):
    name: _Name
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _Scheduling(Struct, rename="camel"):
    scheduling_policy: _Policy | None = None
    scheduling_constraints: _Constraints | None = None
    disruption_mode: _Disruption | None = None
    resource_claims: Annotated[list[_Claim], Meta(max_length=_MOST_CLAIMS)] | None = None


def minimum(job: Manifest) -> int | None:
    """The minCount of the gang that the Job's `spec.scheduling` asks for; None if its policy is basic.

    Raises:
        ManifestError: the API server would refuse it.
    """
    try:
        scheduling = msgspec.convert(job.spec["scheduling"], _Scheduling)
    except msgspec.ValidationError as error:
        raise ManifestError([_refused(job, str(error))]) from None
    value = job.spec.get("parallelism")
    parallelism = value if isinstance(value, int) else 1
    if faults := [_refused(job, fault) for fault in _faults(scheduling, parallelism)]:
        raise ManifestError(faults)
    gang = scheduling.scheduling_policy.gang if scheduling.scheduling_policy is not None else None
    return None if gang is None else gang.min_count or max(1, parallelism)


def _refused(job: Manifest, fault: str) -> str:
    return f"{job}: the API server would refuse spec.scheduling, because {fault}: correct it"


def _faults(scheduling: _Scheduling, parallelism: int) -> Iterator[str]:
    policy, mode = scheduling.scheduling_policy, scheduling.disruption_mode
    gang = policy.gang if policy is not None else None
    if policy is not None and (policy.basic is None) == (gang is None):
        yield "schedulingPolicy does not have exactly one of basic and gang"
    elif gang is not None and (gang.min_count or 0) > parallelism:
        yield f"schedulingPolicy.gang.minCount is {gang.min_count}, above the parallelism {parallelism}"
    if mode is not None and (mode.single is None) == (mode.all is None):
        yield "disruptionMode does not have exactly one of single and all"
    elif mode is not None and mode.all is not None and gang is None:
        yield "disruptionMode is all, which the policy basic excludes"
    names: set[str] = set()
    for claim in scheduling.resource_claims or ():
        if (claim.resource_claim_name is None) == (claim.resource_claim_template_name is None):
            yield (
                f"the claim {claim.name} does not have exactly one of resourceClaimName and resourceClaimTemplateName"
            )
        if claim.name in names:
            yield f"resourceClaims has the name {claim.name} twice"
        names.add(claim.name)
