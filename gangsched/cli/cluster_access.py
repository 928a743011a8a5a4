"""The flags that select a cluster, named as in kubectl, and the error messages of commands that cannot reach it."""

from __future__ import annotations

import argparse
import asyncio
import atexit
import gc
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from gangsched.cli.completion import complete_contexts, complete_namespaces

if TYPE_CHECKING:
    from gangsched.core.objects.declaration import GroupKey
    from gangsched.kube.client.errors import ApiError
    from gangsched.kube.client.session import ApiSession

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
ANY_RIGHT = "the right that it names"

_KINDS = re.compile(r"pods?|podgroups?(\..+)?|compositepodgroup\..+|gang\.gangsched\.io")
"""The kinds before a name as lists print them, see gangsched.views.resource_names."""


class UsageError(Exception):
    """The arguments contradict each other or are malformed; the message says what to write."""


class Unanswered(Exception):  # noqa: N818 - a state of affairs
    """The command has no answer and exits with status 1; the message says why."""


def add_context(parser: argparse.ArgumentParser) -> None:
    """Add the flags that select a cluster."""
    parser.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig to use (default: those of $KUBECONFIG)")
    context = parser.add_argument(
        "--context", metavar="NAME", help="context of the kubeconfig (default: its current one)"
    )
    context.completer = complete_contexts  # type: ignore[attr-defined] # argcomplete looks for it there


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the flags that select a cluster, the user whose rights the requests have, and the settings to decide by."""
    add_context(parser)
    parser.add_argument("--as", metavar="USER", dest="user", help="ask with the rights of this user or service account")
    parser.add_argument(
        "--as-group",
        metavar="GROUP",
        dest="user_groups",
        action="append",
        default=[],
        help="with --as: a group of that user; may be repeated",
    )
    parser.add_argument("--as-uid", metavar="UID", dest="user_uid", default="", help="with --as: that user's UID")
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=_path,
        help="settings to decide by, as YAML (default: those that the operator publishes on its Lease)",
    )
    parser.add_argument(
        "--scheduler-name",
        metavar="NAME",
        action="append",
        help="as given to gangsched run; may be repeated (default: what the operator serves, else gangsched)",
    )


def add_namespace(parser: argparse.ArgumentParser, *, everywhere: bool = True) -> None:
    """Add the flags that select one namespace, or all."""
    chosen = parser.add_mutually_exclusive_group()
    namespace = chosen.add_argument("-n", "--namespace", metavar="NS", help="namespace (default: that of the context)")
    namespace.completer = complete_namespaces  # type: ignore[attr-defined] # see add_cluster
    if everywhere:
        chosen.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")


def _path(text: str) -> object:
    from pathlib import Path  # noqa: PLC0415 - see the package

    return Path(text)


@asynccontextmanager
async def connected(arguments: argparse.Namespace) -> AsyncIterator[ApiSession]:
    """A session with the cluster and the rights that the flags of `add_cluster` select.

    Raises:
        UsageError: a group or UID is impersonated without a user.
        NoCredentials: there are no usable credentials.
    """
    from gangsched.kube.client.credentials import Impersonation  # noqa: PLC0415
    from gangsched.kube.client.session import connect  # noqa: PLC0415

    acting_as = None
    if arguments.user:
        acting_as = Impersonation(
            user=arguments.user, groups=tuple(arguments.user_groups), uid=arguments.user_uid or ""
        )
    elif arguments.user_groups or arguments.user_uid:
        raise UsageError("--as-group and --as-uid describe the user of --as: add --as USER")
    session = await connect(
        kubeconfig=arguments.kubeconfig, context=arguments.context, acting_as=acting_as, compressed=True
    )
    try:
        yield session
    finally:
        await session.close()


def namespace_of(arguments: argparse.Namespace, session: ApiSession) -> str:
    """The namespace that the flags of `add_namespace` select, by default that of the context; empty for all.

    Raises:
        UsageError: no namespace can have this name.
    """
    if getattr(arguments, "all_namespaces", False):
        return ""
    return _namespace(arguments.namespace or session.namespace)


def _namespace(name: str) -> str:
    """The name, checked: an answer to a request whose path it has changed would be about something else."""
    from gangsched.core.objects.declaration import NAMESPACE  # noqa: PLC0415 - see the package

    if not re.fullmatch(NAMESPACE, name):
        raise UsageError(
            f"{name!r} is not the name of a namespace: write at most 63 lower-case letters, digits and hyphens, such "
            "as team-a"
        )
    return name


def split_name(text: str) -> tuple[str, str]:
    """Namespace and name of NS/NAME; the namespace is empty for NAME alone, also after its kind as in KIND/NAME.

    Raises:
        UsageError: the text is not the name of a group.
    """
    namespace, slash, name = text.rpartition("/")
    if not name or "/" in namespace or (slash and not namespace):
        raise UsageError(f"{text!r} is not the name of a group: write NAMESPACE/NAME or NAME")
    if not slash or _KINDS.fullmatch(namespace):
        return "", name
    return _namespace(namespace), name


def named(arguments: argparse.Namespace, text: str, session: ApiSession) -> GroupKey:
    """The key of the group that NAME or NS/NAME refers to.

    Raises:
        UsageError: the text is not the name of a group, or is of another namespace than -n.
    """
    from gangsched.core.objects.declaration import GroupKey  # noqa: PLC0415 - see the package

    namespace, name = split_name(text)
    if namespace and arguments.namespace not in (None, "", namespace):
        raise UsageError(f"{text} and -n {arguments.namespace} name two namespaces: leave one of them out")
    return GroupKey(namespace or namespace_of(arguments, session) or _namespace(session.namespace), name)


def run(
    arguments: argparse.Namespace, work: Coroutine[Any, Any, int] | Callable[[], int], *, right: str = ANY_RIGHT
) -> int:
    """Run a command, report its failures and return its exit status.

    `right` is what a caller who is denied access has to ask for. Commands that ask a cluster collect no garbage, which
    would take a tenth of their time, and as much again at the end of the process: most of them look once and end. Those
    that go on enable it again.
    """
    if isinstance(work, Coroutine):
        gc.disable()
        atexit.register(gc.freeze)
    from gangsched.config.invalid_config import InvalidConfig  # noqa: PLC0415 - see the package
    from gangsched.kube.client.errors import ApiError, CutOff, Garbled, KubeError, NoCredentials  # noqa: PLC0415

    try:
        return asyncio.run(_interruptible(work)) if isinstance(work, Coroutine) else work()
    except (UsageError, InvalidConfig, NoCredentials, Garbled, CutOff) as error:
        return fail(arguments, str(error), WRONG_USAGE)
    except Unanswered as error:
        return fail(arguments, str(error), FAILED)
    except ApiError as error:
        return fail(arguments, _refused(error, right), FAILED)
    except KubeError as error:
        return fail(arguments, str(error), FAILED)
    except KeyboardInterrupt:
        # Ctrl-C is the normal end of --watch.
        return 0 if getattr(arguments, "watch", False) else INTERRUPTED
    finally:
        gc.enable()


async def _interruptible(work: Coroutine[Any, Any, int]) -> int:
    """Run the work so that Ctrl-C ends it at once; asyncio's own handler would wait until the current step ends.

    A process that was started in the background ignores Ctrl-C, and stays that way.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return await work


