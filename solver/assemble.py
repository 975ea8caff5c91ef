"""From proven numbers to a plan. Pure, so that `check` can put the same plan together and compare."""

from __future__ import annotations

from fractions import Fraction

from ..models.instance import Instance
from ..models.network import Network
from ..models.plan import Asked, Certificate, LoadRate, Named, ObjectiveValue, Plan, SolverInfo, Status
from ..models.quantities import Price
from . import describe, questions
from .claims import prices_in
from .questions import Answers
from .requirement import Requirement
from .routes import Point


def gap(value: Fraction, bound: Fraction) -> Fraction:
    """Relative distance between a value and its bound."""
    return abs(bound - value) / value if value else Fraction(bound != value)


def assemble(
    instance: Instance,
    asked: Asked,
    need: Requirement | None,
    network: Network,
    point: Point,
    bound: Fraction,
    status: Status,
    certificate: Certificate,
    answers: Answers,
    solver: SolverInfo,
    *,
    ties_closed: bool,
    explained: bool,
    copies: int,
    budget: tuple[int, Fraction] | None,
) -> Plan:
    """A plan from a proven point.

    bound: of the objective, in its own unit (requests/s, cards or money).
    budget: units spent and the unit, where the objective is a budget.
    """
    rate = point.rate * copies
    reached = need is None or need.met_by(rate)
    unanswered = budget is None and asked.objective != "max-rate" and asked.unit != "copies"
    if status == "infeasible" or unanswered:
        objective = None
    else:
        value = rate if asked.objective == "max-rate" else Fraction(0)
        if budget is not None:
            value = budget[0] * budget[1]
        elif asked.unit == "copies":
            value = Fraction(copies * sum(s.cards for s in instance.sites.values()))
        objective = ObjectiveValue(
            name=asked.objective, value=float(value), bound=float(bound), gap=float(gap(value, bound))
        )
    used_cards = sum(p.replica.cards * point.counts.get(n, 0) for n, p in network.pools.items() if p.replica)
    if asked.unit == "copies":
        used_cards = copies * sum(s.cards for s in instance.sites.values())
    elif budget is not None:
        used_cards = questions.billed_cards(network, point)
        if asked.case.floor == "declared":
            used_cards += sum(server.cards for server in instance.sites.values())
    cost = budget[0] * budget[1] if budget is not None and asked.objective == "min-cost" else None
    shown = explained and rate > 0
    return Plan(
        instance=Named(name=instance.name, sha256=instance.sha256, resolved=instance.resolved),
        asked=asked,
        status=status,
        objective=objective,
        rate=float(rate),
        required_rate=None if need is None else float(need.rate),
        best_rate=None if reached else float(rate),
        loads=(LoadRate(name="load", rate=float(rate)),),
        cards=used_cards,
        copies=copies,
        bought=questions.bought(point),
        cost=None if cost is None else str(Price(cost, instance.hourly)),
        pools=describe.pool_uses(instance, network, point.counts, point.routes),
        routes=describe.route_uses(point.routes),
        idle=describe.idle_cards(instance, asked.case, network, point.counts),
        refusals=describe.refused(network),
        ties=questions.ties(answers, ties_closed) if shown else None,
        links=describe.link_uses(instance, network, point.routes),
        bottlenecks=describe.bottlenecks(network, point.counts, point.rate, prices_in(certificate.binding)),
        network=questions.network_limit(point.rate, answers) if shown else None,
        drain=describe.drain_of(instance, rate),
        alternatives=questions.alternatives(instance, asked, answers) if explained else (),
        worth=questions.worth(instance, point.rate, answers) if shown else (),
        nearest=questions.nearest(instance, rate, need),
        remedies=questions.remedies(instance, need, answers) if explained and not reached else (),
        assumptions=describe.assumptions(instance, asked.case),
        certificate=certificate,
        solver=solver,
    )


def copies_needed(rate: Fraction, need: Requirement) -> int | None:
    """How many times a rate meets a need; None where it is 0."""
    if not rate:
        return None
    return need.rate // rate + 1 if need.strictly else -(-need.rate // rate)


def copies_bound(
    instance: Instance, asked: Asked, rate_bound: Fraction, need: Requirement | None, bound: Fraction
) -> Fraction:
    """The bound of the objective: for copies, the cards that even the bound of one fleet's rate needs."""
    if asked.unit != "copies" or need is None:
        return bound
    return Fraction((copies_needed(rate_bound, need) or 0) * sum(s.cards for s in instance.sites.values()))


def status_of(
    asked: Asked,
    need: Requirement | None,
    rate: Fraction,
    copies: int,
    bound: Fraction,
    spent: Fraction | None,
    stated: Status,
) -> Status:
    """The status that follows from a point and its bound.

    spent: cards or money of a budget; None for rates and for questions that no budget answers.
    """
    tolerance = Fraction(asked.gap)
    if spent is not None:
        return "optimal" if gap(spent, bound) <= tolerance else "limit"
    closed = bound <= rate * (1 + tolerance)
    if asked.objective == "max-rate":
        low = (
            need is not None
            and not need.met_by(rate)
            and asked.case.floor == "declared"
            and stated == "infeasible"
        )
        return "limit" if not closed else "infeasible" if not rate or low else "optimal"
    if asked.unit == "copies" and need is not None and rate:
        enough = need.met_by(rate * copies)
        return "limit" if not closed else "optimal" if enough else "infeasible"
    return "limit" if need is not None and need.met_by(bound) else "infeasible"
