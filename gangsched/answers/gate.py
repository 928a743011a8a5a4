"""Authenticates and authorises users through the API server, and caches the results for some seconds.

A token's own claims can only lead to its refusal, never to its acceptance: they save a request and make for a better
message.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from http import HTTPStatus
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from gangsched.core.objects.declaration import GroupKey
from gangsched.kube.client import reviews
from gangsched.kube.client.errors import ApiError, KubeError
from gangsched.kube.client.reviews import User
from gangsched.kube.client.session import ApiSession
from gangsched.views.reach import Reach

AUDIENCE = "gangsched"
CACHE_TTL_S = 10.0
"""Lifetime of a cached result, in seconds. A revoked right is honoured for that long, as in the API server's caches."""
MOST_CACHED = 1000
STRANGERS_PER_S, STRANGERS_AT_ONCE = 10.0, 30.0
"""Rate and burst of requests to the API server that authenticate tokens of unknown users."""
REVIEWS_PER_S, REVIEWS_AT_ONCE = 20.0, 60.0
"""Rate and burst of requests to the API server that authorise authenticated users."""
QUESTIONS_PER_S, QUESTIONS_AT_ONCE = 0.5, 10.0
"""Rate and burst of questions per user, and of new tokens that name a user who was authenticated before."""
_LONGEST_TOKEN = 16_384
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")

Value = TypeVar("Value")
Key = TypeVar("Key", bound=Hashable)

_MAKE_ONE = f"make one with kubectl create token SERVICEACCOUNT --audience={AUDIENCE}, or name the account with "
_MAKE_ONE += "gangsched explain --ask-operator-as SERVICEACCOUNT"
NO_TOKEN = f"There is no bearer token: {_MAKE_ONE}."
FOR_OTHERS = f"The token is not for the audience {AUDIENCE}: {_MAKE_ONE}."
EXPIRED = f"The token has expired: {_MAKE_ONE}."
UNKNOWN = f"The API server does not accept the token for the audience {AUDIENCE}: {_MAKE_ONE}."
NO_RIGHT = (
    "The token's account may not get this podgroups.gangsched.io, which may or may not exist: bind a role with that "
    "right, such as view, to the account in the group's namespace."
)
NO_NAME = "The namespace or the name of the group is invalid: ask with GET /v1/explain/NAMESPACE/NAME."
TOO_OFTEN = "This account asks too often: ask again in some seconds."
BUSY = "There are too many questions at present: ask again in some seconds."
NO_REVIEW = (
    "The API server did not confirm whose token this is and what that account may see: ask again; if that does not "
    "help, the operator may lack the rights that the chart grants with answers.enabled."
)


