"""Whole processes: `--help` beside a bare interpreter, a solve beside the imports that it needs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from measure import Row, Run, at_most, fastest, ms

OPENING = Path(__file__).resolve().parents[2] / "instances" / "opening.yaml"
COMMAND = str(Path(sys.executable).parent / "inferplan")
IMPORTS = "import pyomo.environ, highspy, networkx, pydantic"


def process(*command: str) -> Run:
    """A run of a command from start to end, its output dropped."""
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def rows(small: bool) -> Iterator[Row]:
    repeats = 1 if small else 9
    asked = process(COMMAND, "--help"), process(sys.executable, "-c", "pass")
    shown, bare = fastest(asked, repeats, time.perf_counter)
    yield at_most("inferplan --help", f"{ms(shown)}; bare Python {ms(bare)}", shown / bare, 8)
    asked = process(COMMAND, "solve", str(OPENING)), process(sys.executable, "-c", IMPORTS)
    solved, imported = fastest(asked, repeats, time.perf_counter)
    yield at_most(
        "inferplan solve opening.yaml", f"{ms(solved)}; its imports {ms(imported)}", solved / imported, 2.5
    )
