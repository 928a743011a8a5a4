"""`gangsched simulate` decides in the order of contract rule 6, however many groups the files have."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from gangsched.cli import main
from tests.cli.test_simulate import group, node, pod


def test_the_most_important_of_61_groups_is_bound_though_it_is_the_last_in_the_file(tmp_path: Path, capsys) -> None:
    """There is room for ten. Regression: the first 48 groups were bound or refused before the others were read."""
    names = [f"g{at:02}" for at in range(61)]
    objects = [node(cpu="10"), *(pod(f"{name}-0", name) for name in names)]
    objects += [group(name, priority=1000 if name == names[-1] else 0) for name in names]
    file = tmp_path / "groups.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    (tmp_path / "empty.yaml").touch()
    assert main(["simulate", "--json", "--config", str(tmp_path / "empty.yaml"), str(file)]) == 0
    bound = [each["name"] for each in json.loads(capsys.readouterr().out)["groups"] if each["bound"]]
    assert sorted(bound) == [*names[:9], "g60"]
