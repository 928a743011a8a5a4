"""Asks the API server what somebody may do, as `kubectl auth can-i` does, but without a process for each question."""

from __future__ import annotations

from testbed.api import Api

AUTHENTICATED = "system:authenticated"


def may(api: Api, user: str, verb: str, resource: str, *, namespace: str = "", name: str = "") -> bool:
    """Whether the user may do this. `resource` is as in RBAC's messages: `pods/binding`, `podgroups.gangsched.io`."""
    plural, _, subresource = resource.partition("/")
    kind, _, group = plural.partition(".")
    about = {"verb": verb, "resource": kind, "group": group, "subresource": subresource}
    spec = {
        "user": user,
        "groups": [AUTHENTICATED],
        "resourceAttributes": about | {"namespace": namespace, "name": name},
    }
    answer = api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    return bool(answer["status"]["allowed"])
