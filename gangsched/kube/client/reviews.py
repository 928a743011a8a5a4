"""Reviews of tokens and rights by the API server, and requests for tokens that are valid for one audience only."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from gangsched.kube.client.errors import UNREADABLE, Garbled
from gangsched.kube.client.paths import quoted
from gangsched.kube.client.session import ApiSession

_TIMEOUT_S = 5.0
_TOKEN_S = 600
"""Requested lifetime of a token in seconds: the shortest that the API server grants."""


class User(Struct, frozen=True):
    """A user as the API server identifies it."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] | None = None


class _Reviewed(Struct):
    authenticated: bool = False
    user: User = User()
    audiences: list[str] | None = None
    allowed: bool = False
    token: str = ""


class _Review(Struct):
    status: _Reviewed = msgspec.field(default_factory=_Reviewed)


_REVIEW = msgspec.json.Decoder(_Review)


async def sender(session: ApiSession, token: str, audience: str) -> User | None:
    """The user whose token this is; None if the token is invalid, or not valid for this audience.

    Raises:
        ApiError, ApiUnreachable, Garbled: there was no usable answer.
    """
    spec = {"token": token, "audiences": [audience]}
    status = await _reviewed(session, "authentication.k8s.io/v1", "TokenReview", "tokenreviews", spec)
    # An API server that does not support audiences names none: its tokens are valid for itself only.
    is_known = status.authenticated and audience in (status.audiences or ()) and bool(status.user.username)
    return status.user if is_known else None


async def may(session: ApiSession, user: User, **attributes: str) -> bool:
    """Whether the user may send a resource request with these attributes.

    Raises:
        ApiError, ApiUnreachable, Garbled: there was no usable answer.
    """
    spec = {
        "user": user.username,
        "uid": user.uid,
        "groups": user.groups,
        "extra": user.extra or {},
        "resourceAttributes": attributes,
    }
    kind = "SubjectAccessReview"
    return (await _reviewed(session, "authorization.k8s.io/v1", kind, "subjectaccessreviews", spec)).allowed


async def request_token(session: ApiSession, namespace: str, account: str, audience: str) -> str:
    """A token of this ServiceAccount that is valid for ten minutes and for this audience only.

    Raises:
        ApiError, ApiUnreachable, Garbled: the API server issued none.
    """
    path = f"namespaces/{quoted(namespace)}/serviceaccounts/{quoted(account)}/token"
    spec = {"audiences": [audience], "expirationSeconds": _TOKEN_S}
    status = await _created(session, "/api/v1", path, "authentication.k8s.io/v1", "TokenRequest", spec)
    if not status.token:
        raise Garbled("The answer to a TokenRequest has no token.")
    return status.token


async def _reviewed(session: ApiSession, version: str, kind: str, plural: str, spec: Mapping[str, object]) -> _Reviewed:
    return await _created(session, f"/apis/{version}", plural, version, kind, spec)


async def _created(
    session: ApiSession, folder: str, path: str, version: str, kind: str, spec: Mapping[str, object]
) -> _Reviewed:
    body = msgspec.json.encode({"apiVersion": version, "kind": kind, "spec": spec})
    answer = await session.request("POST", f"{folder}/{path}", body=body, timeout_s=_TIMEOUT_S, essential=False)
    try:
        return _REVIEW.decode(answer.checked().body).status
    except UNREADABLE as error:
        raise Garbled(f"A {kind} cannot be read: {error}") from error