class Refused(Exception):  # noqa: N818 - a state of affairs
    """The request is refused; `status` is the HTTP status, `sentence` the message."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Gate:
    """Admits users who may get the group that they ask about."""

    def __init__(
        self,
        session: ApiSession,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._session = session
        self._wall = wall
        self._users: _Cache[bytes, User | None] = _Cache(monotonic)
        self._rights: _Cache[tuple[str, ...], bool] = _Cache(monotonic)
        self._strangers = _Bucket(STRANGERS_PER_S, STRANGERS_AT_ONCE, monotonic)
        self._reviews = _Bucket(REVIEWS_PER_S, REVIEWS_AT_ONCE, monotonic)
        self._known = _Buckets(QUESTIONS_PER_S, QUESTIONS_AT_ONCE, monotonic)
        self._questions = _Buckets(QUESTIONS_PER_S, QUESTIONS_AT_ONCE, monotonic)

    async def admit(self, authorization: str, key: GroupKey) -> tuple[User, Reach]:
        """The sender of this header, and what they may be told about the group.

        Raises:
            Refused: the sender may not be told anything.
        """
        user = await self._sender(authorization)
        if not self._questions.of(user.username).take():
            raise Refused(429, TOO_OFTEN)
        if not (_NAMESPACE.fullmatch(key.namespace) and _NAME.fullmatch(key.name)):
            raise Refused(400, NO_NAME)
        return user, await self._reach(user, key)

    async def is_still(self, authorization: str, key: GroupKey, admitted: tuple[User, Reach]) -> bool:
        """Whether this header and group would be admitted again with the same result, after the time an answer takes.

        Raises:
            Refused: the sender may no longer be told anything.
        """
        user = await self._sender(authorization)
        return (user, await self._reach(user, key)) == admitted

    async def may_get(self, user: User, key: GroupKey) -> bool:
        """Whether the user may get the PodGroup of this name, if there is one.

        Raises:
            Refused: the API server gave no result.
        """
        group, resource = "gangsched.io", "podgroups"
        return await self._may(user, verb="get", group=group, resource=resource, namespace=key.namespace, name=key.name)

    async def _sender(self, authorization: str) -> User:
        token = _token_of(authorization)
        claims = _claims_of(token)
        if why := _faults(claims, self._wall()):
            raise Refused(401, why)
        digest = hashlib.sha256(token.encode()).digest()
        known = self._known.found(claims.sub) if claims is not None else None

        def may_ask() -> bool:
            # Strangers cannot lock out a known user, however many tokens they make up.
            return (known is not None and known.take()) or self._strangers.take()

        user = await self._reviewed(
            self._users, digest, may_ask, lambda: reviews.sender(self._session, token, AUDIENCE)
        )
        if user is None:
            raise Refused(401, UNKNOWN)
        if claims is not None and claims.sub == user.username:
            self._known.of(user.username)
        return user

    async def _reach(self, user: User, key: GroupKey) -> Reach:
        if not await self.may_get(user, key):
            raise Refused(403, NO_RIGHT)
        node_names = await self._may(user, verb="list", group="", resource="nodes")
        return Reach(namespace=key.namespace, node_names=node_names)

    async def _may(self, user: User, **attributes: str) -> bool:
        key = (msgspec.json.encode(user).decode(), *attributes.values())
        return await self._reviewed(
            self._rights, key, self._reviews.take, lambda: reviews.may(self._session, user, **attributes)
        )

    async def _reviewed(
        self,
        cache: _Cache[Key, Value],
        key: Key,
        may_ask: Callable[[], bool],
        ask: Callable[[], Awaitable[Value]],
    ) -> Value:
        known = cache.get(key)
        if known is not None:
            return known[0]
        if not may_ask():
            raise Refused(503, BUSY)
        try:
            value = await ask()
        except ApiError as error:
            if error.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
                # The API server calls the request invalid, and only the token and names in it are not ours.
                raise Refused(401, UNKNOWN) from error
            raise Refused(503, NO_REVIEW) from error
        except KubeError as error:
            raise Refused(503, NO_REVIEW) from error
        cache.put(key, value)
        return value


class _Cache(Generic[Key, Value]):
    """A cache of the results of the last CACHE_TTL_S seconds, of at most MOST_CACHED entries."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: OrderedDict[Key, tuple[float, Value]] = OrderedDict()

    def get(self, key: Key) -> tuple[Value] | None:
        until, value = self._known.get(key, (0.0, None))
        return (value,) if key in self._known and self._monotonic() < until else None  # type: ignore[return-value]

    def put(self, key: Key, value: Value) -> None:
        self._known.pop(key, None)
        self._known[key] = self._monotonic() + CACHE_TTL_S, value
        while len(self._known) > MOST_CACHED:
            self._known.popitem(last=False)


class _Bucket:
    """A token bucket: a burst of `at_once`, and a rate of `per_s` per second."""

    def __init__(self, per_s: float, at_once: float, monotonic: Callable[[], float]) -> None:
        self._per_s, self._most, self._left = per_s, at_once, at_once
        self._monotonic = monotonic
        self._last = monotonic()

    def take(self) -> bool:
        now = self._monotonic()
        self._left = min(self._most, self._left + (now - self._last) * self._per_s)
        self._last = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class _Buckets:
    """A token bucket for each of the MOST_CACHED most recently seen users."""

    def __init__(self, per_s: float, at_once: float, monotonic: Callable[[], float]) -> None:
        self._per_s, self._at_once = per_s, at_once
        self._monotonic = monotonic
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def found(self, name: str) -> _Bucket | None:
        return self._buckets.get(name)

    def of(self, name: str) -> _Bucket:
        bucket = self._buckets.pop(name, None) or _Bucket(self._per_s, self._at_once, self._monotonic)
        self._buckets[name] = bucket
        while len(self._buckets) > MOST_CACHED:
            self._buckets.popitem(last=False)
        return bucket


class _Claims(Struct):
    sub: str = ""
    aud: str | list[str] = ""
    exp: float | None = None


def _token_of(authorization: str) -> str:
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or len(token) > _LONGEST_TOKEN or not _TOKEN.fullmatch(token):
        raise Refused(401, NO_TOKEN)
    return token


def _claims_of(token: str) -> _Claims | None:
    """The token's own claims, which are unverified; None if it has none."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 - head, claims, signature
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=_Claims)
    except (binascii.Error, ValueError, RecursionError):
        return None


def _faults(claims: _Claims | None, now: float) -> str:
    """Why a token with these claims is certainly invalid; empty if it may be valid."""
    if claims is None:
        return ""
    if claims.aud not in (AUDIENCE, [AUDIENCE]):
        # A token that the API server accepts too must not be sent to anything else.
        return FOR_OTHERS
    return EXPIRED if claims.exp is not None and claims.exp <= now else ""
