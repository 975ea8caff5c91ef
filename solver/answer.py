"""The two questions that users ask: the best of what is there, and the least that is enough."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.metadata import version

from ..models.case import Case, build
from ..models.documents import InputError
from ..models.instance import Instance
from ..models.network import Network
from ..models.plan import Asked, Certificate, Plan, SolverInfo, Status
from ..models.quantities import show_number
from ..models.suggest import did_you_mean
from . import questions
from .assemble import assemble, copies_bound, copies_needed, gap
from .budget import Kind, Smallest, smallest
from .check import misfits, refutations
from .claims import prices_out, show_exact, tree_out
from .explain import Explainer
from .optimize import SLACK, Limits, Optimum, Solver
from .requirement import Aim, Requirement, requirement
from .verify import Judge

QUESTION_BOXES = 400  # of one further question; what stays open is marked as not proven


def solve(instance: Instance, *, limits: Limits | None = None, explain: bool = True) -> Plan:
    """The best plan for an instance's own objective, with its proof.

    explain=False leaves out worth, alternatives, ties and remedies (much faster; used by sweeps).
    """
    limits = (limits or Limits()).begin()
    if instance.objective == "max-rate":
        return _highest(instance, limits, explain)
    unit = "offers" if instance.offers else None
    asked = Asked(objective=instance.objective, case=Case(floor="drawn", unit=unit))
    return _fewest(instance, asked, requirement(instance), limits, explain)


def min_cards(
    instance: Instance,
    *,
    unit: str = "card",
    aim: Aim = "all",
    deadline: Fraction | None = None,
    on_top: bool = False,
    at_most: int | None = None,
    limits: Limits | None = None,
    explain: bool = True,
) -> Plan:
    """The fewest cards that reach the goals, bought from nothing (or on top of the declared ones).

    unit: `card`, `server`, `copies` of the whole fleet, or the name of an offer.
    aim: `sustain`, `deadline`, or `all` goals of the instance.
    Raises InputError for an unknown unit or a goal whose fields are missing.
    """
    limits = (limits or Limits()).begin()
    offers = [offer.name for offer in instance.offers]
    if unit not in ("card", "server", "copies", *offers):
        known = ["card", "server", "copies", *offers]
        raise InputError(f"--unit {unit} is unknown{did_you_mean(unit, known)}; give {', '.join(known)}")
    if deadline is not None:
        goals = instance.goals.model_copy(update={"deadline": deadline})
        instance = instance.model_copy(update={"goals": goals})
    need = requirement(instance, aim)
    if unit == "copies":
        return _copies(instance, need, at_most, limits, explain)
    case = Case(floor="declared" if on_top else "empty", unit=unit, at_most=at_most)
    return _fewest(instance, Asked(objective="min-cards", case=case, unit=unit), need, limits, explain)


def _highest(instance: Instance, limits: Limits, explain: bool) -> Plan:
    clock = time.perf_counter()
    need = requirement(instance)
    asked = _asked(Asked(objective="max-rate", case=Case()), need, limits)
    network = build(instance)
    optimum = Solver(network, limits).highest_rate(why=explain)
    floor = instance.goals.min_rate
    enough = floor is None or optimum.point.rate >= floor
    return _plan(
        instance,
        asked,
        need,
        network,
        optimum,
        clock,
        limits,
        explain,
        status="limit"
        if not optimum.closed
        else "optimal"
        if enough and optimum.point.rate
        else "infeasible",
    )


def _fewest(
    instance: Instance, asked: Asked, need: Requirement | None, limits: Limits, explain: bool
) -> Plan:
    clock = time.perf_counter()
    if need is None:
        raise InputError(
            f"{asked.objective} needs a goal; give `workload.rate` or `goals.min_rate`, such as 3.5/s"
        )
    asked = _asked(asked, need, limits)
    kind: Kind = "cost" if asked.objective == "min-cost" else "cards"
    found = smallest(instance, asked.case, kind, need, limits)
    if isinstance(found, Smallest):
        optimum = Optimum(found.point, found.point.rate, found.tree, found.closed, found.binding)
        status: Status = "optimal" if found.closed else "limit"
        return _plan(
            instance, asked, need, found.network, optimum, clock, limits, explain, status=status, budget=found
        )
    short: Status = "limit" if need.met_by(found.best.bound) else "infeasible"
    return _plan(instance, asked, need, found.network, found.best, clock, limits, explain, status=short)


def _copies(
    instance: Instance, need: Requirement | None, at_most: int | None, limits: Limits, explain: bool
) -> Plan:
    """Whole fleets with their links, each planned alone: enough of the one best plan."""
    clock = time.perf_counter()
    if need is None:
        raise InputError("min-cards needs a goal; give `workload.rate` or `goals.min_rate`, such as 3.5/s")
    asked = _asked(Asked(objective="min-cards", case=Case(at_most=at_most), unit="copies"), need, limits)
    network = build(instance)
    optimum = Solver(network, limits).highest_rate()
    n = copies_needed(optimum.point.rate, need)
    reachable = n is not None and n <= (at_most or n)
    return _plan(
        instance,
        asked,
        need,
        network,
        optimum,
        clock,
        limits,
        explain,
        status="limit" if not optimum.closed else "optimal" if n and reachable else "infeasible",
        copies=n if n and reachable else 1,
    )


@cache
def _highs_version() -> str:
    return version("highspy")


def _asked(asked: Asked, need: Requirement | None, limits: Limits) -> Asked:
    asked = asked.model_copy(update={"gap": max(limits.gap, SLACK)})
    return (
        asked
        if need is None
        else asked.model_copy(
            update={"required_rate": show_number(need.rate), "strictly": need.strictly, "why": need.why}
        )
    )


def _plan(
    instance: Instance,
    asked: Asked,
    need: Requirement | None,
    network: Network,
    optimum: Optimum,
    clock: float,
    limits: Limits,
    explain: bool,
    *,
    status: Status,
    budget: Smallest | None = None,
    copies: int = 1,
) -> Plan:
    """Put the answer and everything that explains it together, and check it before it is shown."""
    further = replace(limits, until=None, boxes=min(limits.boxes, QUESTION_BOXES), progress=None)
    explainer = Explainer(instance, need, further)
    if explain:
        for question in questions.questions(instance, asked, optimum.point.rate * copies, need):
            if limits.spent:  # no time for all of them: rather none than some that look like the best
                explain, explainer = False, Explainer(instance, need, further)
                break
            explainer.ask(question, optimum.point, budget.units if budget else None)
    value, bound = optimum.point.rate, optimum.bound
    if budget is not None:
        value, bound = budget.units * budget.unit, budget.bound * budget.unit
    kind = "cost" if asked.objective == "min-cost" else "cards"
    certificate = Certificate(
        verified=False,
        boxes=sum(node.pool is None for node in optimum.tree),
        counts=dict(optimum.point.counts),
        tree=tree_out(optimum.tree),
        binding=prices_out(optimum.binding) if optimum.point.rate else {},
        proven_gap=float(gap(value, bound)),
        rate_exact=show_number(optimum.point.rate),
        bound_exact=show_exact(bound),
        budget=None if budget is None else {kind: budget.bound - 1},
        claims=tuple(explainer.claims),
    )
    plan = assemble(
        instance,
        asked,
        need,
        network,
        optimum.point,
        copies_bound(instance, asked, optimum.bound, need, bound),
        status,
        certificate,
        explainer.answers,
        SolverInfo(name="HiGHS", version=_highs_version(), seconds=0.0),
        ties_closed=explainer.ties_closed,
        explained=explain,
        copies=copies,
        budget=None if budget is None else (budget.units, budget.unit),
    )
    verified = not (
        refutations(plan)
        if explain
        else misfits(
            optimum.judge or Judge(network), optimum.point, None if budget else optimum.bound, optimum.tree
        )
    )
    return plan.model_copy(
        update={
            "certificate": certificate.model_copy(update={"verified": verified}),
            "solver": plan.solver.model_copy(update={"seconds": round(time.perf_counter() - clock, 4)}),
        }
    )
