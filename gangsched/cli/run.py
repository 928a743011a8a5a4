"""`gangsched run`: the operator."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gangsched.cli import Commands
    from gangsched.config.settings import Settings


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "run",
        help="run the operator",
        description="Schedule pods of the cluster until SIGTERM or SIGINT. Without --kubeconfig and $KUBECONFIG the "
        "operator uses the credentials of its own pod, else those of ~/.kube/config.",
        epilog="Options override the file of --config. Exit status: 0 after SIGTERM or SIGINT, 2 for wrong usage or "
        "configuration, 1 if it cannot listen on its address or after an internal error. Errors of the API server do "
        "not end it.",
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig to use")
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current one)")
    parser.add_argument("--config", metavar="FILE", type=Path, help="settings, as YAML")
    parser.add_argument(
        "--scheduler-name",
        metavar="NAME",
        action="append",
        help="spec.schedulerName of the pods to schedule; may be repeated (default: gangsched)",
    )
    parser.add_argument(
        "--namespace",
        metavar="NS",
        help="schedule only pods and groups of this namespace; the pods of all namespaces still count on their nodes",
    )
    parser.add_argument("--dry-run", action="store_true", help="decide, log and count, but write nothing")
    parser.add_argument(
        "--no-leader-elect",
        action="store_true",
        help="run without leader election: no other gangsched may serve these schedulerNames",
    )
    parser.add_argument(
        "--listen",
        metavar="ADDR",
        help="address of /metrics, /livez and /readyz; port 0 means any free port (default: :8080)",
    )
    parser.add_argument("--log-format", choices=("text", "json"), help="format of the log lines (default: text)")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        help="the least severe log lines that are written (default: info)",
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    # Imported objects stay in memory. Garbage collection during the import would take a quarter of its time.
    gc.disable()
    import uvloop  # noqa: PLC0415 - see the package

    from gangsched import app  # noqa: PLC0415
    from gangsched.config.invalid_config import InvalidConfig  # noqa: PLC0415
    from gangsched.runtime import logs  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    try:
        settings = _settings(arguments)
    except InvalidConfig as error:
        print(f"gangsched run: error: {error}", file=sys.stderr)
        return app.WRONG_USAGE
    logs.configure(settings.log_format, level=settings.log_level)
    try:
        return uvloop.run(
            app.run(
                settings,
                kubeconfig=arguments.kubeconfig,
                context=arguments.context,
                dry_run=arguments.dry_run,
                leader_elect=not arguments.no_leader_elect,
            )
        )
    except KeyboardInterrupt:
        return app.FAILED


def _settings(arguments: argparse.Namespace) -> Settings:
    from gangsched.config.settings import load  # noqa: PLC0415

    flags = {
        "schedulerNames": arguments.scheduler_name,
        "namespace": arguments.namespace,
        "listen": arguments.listen,
        "logFormat": arguments.log_format,
        "logLevel": arguments.log_level,
    }
    return load(arguments.config, flags={key: value for key, value in flags.items() if value is not None})
