"""Checks the bindings and evictions in the API server's audit log.

`examine` reports each of these in one sentence:

- a pod (by UID) that was bound successfully more than once (a 409 is harmless and not counted);
- a binding without the pod's UID or without the short timeout that keeps it from taking effect late;
- a plain delete of a pod by gangsched, which may only evict (contract rule 13);
- an eviction without the pod's UID;
- an eviction of a pod of a Job whose podFailurePolicy does not ignore DisruptionTarget, or of a bare pod, unless its
  group asks for Restart, which evicts every member.

gangsched's requests are recognised by their user agent. Bindings and evictions that the authorizer denied, as a
restarted API server does until it has read its roles, are skipped: the log does not contain their bodies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from testbed.api import Json
from testbed.audit import audit_entries

AGENT = "gangsched"
_FIRST_REFUSAL = 300


@dataclass
class Requests:
    """Successful bindings and evictions by UID, and the violations."""

    bound: Counter[str] = field(default_factory=Counter)
    evicted: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def read_log(folder: Path) -> Iterator[Json]:
    """All entries of the API server's audit log, rotated files included; a truncated last line is skipped."""
    for file in sorted(folder.glob("audit*.log"), key=lambda path: (path.name == "audit.log", path.name)):
        yield from audit_entries(file)


def examine(entries: Iterable[Json], *, spares: Callable[[str], str]) -> Requests:
    """Count and judge gangsched's requests; `spares` says why a pod of a name must not be evicted, empty if it may."""
    found = Requests()
    for entry in entries:
        if entry.get("stage") != "ResponseComplete" or entry.get("objectRef", {}).get("resource") != "pods":
            continue
        done = 0 < entry.get("responseStatus", {}).get("code", 0) < _FIRST_REFUSAL
        own = entry.get("userAgent", "").startswith(AGENT)
        denied = entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
        match entry["verb"], entry["objectRef"].get("subresource", ""):
            case "create", "binding" if not denied:
                _binding(found, entry, own=own, done=done)
            case "create", "eviction" if own and not denied:
                _eviction(found, entry, spares, done=done)
            case (("delete" | "deletecollection"), _) if own:
                found.wrong.append(f"{_name(entry)} was deleted by gangsched, which may only evict")
    return found


def _binding(found: Requests, entry: Json, *, own: bool, done: bool) -> None:
    uid = entry.get("requestObject", {}).get("metadata", {}).get("uid", "")
    if own and not uid:
        found.wrong.append(f"a binding of {_name(entry)} does not name the pod's UID")
    if own and "timeout=" not in entry["requestURI"]:
        found.wrong.append(f"a binding of {_name(entry)} carries no time-out of its own")
    if done and uid:
        found.bound[uid] += 1
        if found.bound[uid] > 1:
            found.wrong.append(f"{_name(entry)} ({uid}) was bound {found.bound[uid]} times")


def _eviction(found: Requests, entry: Json, spares: Callable[[str], str], *, done: bool) -> None:
    options = entry.get("requestObject", {}).get("deleteOptions") or {}
    uid = (options.get("preconditions") or {}).get("uid", "")
    if not uid:
        found.wrong.append(f"an eviction of {_name(entry)} does not name the pod's UID")
        return
    if why := spares(entry["objectRef"].get("name", "")):
        found.wrong.append(f"{_name(entry)} ({uid}) was to be evicted though {why}")
    if done:
        found.evicted[uid] += 1


def _name(entry: Json) -> str:
    return f"{entry['objectRef'].get('namespace', '')}/{entry['objectRef'].get('name', '')}"
