"""Asks the operator why a group waits, for users who may not list the whole cluster.

The request carries a token that is valid for the operator's answers alone. The user's own credentials go only to the
API server.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from gangsched.cli.access import Unanswered, UsageError, denied

if TYPE_CHECKING:
    from gangsched.core.objects.declaration import GroupKey
    from gangsched.kube.client.session import ApiSession
    from gangsched.views.diagnosed import Diagnosis

_ANSWER_S = 45.0
_ENDING_S = 0.25
"""Pause, in seconds, after the client is closed: aiohttp closes TLS connections in later iterations of the event loop,
and its documentation recommends this delay."""
_MOST_BYTES = 4 * 2**20
_ADDRESS = re.compile(r"(?:127\.0\.0\.1|localhost):([0-9]{1,5})")
_MOST_PORT = 65_535
_FINGERPRINT = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_SEE = "docs/answers.md says what to set up"
_TRY_NEXT_REPLICA = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.INTERNAL_SERVER_ERROR)
"""Statuses after which the next replica is asked."""


def add_asking(parser: argparse.ArgumentParser) -> None:
    """Add the flags for asking the operator."""
    group = parser.add_argument_group(
        "asking the operator", f"for users who may not list the whole cluster, if the operator answers them: {_SEE}"
    )
    group.add_argument(
        "--ask-operator-as",
        metavar="[NS/]SERVICEACCOUNT",
        dest="account",
        help="ask the operator as this service account (by default in the group's namespace), which must have the "
        "right to get podgroups.gangsched.io there; the command creates a token that is valid for this alone, which "
        "needs the right to create serviceaccounts/token",
    )
    group.add_argument(
        "--operator-namespace",
        metavar="NS",
        default="gangsched-system",
        help="namespace of the operator's pods; the command needs the rights to list pods and to get and create "
        "pods/portforward there (default: %(default)s)",
    )
    group.add_argument(
        "--via",
        metavar="127.0.0.1:PORT",
        help="address of a running kubectl port-forward to one of the operator's pods; needs --fingerprint",
    )
    group.add_argument(
        "--fingerprint",
        metavar="sha256:HEX",
        help="with --via: fingerprint of the certificate to expect, from the pod's condition gangsched.io/answers",
    )


@dataclass(frozen=True)
class Answered:
    """The operator's diagnosis, and the name of the replica that made it."""

    diagnosis: Diagnosis
    by: str


@dataclass(frozen=True)
class _Place:
    """Where a replica listens: a port of its pod, or of this machine's loopback (`--via`)."""

    name: str
    port: int
    fingerprint: str
    is_pod: bool = True


class _TryNextReplica(Exception):  # noqa: N818 - a state of affairs
    """This replica has no answer at present; another one may have."""


async def ask(arguments: argparse.Namespace, session: ApiSession, key: GroupKey) -> Answered:
    """Ask the operator for its diagnosis of the group.

    Raises:
        UsageError: the flags contradict each other.
        Unanswered: the operator cannot be asked, or does not answer; the message says what to do.
        KubeError: the API server does not answer.
    """
    places = [_via(arguments)] if arguments.via else await _pods(session, arguments.operator_namespace)
    token = await _token(session, key, arguments.account)
    try:
        return await _first(places, arguments.operator_namespace, session, key, token)
    finally:
        await asyncio.sleep(_ENDING_S)


async def _first(places: Sequence[_Place], namespace: str, session: ApiSession, key: GroupKey, token: str) -> Answered:
    """The answer of the first replica that has one."""
    from gangsched.kube.client.errors import ApiUnreachable  # noqa: PLC0415

    trouble = ""
    for place in places:
        try:
            async with _reached(session, namespace, place) as port:
                return Answered(await _get(port, place, key, token), place.name)
        except (_TryNextReplica, ApiUnreachable) as error:
            trouble = str(error)
    raise Unanswered(f"no replica of the operator has answered; the last one: {trouble}")


def check(arguments: argparse.Namespace) -> None:
    """Validate the flags of `add_asking`.

    Raises:
        UsageError: they contradict each other.
    """
    if arguments.account is None:
        if arguments.via or arguments.fingerprint:
            raise UsageError("--via and --fingerprint say where to ask the operator: add --ask-operator-as")
        return
    if arguments.group is None:
        raise UsageError("the operator is asked about one group: name it, as NAMESPACE/NAME or NAME")
    if arguments.config is not None or arguments.scheduler_name:
        raise UsageError("the operator decides by its own settings: leave --config and --scheduler-name out")
    namespace, slash, name = arguments.account.rpartition("/")
    if not name or "/" in namespace or (slash and not namespace):
        said = f"{arguments.account!r} is not the name of a service account: write NAMESPACE/NAME or NAME"
        raise UsageError(f"--ask-operator-as {said}")
    if bool(arguments.via) != bool(arguments.fingerprint):
        raise UsageError(
            "--via and --fingerprint belong together: give both, so that no other process on that port gets the token"
        )
    if arguments.via:
        _via(arguments)


def _via(arguments: argparse.Namespace) -> _Place:
    address, fingerprint = _ADDRESS.fullmatch(arguments.via), _FINGERPRINT.fullmatch(arguments.fingerprint.lower())
    if address is None or not 0 < int(address[1]) <= _MOST_PORT:
        raise UsageError(f"--via {arguments.via!r} is not a port of 127.0.0.1: write 127.0.0.1:PORT")
    if fingerprint is None:
        raise UsageError(
            f"--fingerprint {arguments.fingerprint!r} is not a fingerprint: write sha256: and 64 hexadecimal digits"
        )
    return _Place(arguments.via, int(address[1]), fingerprint[1], is_pod=False)


