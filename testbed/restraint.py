"""Keeps KWOK from writing to a pod that it does not mean, by a ValidatingAdmissionPolicy.

KWOK deletes pods and writes their status by name, some time after it has seen them. A real kubelet compares UIDs. So on
a busy machine KWOK's deletion of one pod would delete a later pod of that name, such as a StatefulSet's next replica,
and its report that a pod runs would reach one that has no node yet, or that has ended meanwhile.
"""

from __future__ import annotations

import time

from testbed.api import Api, ApiError, Json

KWOK = "testbed-kwok"
"""The user as whom KWOK writes."""
_NAME = "kwok-writes-what-it-has-seen"
_API = "admissionregistration.k8s.io/v1"
_POLICIES = "validatingadmissionpolicies"
_BINDINGS = "validatingadmissionpolicybindings"
_SAID = "KWOK means an earlier pod of this name, or an earlier state of this one"
_WITHIN_S = 60.0
_AGAIN_S = 0.1
_DELETED = "has(oldObject.metadata.deletionTimestamp)"
_RUNS = "has(oldObject.spec.nodeName) && !(oldObject.status.phase in ['Failed', 'Succeeded'])"


def restrain(api: Api, kwok: Api) -> None:
    """Let KWOK delete only pods that are being deleted, and write the status only of bound pods that have not ended.

    Returns once that is in force, so before KWOK may start; `kwok` are its credentials.

    Raises:
        TimeoutError: it was not in force in time.
    """
    api.post(f"/apis/{_API}/{_POLICIES}", _object("ValidatingAdmissionPolicy", _policy()))
    binding = {"policyName": _NAME, "validationActions": ["Deny"]}
    api.post(f"/apis/{_API}/{_BINDINGS}", _object("ValidatingAdmissionPolicyBinding", binding))
    ends = time.monotonic() + _WITHIN_S
    while not _in_force(kwok):
        if time.monotonic() > ends:
            raise TimeoutError(f"the policy {_NAME} is not in force after {_WITHIN_S} s")
        time.sleep(_AGAIN_S)


def _in_force(kwok: Api) -> bool:
    """Whether a binding, which KWOK never makes, is refused before the API server finds that the pod does not exist."""
    try:
        kwok.post(
            "/api/v1/namespaces/default/pods/none/binding", {"metadata": {"name": "none"}, "target": {"name": "n"}}
        )
    except ApiError as error:
        return _SAID in error.message
    return False


def _policy() -> Json:
    of_pods = {"apiGroups": [""], "apiVersions": ["v1"]}
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                of_pods | {"operations": ["DELETE"], "resources": ["pods"]},
                of_pods | {"operations": ["UPDATE"], "resources": ["pods/status"]},
                of_pods | {"operations": ["CREATE"], "resources": ["pods/binding"]},
            ]
        },
        "matchConditions": [{"name": "kwok", "expression": f"request.userInfo.username == '{KWOK}'"}],
        "validations": [
            {
                "expression": f"request.operation == 'DELETE' ? {_DELETED} : request.operation == 'UPDATE' && {_RUNS}",
                "message": _SAID,
            }
        ],
    }


def _object(kind: str, spec: Json) -> Json:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": _NAME}, "spec": spec}