def fail(arguments: argparse.Namespace, message: str, status: int = FAILED) -> int:
    """Print the message as an error of the command, and return the status."""
    from gangsched.cli.output import shown  # noqa: PLC0415 - see the package

    print(f"{arguments.prog}: error: {shown(message)}", file=sys.stderr)
    return status


def note(arguments: argparse.Namespace, message: str) -> None:
    """Print a remark on standard error, apart from the command's output."""
    from gangsched.cli.output import shown  # noqa: PLC0415 - see the package

    print(f"{arguments.prog}: {shown(message)}", file=sys.stderr)


def denied(message: str, right: str) -> str:
    """The API server's refusal, with what to ask for."""
    return f"{message}: ask for {right}"


def _refused(error: ApiError, right: str) -> str:
    """The API server's error, with a remedy if it refuses the credentials or a right is missing."""
    others = "log in again, or choose other credentials with --kubeconfig or --context"
    if error.status == HTTPStatus.UNAUTHORIZED:
        return f"the API server does not accept the token or certificate, which is wrong or has expired: {others}"
    if error.anonymous:
        return (
            "the API server has seen no credentials (it answers system:anonymous): the client certificate has expired, "
            f"or the kubeconfig's user has neither certificate nor token; {others}"
        )
    return denied(error.message, right) if error.denied else str(error)
