"""Measured comparisons in one table: `make bench`, or `python tests/benchmarks/run.py [NAME...]`.

Both sides of a ratio are measured in the same run, in turns. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import platform
import sys
from importlib import import_module
from importlib.metadata import version

from rich.console import Console
from rich.table import Table

BENCHMARKS = ("startup", "bridge", "card_count", "proofs", "sweeps")


def main() -> None:
    parser = argparse.ArgumentParser(description="Run benchmarks and print one table.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that everything runs")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(BENCHMARKS):
        parser.error(f"no benchmark is named {', '.join(sorted(unknown))}")
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyomo", "highspy"))
    table = Table(title=f"Python {platform.python_version()}, {packages}", title_justify="left")
    for heading in ("benchmark", "measured", "result", "target", "met"):
        table.add_column(heading)
    notes = Console(stderr=True)
    for name in asked.names or BENCHMARKS:
        if notes.is_terminal:
            notes.print(f"{name} ...", style="dim")
        for row in import_module(name).rows(asked.small):
            table.add_row(row.name, row.measured, row.result, row.target, "yes" if row.met else "no")
    Console(width=None if sys.stdout.isatty() else 150, highlight=False).print(table)


if __name__ == "__main__":
    main()
