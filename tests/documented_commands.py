"""The commands in pages and in the heads of manifests, and the test that runs each.

tests/integration/test_documented_commands.py runs them, including every new one, unless a table here says otherwise: a
command that cannot run there needs a row in `ELSEWHERE` or `NOT_HERE`.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHELL = ("sh", "bash", "console", "shell")
NO_COMMANDS = ("yaml", "text", "json", "mermaid", "promql", "toml", "dockerfile")
"""The languages of blocks without commands."""

WORKLOADS = "tests/workloads/test_workloads.py::test_its_page_makes_a_whole_gang_of_the_pods_that_simulate_makes"
ELSEWHERE = {
    ("docs/python.md", "import gangsched"): "tests/test_python_examples.py::"
    "test_the_page_about_the_python_interface_prints_what_it_shows",
    ("docs/replay.md", "gangsched replay .*"): "tests/cli/test_replay.py::"
    "test_the_examples_of_the_page_run_as_they_are_written",
    ("docs/reasons.md", "gangsched explain default/training"): "tests/views/test_nodegroups.py::"
    "test_the_page_about_waiting_groups_shows_what_is_printed",
    ("docs/why-pending.md", "gangsched explain team/[a-z]+"): "tests/integration/test_why_pending.py::"
    "test_the_page_shows_what_is_told_of_each_kind",
    ("docs/workloads/[a-z]+.md", ".*"): WORKLOADS,
}
"""Patterns of page and first line, with the dedicated test that runs such a command."""

NOT_HERE = {
    r"docker (build|push) .*": "needs Docker, and push a registry; the workflow of a release does both",
    r"(kubeadm|mkdir|chown|cp|echo|kubectl -n kube-system get configmap kubeadm-config) .*": (
        "is for a node that kubeadm has made; tests/integration/test_manifests.py does what follows from it"
    ),
    r"kubectl .*\b(logs|port-forward|rollout status) .*": "needs a kubelet, which runs the operator's pod",
    r"helm test .*": "needs a kubelet, which runs its pod; tests/integration/test_helm.py runs what that pod runs",
    r"make (?!help$).*": "prepares .venv anew, and runs for minutes or until Ctrl-C; what it calls is tested",
}
"""Patterns of commands that no test runs, with the reason. As far as possible, a check ensures that they could run."""

_FENCED = re.compile(
    r"^(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<language>[\w-]*).*\n(?P<text>(?:.*\n)*?)(?P=indent)(?P=marks)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Command:
    """One command as written in a page, without its comment."""

    page: str
    line: int
    language: str
    text: str

    @property
    def head(self) -> str:
        """Its first line."""
        return self.text.partition("\n")[0]

    @property
    def why_not_here(self) -> str:
        """Why no test runs it; empty if one does."""
        return next((why for pattern, why in NOT_HERE.items() if re.fullmatch(pattern, self.text, re.DOTALL)), "")

    @property
    def run_by(self) -> str:
        """The dedicated test that runs it; empty if there is none."""
        return next((test for row, test in ELSEWHERE.items() if self.is_of(*row)), "")

    def is_of(self, page: str, head: str) -> bool:
        """Whether these patterns match its page and first line."""
        return bool(re.fullmatch(page, self.page) and re.fullmatch(head, self.head))


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    def commands(self) -> Iterator[Command]:
        """The commands for the reader: each command of a shell block, a whole program, elsewhere the text after `$`."""
        if self.language == "python":
            yield Command(self.page, self.line + 1, "python", self.text.strip())
            return
        prompts = re.search(r"^\$ ", self.text, re.MULTILINE) is not None
        if not prompts and self.language not in SHELL:
            return
        lines = self.text.splitlines()
        at = 0
        while at < len(lines):
            first, text = at, lines[at]
            at += 1
            if prompts and not text.startswith("$ "):
                continue
            ends = re.search(r"<<-?\s*['\"]?(\w+)", text)
            while at < len(lines) and (ends is not None or text.endswith("\\")):
                text, at = f"{text}\n{lines[at]}", at + 1
                if ends is not None and lines[at - 1].strip() == ends[1]:
                    break
            text = re.sub(r"(^|\s+)# .*$", "", text.removeprefix("$ ")).strip()
            if text:
                yield Command(self.page, self.line + 1 + first, "sh", text)


def pages() -> list[str]:
    """Every page and manifest that may have commands, as a path in the repository; the README is first."""
    found = ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
    for pattern in ("docs/**/*.md", "examples/**/*.md", "charts/**/*.md", "examples/**/*.yaml", "manifests/*.yaml"):
        found += sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(pattern))
    return found


def blocks(page: str, text: str | None = None) -> list[Block]:
    """The fenced blocks of a page, or of this text instead of its own; of a manifest, the one in its head."""
    text = (ROOT / page).read_text(encoding="utf-8") if text is None else text
    if page.endswith(".yaml"):
        head = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
        told = (re.fullmatch(r"#   (?!\w+: )(.*)", line) for line in head)
        return [Block(page, 0, "sh", "".join(f"{each[1] if each else ''}\n" for each in told))]
    return [
        Block(page, text.count("\n", 0, each.start()) + 1, each["language"], textwrap.dedent(each["text"]))
        for each in _FENCED.finditer(text)
    ]


def commands(page: str) -> list[Command]:
    """All commands of a page, in its order."""
    return [command for block in blocks(page) for command in block.commands()]


def inline(page: str) -> list[str]:
    """The texts between single backquotes in the sentences of a page."""
    sentences = _FENCED.sub("", (ROOT / page).read_text(encoding="utf-8"))
    return [" ".join(each.split()) for each in re.findall(r"(?<!`)`([^`]+)`(?!`)", sentences)]


ALL = [command for page in pages() for command in commands(page)]