async def _pods(session: ApiSession, namespace: str) -> Sequence[_Place]:
    """The addresses that the operator's pods announce for answers, those of ready pods first."""
    from gangsched.answers.announcement import announced  # noqa: PLC0415 - see the package
    from gangsched.kube.client.errors import ApiError  # noqa: PLC0415

    try:
        found = await announced(session, namespace)
    except ApiError as error:
        if not error.denied:
            raise
        right = f"the Role that the chart creates for tenants in namespace {namespace} ({_SEE})"
        raise Unanswered(denied(error.message, right)) from error
    if not found:
        raise Unanswered(
            f"no pod of namespace {namespace} announces that it answers: name the operator's namespace with "
            f"--operator-namespace, or have the chart's value answers.enabled set ({_SEE})"
        )
    return [_Place(pod, said.port, said.fingerprint) for pod, said in found]


async def _token(session: ApiSession, key: GroupKey, account: str) -> str:
    from gangsched.answers.gate import AUDIENCE  # noqa: PLC0415 - see the package
    from gangsched.kube.client.errors import ApiError  # noqa: PLC0415
    from gangsched.kube.client.reviews import request_token  # noqa: PLC0415

    namespace, _, name = account.rpartition("/")
    namespace = namespace or key.namespace
    try:
        return await request_token(session, namespace, name, AUDIENCE)
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise Unanswered(
                f"there is no ServiceAccount {name} in namespace {namespace}: create it with kubectl create "
                f"serviceaccount {name} -n {namespace}, and let it see PodGroups with kubectl create rolebinding "
                f"{name}-view -n {namespace} --clusterrole=view --serviceaccount={namespace}:{name}"
            ) from error
        if error.denied:
            right = f"the right to create serviceaccounts/token in namespace {namespace}, which edit includes"
            raise Unanswered(denied(error.message, right)) from error
        raise


@asynccontextmanager
async def _reached(session: ApiSession, namespace: str, place: _Place) -> AsyncIterator[int]:
    """A port of this machine's loopback that leads to the replica."""
    from gangsched.kube.client.errors import ApiError  # noqa: PLC0415
    from gangsched.kube.client.portforward import forwarded  # noqa: PLC0415

    if not place.is_pod:
        yield place.port
        return
    try:
        async with forwarded(session, namespace, place.name, place.port) as port:
            yield port
    except ApiError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            right = f"the rights to get and create pods/portforward in namespace {namespace} ({_SEE})"
            raise Unanswered(denied(error.message, right)) from error
        raise _TryNextReplica(str(error)) from error


async def _get(port: int, place: _Place, key: GroupKey, token: str) -> Diagnosis:
    """The replica's answer, provided that its certificate has the expected fingerprint."""
    import aiohttp  # noqa: PLC0415 - see the package
    from yarl import URL  # noqa: PLC0415

    from gangsched.core.objects.quantity import InvalidQuantity  # noqa: PLC0415
    from gangsched.kube.client.errors import UNREADABLE  # noqa: PLC0415
    from gangsched.kube.client.paths import quoted  # noqa: PLC0415
    from gangsched.kube.client.session import said  # noqa: PLC0415
    from gangsched.views.diagnosis_json import from_json  # noqa: PLC0415

    path = f"/v1/explain/{quoted(key.namespace)}/{quoted(key.name)}"
    url = URL(f"https://127.0.0.1:{port}{path}", encoded=True)
    expected = aiohttp.Fingerprint(bytes.fromhex(place.fingerprint))
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json", "Accept-Encoding": "identity"}
    limit = aiohttp.ClientTimeout(total=_ANSWER_S)
    try:
        async with (
            aiohttp.ClientSession() as client,
            client.get(url, headers=headers, ssl=expected, timeout=limit, allow_redirects=False) as answer,
        ):
            status, body = answer.status, await answer.content.read(_MOST_BYTES)
            while not answer.content.at_eof() and len(body) < _MOST_BYTES:
                body += await answer.content.read(_MOST_BYTES)
    except aiohttp.ServerFingerprintMismatch as error:
        raise Unanswered(
            f"the server at {place.name} does not have the expected certificate, so the token was not sent: ask again "
            "if the operator has just restarted; otherwise another process listens there"
        ) from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        hint = "" if place.is_pod else "; see whether kubectl port-forward still runs there"
        raise _TryNextReplica(
            f"{place.name} cannot be reached ({type(error).__name__}): {said(error)}{hint}"
        ) from error
    if status == HTTPStatus.OK:
        try:
            return from_json(body)
        except (*UNREADABLE, InvalidQuantity) as error:
            raise Unanswered(
                f"the answer of {place.name} cannot be read: use the operator's version of gangsched"
            ) from error
    sentence = _sentence(body)
    if status in _TRY_NEXT_REPLICA:
        raise _TryNextReplica(sentence)
    raise Unanswered(f"the operator says: {sentence}")


def _sentence(body: bytes) -> str:
    import msgspec  # noqa: PLC0415 - see the package

    from gangsched.kube.client.errors import UNREADABLE  # noqa: PLC0415

    try:
        return msgspec.json.decode(body, type=dict[str, str]).get("error", "nothing")
    except UNREADABLE:
        return "nothing that can be read"
