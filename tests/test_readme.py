"""README shows what the tool does: its commands, its YAML and its Python are run here."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest
from inferplan.models.documents import parse_yaml
from inferplan.solver.load import validate

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = re.findall(r"```console\n\$ inferplan ([^\n]+)\n(.*?)```", README, re.S)


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", README, re.S)


def test_there_is_something_to_run() -> None:
    assert len(CONSOLE) == 2 and len(blocks("yaml")) == 1 and len(blocks("python")) == 1


@pytest.mark.parametrize(("command", "shown"), CONSOLE)
def test_commands_print_what_is_shown(command: str, shown: str) -> None:
    tool = Path(sys.executable).parent / "inferplan"
    ran = subprocess.run([tool, *command.split()], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line.rstrip() for line in ran.stdout.splitlines()] == shown.splitlines()


def test_the_instance_with_every_field_is_valid_and_solvable() -> None:
    import inferplan

    instance = validate(parse_yaml(blocks("yaml")[0]))
    plan = inferplan.solve(instance)
    assert plan.status == "optimal" and plan.certificate.verified and plan.rate > 2


def test_python_examples_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    test = doctest.DocTestParser().get_doctest(blocks("python")[0], {}, "README", "README.md", 0)
    assert doctest.DocTestRunner().run(test).failed == 0
