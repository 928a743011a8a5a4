from __future__ import annotations

import re
import subprocess
import sys

import pytest
import yaml

from gangsched import app
from gangsched.cli import COMMANDS, main, make_parser
from gangsched.config.settings import Settings


@pytest.fixture
def started(monkeypatch):
    """The arguments of the operator's start, which is replaced."""
    calls: list[dict] = []

    async def run(settings: Settings, **options: object) -> int:
        calls.append({"settings": settings, **options})
        return 0

    monkeypatch.setattr(app, "run", run)
    return calls


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ([], "COMMAND"),
            (["fly"], "invalid choice: 'fly'"),
            (["run", "--unknown"], "--unknown"),
            (["run", "--log-format", "xml"], "--log-format"),
            (["run", "--log-level", "loud"], "--log-level"),
            (["run", "--kubeconfig"], "--kubeconfig"),
            (["crd", "surplus"], "usage: gangsched crd [-h]\ngangsched crd: error: unrecognized arguments: surplus"),
            (["explain", "default", "training"], "gangsched explain: error: unrecognized arguments: training"),
            (["list", "--everything"], "[-n NS | -A]"),
            (["dashboard", "--port", "http"], "'http' is not a port: write a number from 0 to 65535"),
            (["dashboard", "--port", "65536"], "'65536' is not a port: write a number from 0 to 65535"),
        ],
    )
    def test_wrong_usage_ends_with_2_and_says_what_is_wrong(self, arguments, said, capsys):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        assert said in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--listen", "8080"], "listen"),
            (["--listen", ":99999"], "listen"),
            (["--scheduler-name", ""], "schedulerNames"),
            (["--scheduler-name", "a", "--scheduler-name", "a"], "schedulerNames"),
            (["--config", "/nowhere/config.yaml"], "/nowhere/config.yaml"),
        ],
    )
    def test_an_option_that_cannot_be_used_ends_with_2_and_names_it(self, arguments, said, capsys, started):
        assert main(["run", *arguments]) == 2
        error = capsys.readouterr().err
        assert error.startswith("gangsched run: error: ")
        assert said in error
        assert started == []

    def test_an_unknown_key_of_the_config_ends_with_2_and_names_it(self, tmp_path, capsys, started):
        config = tmp_path / "config.yaml"
        config.write_text("schedulerName: typo\n")
        assert main(["run", "--config", str(config)]) == 2
        assert "schedulerName is not a known key" in capsys.readouterr().err
        assert started == []

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_has_a_line_in_the_help(self, name):
        assert re.search(rf"^    {name}\s", make_parser().format_help(), re.MULTILINE)


@pytest.mark.usefixtures("_logging_untouched")
class TestRun:
    @pytest.fixture
    def _logging_untouched(self, monkeypatch):
        monkeypatch.setattr("gangsched.runtime.logs.configure", lambda *_, **__: None)

    def test_options_win_over_the_config(self, tmp_path, started):
        config = tmp_path / "config.yaml"
        config.write_text("listen: ':1'\nnamespace: from-config\nlogFormat: json\n")
        assert main(["run", "--config", str(config), "--listen", "127.0.0.1:0"]) == 0
        (call,) = started
        assert call["settings"].listen == "127.0.0.1:0"
        assert call["settings"].namespace == "from-config"
        assert call["settings"].log_format == "json"

    def test_every_option_reaches_the_operator(self, started):
        arguments = "run --kubeconfig F --context C --scheduler-name a --scheduler-name b --namespace ns --dry-run"
        logs = ["--log-format", "json", "--log-level", "debug"]
        assert main([*arguments.split(), "--no-leader-elect", *logs]) == 0
        (call,) = started
        settings = call.pop("settings")
        assert settings.scheduler_names == ("a", "b")
        assert settings.namespace == "ns"
        assert (settings.log_format, settings.log_level) == ("json", "debug")
        assert call == {"kubeconfig": "F", "context": "C", "dry_run": True, "leader_elect": False}

    def test_without_options_it_runs_with_the_defaults(self, started):
        assert main(["run"]) == 0
        assert started == [
            {"settings": Settings(), "kubeconfig": None, "context": None, "dry_run": False, "leader_elect": True}
        ]

    def test_its_exit_status_is_the_operators(self, monkeypatch):
        async def run(*_: object, **__: object) -> int:
            return 1

        monkeypatch.setattr(app, "run", run)
        assert main(["run"]) == 1


@pytest.mark.slow
def test_credentials_that_are_not_there_end_with_2_and_a_line_that_says_where_they_were_looked_for(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "gangsched", "run", "--kubeconfig", str(tmp_path / "none"), "--listen", "127.0.0.1:0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert str(tmp_path / "none") in line


def test_crd_prints_the_definition_as_yaml(capsys):
    assert main(["crd"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["metadata"]["name"] == "podgroups.gangsched.io"


@pytest.mark.parametrize("asked", ["version", "--version"])
def test_version_prints_name_and_version(asked, capsys):
    with pytest.raises(SystemExit) as ended:
        sys.exit(main([asked]))
    assert ended.value.code == 0
    name, version = capsys.readouterr().out.split()
    assert name == "gangsched"
    assert version[0].isdigit()


@pytest.mark.slow
def test_version_loads_none_of_what_the_operator_needs():
    loaded = loaded_by("from gangsched.cli import main; main(['version'])")
    assert not loaded & {"kopf", "aiohttp", "numpy", "pydantic", "uvloop", "kubernetes_asyncio"}


@pytest.mark.slow
def test_what_shows_groups_as_their_statuses_say_loads_nothing_that_decides():
    """A quarter of the time of `gangsched list` went into importing what decides, one constant here and one there."""
    loaded = loaded_by("from gangsched.cli import deciding_settings, group_reader, leaders, list, visible_groups")
    assert not loaded & {"numpy", "gangsched.core.machine", "gangsched.core.gang.gang", "gangsched.core.cluster.cache"}


def loaded_by(code: str) -> set[str]:
    """The modules that a process has loaded which did this."""
    told = f"import sys; {code}; print(*sys.modules, sep='\\n')"
    return {*subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout.split()}
