"""How benchmarks measure, and the row that each prints."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Run = Callable[[], object]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was measured, the ratio or size that counts, and what it should be."""

    name: str
    measured: str
    result: str
    target: str
    met: bool


def fastest(runs: Sequence[Run], repeats: int, clock: Clock = time.process_time) -> list[float]:
    """The least seconds of each run. They take turns, each after a collection of garbage.

    Processor time by default, which other jobs on the machine disturb least.
    """
    best = [float("inf")] * len(runs)
    for _ in range(repeats):
        for i, run in enumerate(runs):
            gc.collect()
            begin = clock()
            run()
            best[i] = min(best[i], clock() - begin)
    return best


def ms(seconds: float) -> str:
    """Milliseconds to three digits."""
    thousand = 1000 * seconds
    return f"{thousand:.0f} ms" if thousand >= 100 else f"{thousand:.3g} ms"


def at_most(name: str, measured: str, ratio: float, limit: float, holds: bool = True) -> Row:
    """A row whose ratio should not exceed a limit. `holds`: what else must be true."""
    return Row(name, measured, f"{ratio:.2f}x", f"at most {limit:g}x", ratio <= limit and holds)


def at_least(name: str, measured: str, ratio: float, limit: float, holds: bool = True) -> Row:
    """A row whose ratio should reach a limit."""
    return Row(name, measured, f"{ratio:.2f}x", f"at least {limit:g}x", ratio >= limit and holds)
