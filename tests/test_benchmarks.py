"""Every benchmark runs, in a small size. Nothing is timed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent / "benchmarks" / "run.py"


@pytest.mark.parametrize("name", ["startup", "bridge", "card_count", "proofs", "sweeps"])
def test_a_benchmark_prints_its_rows(name: str) -> None:
    ran = subprocess.run([sys.executable, RUN, "--small", name], capture_output=True, text=True, check=True)
    assert "target" in ran.stdout and ("yes" in ran.stdout or "no" in ran.stdout)
