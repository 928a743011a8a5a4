"""`gangsched try`: the operator beside the terminal, on a cluster that one has, and nothing of it left afterwards."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import re
import secrets
import shlex
import shutil
import signal
import sys
import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gangsched.cli.cluster_access import FAILED, Unanswered, UsageError, add_context, connected, fail, run
from gangsched.cli.output import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gangsched.cli import Commands
    from gangsched.kube.client.session import ApiSession, Response

SCHEDULER = "gangsched-try"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CRD = f"{_CRDS}/podgroups.gangsched.io"
_SERVED_WITHIN_S = 30.0
_REMOVED_WITHIN_S = 10.0
_TRIAL = "gangsched.io/trial"
"""Annotation of a CRD that this command has installed: its value tells one run from another."""
_IMPORTANT = re.compile(r"(?<!\bnon)(?<!\bnon )(?<!\bre)(?:prod(?!uc|ukt|ig[aiy])|produ[ck]tion|\bprd|prd\b)|\blive\b")
"""Production, in a name whose words are separated by spaces, also together with other words: `euprod`, `prodeu`.

Not: product, produce, Produkt, prodigy, reproduce, non-production. As a part of a word, `live` says nothing: olive.
"""
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
    add_context(parser)
    parser.add_argument("--yes", action="store_true", help="also on a cluster whose name looks like production")
    parser.set_defaults(execute=_execute, user=None, user_groups=[], user_uid="", watch=True)


def _execute(arguments: argparse.Namespace) -> int:
    return run(arguments, _try(arguments), right="the right to read and create CustomResourceDefinitions")


def looks_important(*names: str) -> bool:
    """Whether the name of a context, a cluster or a server says that others rely on it."""
    return any(_IMPORTANT.search(text) for name in names for text in _spaced(name))


def _spaced(name: str) -> Iterator[str]:
    """The name as words in lower case, as written, and also as capitals begin them: `euLive` is `eu live`."""
    for text in (name, re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)):
        yield re.sub(r"[^a-z]+", " ", text.lower())


async def _try(arguments: argparse.Namespace) -> int:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if task is None:
        raise RuntimeError("not in a task")
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    # Whoever closes the terminal wants nothing to be left either.
    loop.add_signal_handler(signal.SIGHUP, os.kill, os.getpid(), signal.SIGTERM)
    async with connected(arguments) as session:
        # The same cluster all along, whatever becomes the current context meanwhile.
        arguments.context = session.context or None
        of_context = f" (context {session.context})" if session.context else ""
        where = shown(f"the cluster {session.server}{of_context}")
        if looks_important(session.context, session.cluster, session.server) and not arguments.yes:
            raise UsageError(f"{where} looks like production: choose another --context, or add --yes")
        guide = Guide(arguments)
        is_missing = _is_missing(await session.request("GET", _CRD), guide)
        _say(f"On {where}, this command will, until Ctrl-C:", *_plan(missing=is_missing), "")
        trial = Trial(session, guide) if is_missing else None
        status, is_clean = 0, True
        try:
            if trial is not None:
                await trial.install()
            await _served(session)
            status = await _run(arguments, guide)
        except asyncio.CancelledError:
            pass
        finally:
            if trial is not None:
                _say("Ending; the CRD of PodGroups is being deleted.")
                is_clean = await trial.remove()
    _say("Pods and Jobs that you have made for the trial stay: delete them yourself.")
    return status if is_clean else fail(arguments, f"the CRD is left: run {guide.deletion}", FAILED)


async def _run(arguments: argparse.Namespace, guide: Guide) -> int:
    from gangsched import app  # noqa: PLC0415 - see the package
    from gangsched.config.settings import validated  # noqa: PLC0415
    from gangsched.runtime import logs  # noqa: PLC0415

    flags = {"schedulerNames": [SCHEDULER], "listen": "127.0.0.1:0", "page": {"enabled": True, "port": 0}}
    settings = validated(flags, "gangsched try")
    logs.configure(settings.log_format, level="warning")
    gc.enable()
    return await app.run(
        settings,
        kubeconfig=arguments.kubeconfig,
        context=arguments.context,
        dry_run=False,
        leader_elect=False,
        show_page=guide.show,
    )


def _is_missing(response: Response, guide: Guide) -> bool:
    """Whether the CRD is missing.

    Raises:
        Unanswered: another trial has installed it, or it is being deleted.
        ApiError: it cannot be read.
    """
    if response.status == HTTPStatus.NOT_FOUND:
        return True
    meta = _metadata(response)
    if meta.get("deletionTimestamp"):
        raise Unanswered("the CRD of PodGroups is being deleted: try again once it is gone")
    if _TRIAL in meta.get("annotations", {}):
        raise Unanswered(
            "another gangsched try runs on this cluster, or was killed: wait for its end, or, if nobody uses it, run "
            + guide.deletion
        )
    return False


def _plan(*, missing: bool) -> list[str]:
    crd = "install the CRD of PodGroups, and delete it at the end together with all PodGroups"
    return [
        f"- {crd}" if missing else "- use the CRD of PodGroups that is installed, and leave it as it is",
        f"- run the operator on this machine, with your rights, for pods with schedulerName {SCHEDULER}",
        "- serve its page on this machine",
    ]


async def _served(session: ApiSession) -> None:
    """Wait until PodGroups are served.

    Raises:
        Unanswered: they are not after a while.
        ApiError: the API server refuses.
    """
    from gangsched.api.podgroup_names import PATH  # noqa: PLC0415 - see the package

    deadline = time.monotonic() + _SERVED_WITHIN_S
    while not (response := await session.request("GET", f"{PATH}?limit=1")).ok:
        if response.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS):
            response.checked()
        if time.monotonic() > deadline:
            raise Unanswered(f"the API server does not serve PodGroups {_SERVED_WITHIN_S:.0f} s after their CRD came")
        await asyncio.sleep(0.1)


class Trial:
    """The CRD as this run installs and deletes it."""

    def __init__(self, session: ApiSession, guide: Guide) -> None:
        self._session = session
        self._guide = guide
        self._name = secrets.token_hex(8)

    async def install(self) -> None:
        """Install it.

        Raises:
            KubeError: the API server does not answer, or refuses.
        """
        import msgspec  # noqa: PLC0415 - see the package

        from gangsched.api.custom_resource import crd  # noqa: PLC0415

        manifest = crd()
        manifest["metadata"] = {**manifest["metadata"], "annotations": {_TRIAL: self._name}}
        path = f"{_CRDS}?fieldManager={SCHEDULER}"
        (await self._session.request("POST", path, body=msgspec.json.encode(manifest))).checked()

    async def remove(self) -> bool:
        """Delete it, whatever signal arrives meanwhile, unless others use it by now. Returns whether that is done."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, _ignore)
        try:
            return await asyncio.wait_for(self._remove(), _REMOVED_WITHIN_S)
        except TimeoutError:
            return False

    async def _remove(self) -> bool:
        import msgspec  # noqa: PLC0415 - see the package

        from gangsched.kube.client.errors import KubeError  # noqa: PLC0415

        try:
            response = await self._session.request("GET", _CRD)
            if response.status == HTTPStatus.NOT_FOUND:
                return True
            meta = _metadata(response)
            if meta.get("annotations", {}).get(_TRIAL) != self._name:
                return True
            if await self._is_used(meta):
                _say(f"The CRD of PodGroups stays, because others use it by now. To delete it: {self._guide.deletion}")
                await self._take_mark_off(meta)
                return True
            body = msgspec.json.encode({"preconditions": {"uid": meta["uid"]}})
            (await self._session.request("DELETE", _CRD, body=body)).checked()
        except KubeError as error:
            _say(f"The CRD of PodGroups could not be deleted: {shown(str(error))}")
            return False
        _say("The CRD of PodGroups is deleted again.")
        return True

    async def _take_mark_off(self, meta: dict[str, Any]) -> None:
        """Let the next trial use the CRD as it is: it belongs to others, who must not be told to delete it."""
        import msgspec  # noqa: PLC0415 - see the package

        from gangsched.kube.client.errors import KubeError  # noqa: PLC0415
        from gangsched.kube.client.session import MERGE_PATCH  # noqa: PLC0415

        body = msgspec.json.encode({"metadata": {"uid": meta["uid"], "annotations": {_TRIAL: None}}})
        try:
            (await self._session.request("PATCH", _CRD, body=body, content_type=MERGE_PATCH)).checked()
        except KubeError as error:
            _say(f"Remove its annotation {_TRIAL} before the next trial; that failed here: {shown(str(error))}")

    async def _is_used(self, meta: dict[str, Any]) -> bool:
        """Whether somebody else has written the CRD, or another gangsched the status of a PodGroup."""
        from gangsched.kube.client.pages import objects, pages  # noqa: PLC0415 - see the package
        from gangsched.kube.reading.watched_resources import GROUPS  # noqa: PLC0415

        if {entry.get("manager") for entry in meta.get("managedFields", ())} - {SCHEDULER, "kube-apiserver"}:
            return True
        async for page in pages(self._session, GROUPS.path, GROUPS.name):
            statuses = (group.get("status") or {} for group in objects(page, GROUPS.name))
            if any(status.get("scheduler") not in (None, SCHEDULER) for status in statuses):
                return True
        return False


