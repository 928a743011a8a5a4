from __future__ import annotations

import pytest

from gangsched.kube.client.errors import ApiError

NOT_FOUND = 'RBAC: clusterrole.rbac.authorization.k8s.io "x" not found'
DENIED = [
    'pods "x" is forbidden: User "u" cannot create resource "pods/binding" in API group "" in the namespace "n"',
    'pods is forbidden: User "system:serviceaccount:n" cannot list resource "pods" in API group ""',
    f'pods is forbidden: User "u" cannot watch resource "pods" in API group "" at the cluster scope: {NOT_FOUND}',
    f'leases is forbidden: User "u" cannot get resource "leases" in API group "x.io" in the namespace "n": {NOT_FOUND}',
    'forbidden: User "system:anonymous" cannot get path "/apis"',
    'forbidden: User "u" cannot * path "/x"',
    'pods is forbidden: User "a \\"b\\"\nc" cannot patch resource "pods/status" in API group "" in the namespace "n"',
]
REFUSED = [
    "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: node n7 is drained",
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
