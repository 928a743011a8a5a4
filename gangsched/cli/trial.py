"""`gangsched try`: the operator beside the terminal, on a cluster that one has, and nothing of it left afterwards."""

from __future__ import annotations

import argparse
import asyncio
import re
import shlex
import sys
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from gangsched.cli.cluster_access import Unanswered, UsageError, connected, run

if TYPE_CHECKING:
    from gangsched.cli import Commands
    from gangsched.kube.client.session import ApiSession

SCHEDULER = "gangsched-try"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CRD = f"{_CRDS}/podgroups.gangsched.io"
_SERVED_WITHIN_S = 30.0
_IMPORTANT = re.compile(r"(?<![a-z])(prod|prd|production|live)(?![a-z])", re.IGNORECASE)
MANIFEST = f"""\
apiVersion: gangsched.io/v1alpha1
kind: PodGroup
metadata: {{name: first}}
spec: {{minMember: 2, maxScheduleTime: 10m}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: first}}
spec:
  parallelism: 2
  completions: 2
  template:
    metadata: {{labels: {{gangsched.io/pod-group: first}}}}
    spec:
      schedulerName: {SCHEDULER}
      restartPolicy: Never
      containers:
        - name: worker
          image: registry.k8s.io/pause:3.10
          resources: {{requests: {{cpu: 100m}}}}
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "try",
        help="run the operator here, on a cluster that you have, until Ctrl-C",
        description="Try gangsched on a cluster without an image or a chart: install the CRD of PodGroups if it is "
        f"missing, run the operator on this machine with your rights for pods with schedulerName {SCHEDULER}, serve "
        "its page, and delete the CRD again at Ctrl-C if this command has installed it. It says what it will do before "
        "it does it.",
        epilog="Exit status: 0 after Ctrl-C, 1 if the cluster does not answer or refuses, 2 for wrong usage, missing "
        "credentials, or a cluster that looks like production without --yes.",
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig to use (default: those of $KUBECONFIG)")
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current one)")
    parser.add_argument("--yes", action="store_true", help="also on a cluster whose name looks like production")
    parser.set_defaults(execute=_execute, user=None, user_groups=[], user_uid="")


def _execute(arguments: argparse.Namespace) -> int:
    return run(arguments, _try(arguments), right="the right to read and create CustomResourceDefinitions")


def looks_important(*names: str) -> bool:
    """Whether a word in the name of a context, or in the address of a server, says that others rely on it."""
    return any(_IMPORTANT.search(name) for name in names)


async def _try(arguments: argparse.Namespace) -> int:
    from gangsched import app  # noqa: PLC0415 - see the package
    from gangsched.config.settings import validated  # noqa: PLC0415
    from gangsched.kube.client.credentials import current_context  # noqa: PLC0415
    from gangsched.runtime import logs  # noqa: PLC0415

    flags = {"schedulerNames": [SCHEDULER], "listen": "127.0.0.1:0", "page": {"enabled": True, "port": 0}}
    settings = validated(flags, "gangsched try")
    context = arguments.context or current_context(arguments.kubeconfig)
    async with connected(arguments) as session:
        where = f"the cluster {session.server}" + (f" (context {context})" if context else "")
        if looks_important(context, session.server) and not arguments.yes:
            raise UsageError(f"{where} looks like production: choose another --context, or add --yes")
        found = await session.request("GET", _CRD)
        missing = found.status == HTTPStatus.NOT_FOUND
        if not missing:
            found.checked()
        _say(f"On {where}, this command will, until Ctrl-C:", *_plan(missing=missing), "")
        made = await _install(session) if missing else ""
        try:
            await _served(session)
            logs.configure(settings.log_format, level="warning")
            status = await app.run(
                settings,
                kubeconfig=arguments.kubeconfig,
                context=arguments.context,
                dry_run=False,
                leader_elect=False,
                show_page=Guide(arguments).show,
            )
        finally:
            if made:
                await _remove(session, made)
    _say("Pods and Jobs that you have made for the trial stay: delete them yourself.")
    return status


def _plan(*, missing: bool) -> list[str]:
    crd = "install the CRD of PodGroups, and delete it at the end together with all PodGroups"
    return [
        f"- {crd}" if missing else "- use the CRD of PodGroups that is installed, and leave it as it is",
        f"- run the operator on this machine, with your rights, for pods with schedulerName {SCHEDULER}",
        "- serve its page on this machine",
    ]


async def _install(session: ApiSession) -> str:
    """Install the CRD, and return its UID."""
    import msgspec  # noqa: PLC0415 - see the package

    from gangsched.api.custom_resource import crd  # noqa: PLC0415

    made = await session.request("POST", _CRDS, body=msgspec.json.encode(crd()))
    uid: str = msgspec.json.decode(made.checked().body)["metadata"]["uid"]
    return uid


async def _served(session: ApiSession) -> None:
    """Wait until PodGroups are served.

    Raises:
        Unanswered: they are not after a while.
    """
    deadline = time.monotonic() + _SERVED_WITHIN_S
    while not (await session.request("GET", "/apis/gangsched.io/v1alpha1/podgroups?limit=1")).ok:
        if time.monotonic() > deadline:
            raise Unanswered(f"the API server does not serve PodGroups {_SERVED_WITHIN_S:.0f} s after their CRD came")
        await asyncio.sleep(0.1)


async def _remove(session: ApiSession, uid: str) -> None:
    """Delete the CRD that this command has installed; one that somebody has installed since stays."""
    import msgspec  # noqa: PLC0415 - see the package

    from gangsched.kube.client.errors import KubeError  # noqa: PLC0415

    try:
        answer = await session.request("DELETE", _CRD, body=msgspec.json.encode({"preconditions": {"uid": uid}}))
        if answer.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            answer.checked()
            _say("The CRD of PodGroups is deleted again.")
    except KubeError as error:
        print(
            f"gangsched try: error: the CRD could not be deleted ({error}): "
            "run kubectl delete crd podgroups.gangsched.io",
            file=sys.stderr,
        )


class Guide:
    """Says what to do next, with the flags of this cluster."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        given = [(name, vars(arguments)[name]) for name in ("kubeconfig", "context")]
        self._flags = "".join(f" --{name}={shlex.quote(value)}" for name, value in given if value)
        self._began = False

    def show(self, address: str) -> None:
        """Print the address of the page and, the first time, the commands to follow."""
        if self._began:
            _say(f"The page, for another browser: {address}")
            return
        self._began = True
        _say(
            f"The page: {address}",
            "",
            "In another terminal:",
            f"kubectl{self._flags} apply -f - <<'EOF'",
            f"{MANIFEST}EOF",
            f"kubectl{self._flags} get podgroups.gangsched.io",
            f"gangsched explain first{self._flags} --scheduler-name={SCHEDULER}",
            "",
        )


def _say(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)
