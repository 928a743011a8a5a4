"""Every command of a page is run by a test, or is in a table with the reason why none runs it."""

from __future__ import annotations

import re
from argparse import _SubParsersAction
from collections import Counter
from importlib.util import find_spec

from gangsched.cli import make_parser
from testbed.controllers.expected import EXPECTED
from tests.documented_commands import (
    ALL,
    ELSEWHERE,
    NO_COMMANDS,
    NOT_HERE,
    ROOT,
    SHELL,
    WORKLOADS,
    blocks,
    inline,
    pages,
)
from tests.test_docs import missing_tests
from tests.workloads.pages import blocks as played

PROGRAMS = ("make", "kubectl", "helm", "gangsched", "docker", "python", "pip", "curl", "git", "export", "sudo")


def test_no_command_has_a_token_among_its_arguments() -> None:
    """Every user of a machine can see the arguments of all running programs."""
    secret = re.compile(r"Bearer +\$\(|--token[= ]+\$\(|Bearer +[A-Za-z0-9._-]{20,}")
    assert secret.search('curl --header "Authorization: Bearer $(kubectl create token reader)"')
    assert not [f"{each.page}: {each.text}" for each in ALL if secret.search(each.text)]


def test_there_are_commands_in_the_readme_and_in_docs() -> None:
    """Otherwise the checks below would pass on an empty set."""
    assert Counter(command.page.partition("/")[0] for command in ALL)["docs"] > 50
    assert sum(command.page == "README.md" for command in ALL) > 5


def test_no_block_hides_a_command_behind_another_language() -> None:
    odd = [
        f"{block.page}:{block.line}: {block.language}"
        for page in pages()
        for block in blocks(page)
        if block.language not in (*SHELL, *NO_COMMANDS, "python", "")
        or (block.language == "" and block.text.startswith(tuple(f"{program} " for program in PROGRAMS)))
    ]
    assert odd == []


def test_every_row_of_the_tables_is_about_a_command_that_is_still_there() -> None:
    assert {row for row in ELSEWHERE if not any(each.is_of(*row) for each in ALL)} == set()
    assert {row for row in NOT_HERE if not any(re.fullmatch(row, each.text, re.DOTALL) for each in ALL)} == set()


def test_the_tests_exist_that_run_commands() -> None:
    assert missing_tests(ELSEWHERE.values()) == []


def test_every_command_of_the_pages_about_workloads_is_in_a_section_that_is_played() -> None:
    of_pages = Counter(command.text for command in ALL if command.run_by == WORKLOADS)
    sections = {(row.file, row.section(column)): (row, column) for row in EXPECTED.values() for column in row.columns()}
    of_plays = Counter(text for section in sections.values() for text in played(*section)[1])
    assert of_pages == of_plays


def test_commands_in_sentences_name_targets_modules_files_sub_commands_and_flags_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    parsers = next(action.choices for action in make_parser()._actions if isinstance(action, _SubParsersAction))  # noqa: SLF001
    found, wrong = 0, []
    for page in pages():
        for text in inline(page):
            program, *words = text.split()
            match program, words:
                case "make", [target, *_]:
                    known = target in targets
                case ".venv/bin/python" | "python" | "python3", ["-m", module, *_]:
                    known = find_spec(module) is not None
                case "pytest", [file, *_]:
                    known = (ROOT / file).is_file()
                case "gangsched" | ".venv/bin/gangsched", [name, *rest] if "…" not in text:
                    flags = {each for each in rest if each.startswith("-")}
                    known = name in parsers and flags <= set(parsers[name]._option_string_actions)  # noqa: SLF001
                case _:
                    continue
            found += 1
            wrong += [] if known else [f"{page}: {text}"]
    assert wrong == []
    assert found > 50
