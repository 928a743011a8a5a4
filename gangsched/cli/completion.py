"""`gangsched completion`, and the completion of commands, flags, and names from the cluster.

The shell runs the program itself for each completion (argcomplete); kubectl runs `kubectl_complete-gang` for its
plug-in. Both ignore every failure silently and wait at most two seconds for the cluster.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gangsched.cli import Commands

SHELLS = ("bash", "zsh", "fish")
_WITHIN_S = 2.0
_MOST = "500"
_NO_FILES, _FILES = 4, 0
"""The directive that follows the completions: ShellCompDirectiveNoFileComp or ShellCompDirectiveDefault of cobra."""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "completion",
        help="print a shell completion script for commands, flags and names",
        description="Print a completion script for commands, flags, and the names of groups, namespaces and contexts. "
        "In bash: source <(gangsched completion bash); in zsh the same with zsh; in fish: gangsched completion fish | "
        "source. kubectl completes kubectl gang with kubectl_complete-gang, which is installed with it.",
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode  # noqa: PLC0415 - see the package

    print(shellcode(["gangsched"], shell=arguments.shell))
    return 0


def complete(parser: argparse.ArgumentParser) -> None:
    """If the environment says that the shell asks for completions, print them and end the process."""
    import argcomplete  # noqa: PLC0415 - only completions have to wait for this import

    argcomplete.autocomplete(parser, always_complete_options=False)


def plugin() -> int:
    """`kubectl_complete-gang`: print the completions of the last word, in the form that kubectl reads."""
    lines = completions(sys.argv[1:])
    for line in lines:
        print(line)
    print(f":{_NO_FILES if lines else _FILES}")
    return 0


def completions(words: Sequence[str]) -> list[str]:
    """The completions of the last word after `kubectl gang`; each may be followed by a tab and its description."""
    from argcomplete.completers import SuppressCompleter  # noqa: PLC0415
    from argcomplete.finders import CompletionFinder  # noqa: PLC0415 - see `complete`

    from gangsched.cli import make_parser  # noqa: PLC0415

    *before, last = words or [""]
    line = " ".join(["gang", *map(shlex.quote, before), last])
    os.environ |= {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_DFS": "\t"}
    os.environ |= {"COMP_LINE": line, "COMP_POINT": str(len(line.encode()))}
    output = io.StringIO()
    CompletionFinder()(
        make_parser(plugin=True),
        always_complete_options=False,
        exit_method=lambda _=0: None,
        output_stream=output,
        append_space=False,
        default_completer=SuppressCompleter(),
    )
    return [completion.rstrip("\t") for completion in output.getvalue().split("\n") if completion]


def complete_groups(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The PodGroups of the namespace, as NAME; as NS/NAME if the prefix contains a namespace, or with -A."""
    namespace, slash, _name = prefix.rpartition("/")
    if slash:
        parsed_args.namespace = namespace
    return [f"{namespace}{slash}{name}" for name in _names(parsed_args, namespaced=True)]


def complete_namespaces(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The cluster's namespaces."""
    return [name for name in _names(parsed_args, namespaced=False) if name.startswith(prefix)]


def complete_contexts(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The contexts of the kubeconfig."""
    from gangsched.kube.client.credentials import contexts  # noqa: PLC0415

    try:
        return [name for name in contexts(getattr(parsed_args, "kubeconfig", None)) if name.startswith(prefix)]
    except Exception:  # noqa: BLE001 - completion ignores every failure
        return []


def _names(arguments: argparse.Namespace, *, namespaced: bool) -> list[str]:
    import asyncio  # noqa: PLC0415 - see the package

    try:
        return asyncio.run(_listed(arguments, namespaced=namespaced))
    except Exception:  # noqa: BLE001 - completion ignores every failure
        return []


async def _listed(arguments: argparse.Namespace, *, namespaced: bool) -> list[str]:
    import asyncio  # noqa: PLC0415 - see the package
    import json  # noqa: PLC0415

    from gangsched.api.podgroup_names import PATH  # noqa: PLC0415
    from gangsched.cli.cluster_access import connected, namespace_of  # noqa: PLC0415
    from gangsched.kube.client.paths import within  # noqa: PLC0415

    async with asyncio.timeout(_WITHIN_S), connected(arguments) as session:
        path, of_all = "/api/v1/namespaces", False
        if namespaced:
            namespace = namespace_of(arguments, session)
            of_all = not namespace
            path = within(PATH, namespace)
        response = await session.request("GET", path, params={"limit": _MOST}, timeout_s=_WITHIN_S)
        metas = [item["metadata"] for item in json.loads(response.checked().body)["items"]]
    return [f"{meta['namespace']}/{meta['name']}" if of_all else meta["name"] for meta in metas]