def _metadata(response: Response) -> dict[str, Any]:
    import msgspec  # noqa: PLC0415 - see the package

    meta: dict[str, Any] = msgspec.json.decode(response.checked().body)["metadata"]
    return meta


def _ignore() -> None:
    """The process is about to end."""


class Guide:
    """Says what to do next, with the flags of this cluster."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        flags = [(name, vars(arguments)[name]) for name in ("kubeconfig", "context")]
        self._flags = "".join(f" --{name}={shlex.quote(value)}" for name, value in flags if value)
        files = os.environ.get("KUBECONFIG")
        self._files = f"export KUBECONFIG={shlex.quote(files)}" if files and not arguments.kubeconfig else ""
        self._began = False

    @property
    def deletion(self) -> str:
        """The command that deletes the CRD, and all PodGroups, on this cluster."""
        return shown(f"kubectl{self._flags} delete crd podgroups.gangsched.io")

    def show(self, address: str) -> None:
        """Print the address of the page and, the first time, the commands to follow."""
        if self._began:
            _say(f"The page, for another browser: {address}")
            return
        self._began = True
        _say(f"The page: {address}", "", "In another terminal:", *([shown(self._files)] if self._files else []))
        _say(f"kubectl{shown(self._flags)} apply -f - <<'EOF'", f"{MANIFEST}EOF")
        _say(f"kubectl{shown(self._flags)} get podgroups.gangsched.io")
        # Started by its path, as from a .venv, it may not be found by its name.
        program = "gangsched" if shutil.which("gangsched") else shlex.quote(str(Path(sys.argv[0]).absolute()))
        _say(f"{shown(program)} explain first{shown(self._flags)} --scheduler-name={SCHEDULER}", "")


def _say(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)
