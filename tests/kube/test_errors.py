from __future__ import annotations

import pytest

from gangsched.kube.errors import ApiError

DENIED = [
    'pods "x" is forbidden: User "u" cannot create resource "pods/binding" in API group "" in the namespace "n"',
    'pods is forbidden: User "system:serviceaccount:gangsched:gangsched" cannot list resource "pods" in API group ""'
    " at the cluster scope",
    'podgroups.gangsched.io is forbidden: User "u" cannot watch resource "podgroups" in API group "gangsched.io" at the'
    ' cluster scope: RBAC: [clusterrole.rbac.authorization.k8s.io "gangsched" not found,'
    ' role.rbac.authorization.k8s.io "gangsched" not found]',
    'leases.coordination.k8s.io "gangsched" is forbidden: User "u" cannot get resource "leases" in API group'
    ' "coordination.k8s.io" in the namespace "n": RBAC: clusterrole.rbac.authorization.k8s.io "x" not found',
    'forbidden: User "system:anonymous" cannot get path "/apis"',
    'forbidden: User "u" cannot * path "/x"',
    'pods "x" is forbidden: User "a \\"quoted\\"\nname" cannot patch resource "pods/status" in API group "" in the'
    ' namespace "n"',
]
REFUSED = [
    "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'nodes' with binding 'nodes' denied request: node n7 is drained",
    'pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3',
    'events "x" is forbidden: unable to create new content in namespace n because it is being terminated',
    'admission webhook "guard.example" denied the request: not this node',
    'pods "x" is forbidden: violates PodSecurity "restricted:latest": User may not be root',
    "",
    "Forbidden",
]


@pytest.mark.parametrize(
    ("message", "denied"), [*((text, True) for text in DENIED), *((text, False) for text in REFUSED)]
)
def test_a_right_that_is_missing_is_told_from_a_refusal_by_admission(message: str, *, denied: bool) -> None:
    error = ApiError(403, "Forbidden", message)
    assert (error.denied, error.passing) == (denied, denied)


@pytest.mark.parametrize("status", [400, 401, 404, 409, 429, 500])
def test_only_a_403_denies(status: int) -> None:
    assert not ApiError(status, "", DENIED[0]).denied


@pytest.mark.parametrize(
    ("status", "passing"),
    [
        *((status, True) for status in (401, 408, 429, 500, 502, 503, 504)),
        *((status, False) for status in (301, 400, 404, 405, 409, 410, 413, 415, 422)),
    ],
)
def test_what_may_pass_by_itself(status: int, *, passing: bool) -> None:
    assert ApiError(status, "", "").passing is passing
