"""The fewest cards, or the least money, that reach a rate.

A budget is a stock, so the smallest one is proven like a rate: with one unit less, no plan gets there.
That settles strict goals too: where the best rate of a budget equals the arrival rate, it is not enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from ..models.case import Case, build
from ..models.documents import InputError
from ..models.instance import Instance
from ..models.network import BUDGET, Network
from .optimize import Limits, Optimum, Solver
from .requirement import Requirement
from .routes import Point
from .verify import Node, Prices

Kind = Literal["cards", "cost"]


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest budget that meets a requirement, and the proof that one unit less does not.

    units: of the budget stock; unit: cards or money of one; bound: no plan needs fewer units than this.
    """

    network: Network
    point: Point
    units: int
    unit: Fraction
    bound: int
    tree: Sequence[Node]
    closed: bool
    binding: Prices


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No budget meets the requirement; the most that can be reached, with its proof."""

    network: Network
    best: Optimum


def smallest(
    instance: Instance, case: Case, kind: Kind, need: Requirement, limits: Limits
) -> Smallest | Unreachable:
    """The smallest budget of a kind under which the case meets the requirement."""
    free = build(instance, case)
    if kind == "cost":
        _insist_on_prices(instance, free)
    free = free.with_budget(kind)
    guess = _guess(free, need, limits)
    if guess is None:
        best = Solver(free, limits).highest_rate(frugal=False)
        if not need.met_by(best.point.rate):
            return Unreachable(free, best)
        guess = _bill(free, best.point)
    while True:
        network = build(instance, case).with_budget(kind, guess)
        best = Solver(network, limits).highest_rate(frugal=False)
        if need.met_by(best.point.rate):
            break
        guess += 1
        if guess > _everything(free):
            return Unreachable(free, Solver(free, limits).highest_rate(frugal=False))
    while True:
        units = _bill(network, best.point)
        if units == 0:
            return Smallest(network, best.point, 0, network.budget_unit, 0, (), True, best.binding)
        below = build(instance, case).with_budget(kind, units - 1)
        solver = Solver(below, limits)
        if solver.possible:
            search = solver.prove(lambda bound, _: not need.met_by(bound))
            if need.met_by(solver.best.rate):
                network, best = below, solver.highest_rate(frugal=False)
                continue
            tree: Sequence[Node] = search.nodes
            closed = search.closed
        else:
            tree, closed = [Node()], True
        network = build(instance, case).with_budget(kind, units)
        solver = Solver(network, limits)
        best = solver.highest_rate(frugal=False)
        point, binding = best.point, best.binding
        if case.floor == "drawn":  # of two ways that cost the same, the one that buys less
            purchases = {name: p.cards for name, p in network.pools.items() if name.startswith("buy ")}
            point = solver.lean(solver.cheapest(point, purchases)) if purchases else point
            binding = solver.binding(point)
        bound = units
        if not closed:
            bound, tree = _proven_floor(instance, case, kind, need, limits, units)
        return Smallest(network, point, units, network.budget_unit, bound, tree, closed, binding)


def _insist_on_prices(instance: Instance, network: Network) -> None:
    """Raise InputError where something that may be paid for has no price."""
    for name, pool in network.pools.items():
        if pool.cost is None:
            what, _, place = name.partition("@")
            card = instance.sites[place].card if place in instance.sites else None
            owner = f"cards.{card}" if card else f"offer {what.removeprefix('buy ')}"
            raise InputError(f"min-cost needs a price: give `price` for {owner}, such as 2/h")


def _guess(network: Network, need: Requirement, limits: Limits) -> int | None:
    """HiGHS's smallest bill at the required rate; None where it finds no plan."""
    solver = Solver(network, limits)
    if not solver.possible:
        return None
    counts = solver.cheapest_counts(
        need.rate, {name: p.takes[BUDGET] for name, p in network.pools.items() if BUDGET in p.takes}
    )
    return (
        None if counts is None else sum(network.pools[p].takes.get(BUDGET, 0) * n for p, n in counts.items())
    )


def _bill(network: Network, point: Point) -> int:
    return sum(network.pools[p].takes.get(BUDGET, 0) * n for p, n in point.counts.items())


def _everything(network: Network) -> int:
    """The bill of all that could be bought."""
    return sum(p.takes.get(BUDGET, 0) * network.most(p) for p in network.pools.values())


def _proven_floor(
    instance: Instance, case: Case, kind: Kind, need: Requirement, limits: Limits, units: int
) -> tuple[int, Sequence[Node]]:
    """The largest number of units that one box proves necessary, by bisection, with its proof."""
    low, high = 0, units
    tree: Sequence[Node] = (Node(),)
    while low < high:
        middle = (low + high) // 2
        solver = Solver(build(instance, case).with_budget(kind, middle), limits)
        search = solver.prove(lambda bound, _: not need.met_by(bound), boxes=0) if solver.possible else None
        if search is None or search.closed:
            low, tree = middle + 1, search.nodes if search else (Node(),)
        else:
            high = middle
    return low, tree
