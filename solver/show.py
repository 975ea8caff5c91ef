"""A plan as a person likes to read it on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from ..models.forms import FORMS
from ..models.plan import Plan
from .sweep import Row

MOST_LINES = 8  # of a kind; --json has all of them


def show_plan(plan: Plan, console: Console) -> None:
    """Print a plan: the answer, the pools, the goals, the alternatives, the worth, the proof."""
    say = _Say(console)
    say(_headline(plan), style="bold")
    about = plan.instance.resolved.get("about")
    if about:
        say(str(about), style="dim")
    if plan.status == "infeasible":
        say(_infeasible(plan))
    if not plan.rate:
        _refusals(plan, say)
    if plan.pools:
        _pools(plan, console)
        _routes(plan, console)
    _links(plan, say)
    _idle(plan, say)
    if plan.bottlenecks:
        say(f"Binds: {', '.join(plan.bottlenecks)}.{_network(plan)}")
    if plan.rate:
        _drain(plan, say)
    _shortfall(plan, say)
    if plan.alternatives:
        _alternatives(plan, console)
    if plan.worth:
        _worth(plan, console)
    if plan.rate:
        _refusals(plan, say)
    for line in plan.assumptions:
        if "guess" in line or "bound" in line or "kept within" in line:
            say(f"Note: {line}.")
    _ties(plan, say)
    say(_proof(plan))


class _Say:
    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, text: str, style: str | None = None) -> None:
        self._console.print(text, style=style, markup=False, highlight=False)


def _headline(plan: Plan) -> str:
    name = plan.instance.name
    if plan.status == "infeasible":
        return f"{name}: no plan reaches what is asked"
    proven = "proven best"
    if plan.status != "optimal":
        proven = f"stopped early, at most {plan.certificate.proven_gap:.3%} from the best"
    times = f"{plan.copies} copies of " if plan.copies > 1 else ""
    money = f", cost {plan.cost}" if plan.cost is not None else ""
    counts = f"{times}{plan.summary or 'nothing'}"
    what = f"{counts}, {plan.rate:.6f} requests/s on {plan.cards} cards{money} ({proven})"
    bought = ", ".join(f"{n} {k}" for k, n in plan.bought.items())
    return f"{name}: {what}" + (f"; buys {bought}" if bought else "")


def _infeasible(plan: Plan) -> str:
    if not plan.rate:
        pinned = " under the pinned counts of `fix`" if plan.instance.resolved.get("fix") else ""
        return f"Nothing can serve the load{pinned}{':' if plan.refusals else '.'}"
    why, best = plan.asked.why or "", _rate(plan.rate)
    of = "of the declared cards" if plan.asked.case.unit is None else "of all that may be bought"
    return f"Needed: {_rate(plan.required_rate)} {why}; the best plan {of} reaches {best}."


def _refusals(plan: Plan, say: _Say) -> None:
    for refusal in plan.refusals[:MOST_LINES]:
        say(f"Left out: {refusal.what}: {refusal.reason}.")
    if len(plan.refusals) > MOST_LINES:
        say(f"Left out: {len(plan.refusals) - MOST_LINES} more; --json lists all.")


def _idle(plan: Plan, say: _Say) -> None:
    word = "Not taken" if plan.asked.case.floor == "drawn" else "Idle"
    if plan.idle and plan.rate:
        say(f"{word}: {', '.join(f'{i.cards} {i.card} at {i.server}' for i in plan.idle)}.")


def _routes(plan: Plan, console: Console) -> None:
    """Who goes where, once that is not plain from the pools."""
    if len({route.of for route in plan.routes}) < 2 and len(plan.routes) < 3:
        return
    table = _table("class", ">requests/s", "route")
    for route in plan.routes[: 2 * MOST_LINES]:
        table.add_row(route.of, f"{route.rate:.6f}", "  ".join(route.via))
    if len(plan.routes) > 2 * MOST_LINES:
        table.add_row("...", "", f"{len(plan.routes) - 2 * MOST_LINES} more; --json lists all")
    console.print(table)


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}/s"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", title_justify="left")
    for column in columns:
        table.add_column(
            column.lstrip(">"), justify="right" if column.startswith(">") else "left", no_wrap=True
        )
    return table


def _pools(plan: Plan, console: Console) -> None:
    table = _table("server", "card", "role", ">cards", ">batch", ">serves/s", ">could/s", ">load")
    for p in plan.pools:
        table.add_row(
            p.server,
            p.card,
            p.role,
            str(p.cards),
            "-" if p.batch is None else str(p.batch),
            f"{p.rate:.6f}",
            f"{p.capacity:.6f}",
            f"{p.utilization:.1%}",
        )
    console.print(table)


def _links(plan: Plan, say: _Say) -> None:
    one_channel = isinstance(plan.instance.resolved.get("handover"), dict)
    for link in plan.links:
        if link.bytes_per_s:
            carried, most = link.bytes_per_s / 1e9, link.capacity_bytes_per_s / 1e9
            load = f"{carried:.2f} of {most:.4g} GB/s ({link.utilization:.1%})"
            where = f"Link {link.name}, {link.source} to {link.target}"
            say(f"{f'Channel {link.name}, all hand-overs' if one_channel else where}: {load}.")


def _network(plan: Plan) -> str:
    if plan.network is None:
        return ""
    if plan.network.binds:
        return f" The network limits: with unlimited links {_rate(plan.network.rate_with_unlimited_links)}."
    return " The network does not: unlimited links would change nothing."


def _drain(plan: Plan, say: _Say) -> None:
    drain = plan.drain
    if drain is None:
        return
    waiting = f"{drain.backlog_requests:g} requests wait when the launch ends at {drain.startup_s:g} s"
    if drain.cleared_at_s is None:
        say(f"Backlog: {waiting}; it never drains: {_rate(plan.rate)} is not more than arrives.")
        return
    limit = ""
    if drain.deadline_s is not None:
        limit = f", {'within' if drain.meets_deadline else 'after'} the deadline of {drain.deadline_s:g} s"
    say(f"Backlog: {waiting}; gone at {drain.cleared_at_s:.3f} s{limit}.")


def _shortfall(plan: Plan, say: _Say) -> None:
    if plan.best_rate is None:
        return
    if plan.status != "infeasible":
        why = plan.asked.why or ""
        say(f"Goal missed: needs {_rate(plan.required_rate)} {why}, reaches {_rate(plan.rate)}.")
    near = plan.nearest
    if near is not None:
        parts = []
        if near.deadline_s is not None:
            parts.append(f"a deadline of {near.deadline_s:.2f} s")
        if near.startup_s is not None:
            parts.append(f"a launch of {near.startup_s:.3f} s")
        if near.arrival_rate is not None:
            parts.append(f"{'less than ' if plan.asked.strictly else ''}{near.arrival_rate:.3f} arrivals/s")
        if parts:
            say(f"Nearest that can be met: {', or '.join(parts)}.")
    for remedy in plan.remedies:
        if remedy.buy:
            what = " + ".join(f"{n} {k}" for k, n in remedy.buy.items())
            fewer = "" if remedy.proven else "; fewer may do"
            say(f"Would do alone: {what} more ({_rate(remedy.rate)}){fewer}.")
        elif remedy.link:
            say(f"Link {remedy.link}: {remedy.note} ({_rate(remedy.rate)}).")
        else:
            say(f"Would not do: {remedy.note}.")


def _alternatives(plan: Plan, console: Console) -> None:
    arrival = plan.instance.resolved["workload"].get("rate")
    priced = any(a.cost is not None for a in plan.alternatives)
    money = [">cost"] if priced else []
    traffic = f">GB/s at {_rate(float_of(arrival.removesuffix('/s'))) if arrival else 'full rate'}"
    heading = "side by side (one copy)" if plan.copies > 1 else "side by side"
    table = _table(
        heading,
        ">rate/s",
        ">bought" if plan.asked.case.unit else ">cards",
        *money,
        traffic,
        ">backlog gone",
        "verdict",
    )
    for a in plan.alternatives:
        gone = "-" if a.cleared_at_s is None else f"{a.cleared_at_s:.1f} s"
        title = " + ".join(FORMS[f].title for f in a.form.split("+"))
        bill = [str(a.cards)] + ([a.cost or "-"] if priced else [])
        known = f"{a.rate:.6f}" if a.verdict != "left out" else "-"
        table.add_row(title, known, *bill, f"{a.link_bytes_per_s / 1e9:.2f}", gone, a.verdict)
    console.print(table)


def _worth(plan: Plan, console: Console) -> None:
    table = _table("worth of", ">by", ">+1", ">+2", ">-1")
    for w in plan.worth:
        without = "-" if w.rate_loss_without is None else f"{0.0 - w.rate_loss_without:+.4f}"
        table.add_row(w.resource, w.by, f"{w.rate_gain:+.4f}", f"{w.rate_gain_2:+.4f}", without)
    console.print(table)


def _ties(plan: Plan, say: _Say) -> None:
    if plan.ties is None:
        return
    for other in plan.ties.others[:4]:
        counts = (f"{n} {k}" for k, n in sorted(other.items()) if not k.startswith(("draw@", "all ")))
        say(f"As good: {', '.join(counts)}.")
    if len(plan.ties.others) > 4:
        say(f"As good: {len(plan.ties.others) - 4} more; --json lists them.")
    if plan.ties.unique is None:
        say("Other optima: not searched to the end.")


def _proof(plan: Plan) -> str:
    c = plan.certificate
    checked = "checked in exact arithmetic" if c.verified else "NOT VERIFIED: please report this plan"
    boxes = f"{c.boxes} box{'' if c.boxes == 1 else 'es'}"
    unique = " and no other counts do as well" if plan.ties is not None and plan.ties.unique else ""
    bound = float_of(c.bound_exact)
    if c.budget is None:
        per = " per copy" if plan.copies > 1 else ""
        exact = f" = {c.bound_exact}" if "/" in c.bound_exact and len(c.bound_exact) <= 24 else ""
        return f"Proof: no plan exceeds {bound:.9g}{exact} requests/s{per}{unique} ({boxes}; {checked})."
    less = f"fewer than {bound:g} cards" + (" bought" if plan.asked.case.unit else "")
    if plan.asked.objective == "min-cost":
        less = f"less than {bound:.9g}{'/h' if plan.cost and plan.cost.endswith('/h') else ' of money'}"
    return f"Proof: with {less} no plan does{unique} ({boxes}; {checked})."


def float_of(exact: str) -> float:
    from .claims import read_exact

    return float(read_exact(exact))


def show_rows(rows: Iterable[Row], fields: Sequence[str], console: Console) -> None:
    """Print a sweep: the fields that vary, then what each variant gives."""
    table = _table(*fields, ">rate/s", ">gap", "status")
    table.add_column("counts", no_wrap=False)
    for row in rows:
        p = row.plan
        values = [row.fields[f] for f in fields]
        table.add_row(*values, f"{p.rate:.6f}", f"{p.certificate.proven_gap:.1e}", p.status, counts_of(p))
    console.print(table)


def counts_of(plan: Plan) -> str:
    """Counts of a plan in one cell."""
    return ", ".join(f"{p.cards} {p.card} {p.role}@{p.server}" for p in plan.pools) or "-"
