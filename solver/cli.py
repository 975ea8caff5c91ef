"""The command line. Only typer is imported at the top; each command imports what it needs.

Exit status: 0 solved and proven; 1 a plan failed its check; 2 bad input; 3 infeasible; 4 stopped early.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fractions import Fraction

    from rich.console import Console

    from ..models.plan import Plan
    from .optimize import Limits
    from .ticker import Ticker

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
    help="Plans, with a proof, which accelerator cards do what so that an LLM service holds its load.",
)

File = Annotated[Path, typer.Argument(help="instance file (YAML or JSON)", show_default=False)]
Set = Annotated[
    list[str], typer.Option("--set", help="set a field: PATH=VALUE, such as links.0.bandwidth='10 GB/s'")
]
Json = Annotated[bool, typer.Option("--json", help="print the plan as JSON and nothing else")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="write the plan as JSON to this file")]
TimeLimit = Annotated[str | None, typer.Option("--time-limit", help="stop after this time, such as 30s")]
Gap = Annotated[
    float, typer.Option("--gap", help="relative gap that is good enough, such as 0.001", min=0.0, max=1.0)
]
NONE: list[str] = []


@app.command()
def solve(
    file: File,
    set_: Set = NONE,
    json: Json = False,
    output: Output = None,
    time_limit: TimeLimit = None,
    gap: Gap = 0.0,
) -> None:
    """Find the best plan for an instance and prove it."""
    from .answer import solve as answer
    from .load import load

    instance = load(file, _changes(set_))
    _writable(output)
    with _Stop() as stop:
        plan = answer(instance, limits=stop.limits(time_limit, gap))
    _give(plan, json, output)


@app.command("min-cards")
def min_cards(
    file: File,
    set_: Set = NONE,
    json: Json = False,
    output: Output = None,
    time_limit: TimeLimit = None,
    gap: Gap = 0.0,
    unit: Annotated[
        str, typer.Option("--unit", help="what is bought: card, server, copies, or an offer's name")
    ] = "card",
    sustain: Annotated[bool, typer.Option("--sustain", help="only hold the arrival rate")] = False,
    deadline: Annotated[
        str | None, typer.Option("--deadline", help="clear the launch's backlog by then, such as 60s")
    ] = None,
    on_top: Annotated[bool, typer.Option("--on-top", help="keep the declared cards and buy more")] = False,
    at_most: Annotated[
        int | None, typer.Option("--at-most", help="at most so many units (of each card)", min=1)
    ] = None,
) -> None:
    """Find the fewest cards that reach the goals, bought from nothing."""
    from ..models.documents import InputError
    from .answer import min_cards as answer
    from .load import load

    if sustain and deadline:
        raise InputError("give either --sustain or --deadline")
    instance = load(file, _changes(set_))
    _writable(output)
    with _Stop() as stop:
        plan = answer(
            instance,
            unit=unit,
            aim="sustain" if sustain else "deadline" if deadline else "all",
            deadline=_seconds(deadline, "--deadline"),
            on_top=on_top,
            at_most=at_most,
            limits=stop.limits(time_limit, gap),
        )
    _give(plan, json, output)


@app.command()
def sweep(
    file: File,
    vary: Annotated[list[str], typer.Option("--vary", help="PATH=VALUE,VALUE,...; several make a grid")],
    set_: Set = NONE,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="print rows as CSV and nothing else")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="write the rows as JSON (or .csv) to this file")
    ] = None,
    time_limit: TimeLimit = None,
    gap: Gap = 0.0,
) -> None:
    """Plan a grid of variants: one short row each."""
    from ..models.documents import InputError, read_document
    from . import rows
    from .load import set_field
    from .sweep import sweep as answer

    if json and csv:
        raise InputError("give either --json or --csv")
    document = read_document(file)
    for field, value in _changes(set_).items():
        set_field(document, field, value)
    grid = {field: rows.split(values) for field, values in _changes(vary, "--vary").items()}
    _writable(output)
    with _Stop() as stop:
        found = list(answer(document, grid, limits=stop.limits(time_limit, gap)))
    if output is not None:
        _write(output, rows.as_csv(found) if output.suffix == ".csv" else rows.as_json(found))
    if json or csv:
        sys.stdout.write(rows.as_json(found) if json else rows.as_csv(found))
    else:
        from .show import show_rows

        show_rows(found, list(grid), _console())
    raise typer.Exit(max((_status(row.plan) for row in found), default=0))


@app.command()
def check(
    plan: Annotated[Path, typer.Argument(help="a plan as --output wrote it", show_default=False)],
    instance: Annotated[
        Path | None, typer.Argument(help="the instance that it should be about", show_default=False)
    ] = None,
) -> None:
    """Verify a saved plan and its proof in exact arithmetic, without a solver."""
    from .check import check as verify

    problems = verify(plan, instance)
    for problem in problems[:20]:
        typer.echo(f"refuted: {problem}", err=True)
    if len(problems) > 20:
        typer.echo(f"refuted: {len(problems) - 20} more", err=True)
    if problems:
        raise typer.Exit(1)
    typer.echo(f"{plan}: every number and the proof hold")


@app.command()
def schema() -> None:
    """Print the JSON Schema of an instance; editors complete YAML from it."""
    import json

    from ..models.instance import json_schema

    typer.echo(json.dumps(json_schema(), indent=1))


@app.command("catalog")
def catalog_() -> None:
    """List the cards and models that instances can name."""
    from .show_catalog import show_catalog

    show_catalog(_console())


def _console() -> Console:
    from rich.console import Console as Rich

    plain = not sys.stdout.isatty()
    return Rich(width=120 if plain else None, no_color=plain, highlight=False, markup=False)


def _changes(items: list[str], option: str = "--set") -> dict[str, str]:
    from ..models.documents import InputError

    found = {}
    for item in items:
        field, equals, value = item.partition("=")
        if not equals or not field.strip():
            raise InputError(f"{option} {item}: give PATH=VALUE, such as workload.rate=4/s")
        found[field.strip()] = value.strip()
    return found


def _seconds(text: str | None, option: str) -> Fraction | None:
    from ..models.documents import InputError
    from ..models.quantities import DURATION

    if text is None:
        return None
    try:
        return DURATION.read(text)
    except ValueError as error:
        raise InputError(f"{option} {text}: {error}") from None


class _Stop:
    """Lets Ctrl-C end a search with the best plan so far; a second Ctrl-C ends at once."""

    def __init__(self) -> None:
        self.asked = False
        self.ticker: Ticker | None = None

    def __enter__(self) -> _Stop:
        import signal

        self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *error: object) -> None:
        import signal

        signal.signal(signal.SIGINT, self._before)
        if self.ticker is not None:
            self.ticker.close()

    def _ask(self, *signal: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def limits(self, time_limit: str | None, gap: float) -> Limits:
        from .optimize import Limits
        from .ticker import Ticker

        seconds = _seconds(time_limit, "--time-limit")
        self.ticker = Ticker() if sys.stderr.isatty() else None
        return Limits(
            None if seconds is None else float(seconds), gap, progress=self.ticker, stop=lambda: self.asked
        )


def _writable(output: Path | None) -> None:
    """Refuse a place that cannot be written to before any work is done."""
    from ..models.documents import InputError

    if output is not None:
        if output.is_dir():
            raise InputError("is a folder; give a file", file=output)
        if not output.absolute().parent.is_dir():
            raise InputError(f"there is no folder {output.absolute().parent.name!r} to write to", file=output)


def _write(output: Path, text: str) -> None:
    """Write a file whole or not at all."""
    import os
    import tempfile

    from ..models.documents import InputError

    output = output.resolve() if output.is_symlink() else output
    try:
        if output.exists() and not output.is_file():  # a device or a pipe
            output.write_text(text, encoding="utf-8")
            return
        handle, name = tempfile.mkstemp(dir=output.absolute().parent, prefix=f".{output.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            mask = os.umask(0)
            os.umask(mask)
            Path(name).chmod(0o666 & ~mask)
            Path(name).replace(output)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=output) from None


def _give(plan: Plan, json: bool, output: Path | None) -> None:
    """Write and print a plan; leave with its status."""
    if output is not None:
        _write(output, plan.to_json())
    if json:
        sys.stdout.write(plan.to_json())
    else:
        from .show import show_plan

        show_plan(plan, _console())
    raise typer.Exit(_status(plan))


def _status(plan: Plan) -> int:
    if not plan.certificate.verified:
        return 1
    return {"optimal": 0, "infeasible": 3, "limit": 4}[plan.status]


def main() -> None:
    """The console script: faults of input in one line, never a traceback for them."""
    import signal

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that leaves ends us, as it does other tools
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("inferplan: stopped", err=True)
        raise SystemExit(4) from None
    except Exception as error:
        from ..models.documents import InputError

        if not isinstance(error, InputError):
            raise
        typer.echo(f"inferplan: {error}", err=True)
        raise SystemExit(2) from None
