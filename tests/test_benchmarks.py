"""Every benchmark runs in a small size and gives its rows. Nothing here depends on how fast it is."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent / "benchmarks"
NAMES = {
    "startup": ["inferplan --help", "inferplan solve opening.yaml"],
    "bridge": ["transfer of 600 columns", "build and transfer of 600 columns"],
    "card_count": ["4 kinds x 40 cards"],
    "proofs": ["proof for 8 cards"],
    "sweeps": ["sweep of 8 variants"],
}


@pytest.fixture(autouse=True)
def siblings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks import one another by name, as scripts of one folder do."""
    monkeypatch.syspath_prepend(FOLDER)


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_gives_its_rows(name: str) -> None:
    rows = list(import_module(name).rows(small=True))
    assert [row.name for row in rows] == NAMES[name]
    for row in rows:
        assert row.measured and row.result and row.target
        assert "OTHER OPTIMUM" not in row.measured and "NOT PROVEN" not in row.measured


def test_all_benchmarks_are_run_and_no_module_is_forgotten() -> None:
    named = set(import_module("run").BENCHMARKS)
    assert named == NAMES.keys()
    assert {path.stem for path in FOLDER.glob("*.py")} == named | {"run", "measure"}


def test_the_script_prints_a_table() -> None:
    command = [sys.executable, str(FOLDER / "run.py"), "--small", "proofs"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert all(word in shown for word in ("benchmark", "measured", "target", "met", "proof for 8 cards"))


def test_a_ratio_that_misses_its_target_says_so() -> None:
    measure = import_module("measure")
    assert measure.at_most("a", "b", 2.0, 2).met and not measure.at_most("a", "b", 2.01, 2).met
    assert measure.at_least("a", "b", 2.0, 2).met and not measure.at_least("a", "b", 1.99, 2).met
    assert not measure.at_least("a", "b", 3.0, 2, holds=False).met
