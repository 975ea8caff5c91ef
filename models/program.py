"""The mixed-integer program of a network, in Pyomo. It never changes; forms and cases change the network.

    maximise    x[load]
    balance     sum_a moves[a,s] x[a] = 0                                  for every state
    capacity    sum_a uses[a,r] x[a] - sum_p gives[p,r] n[p] <= fixed[r]   for every limited resource
    stock       sum_p takes[p,k] n[p] <= stock[k]                          for every limited stock

Floats exist only from here to the solver. Rates are scaled by one power of two and each capacity row by
another, so that coefficients lie near 1 whatever the units and the speed of the cards; no digit is lost.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import median_low

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from .network import LOAD, Network, State

Terms = dict[str, float]
Row = tuple[str, str]


@dataclass(frozen=True)
class Program:
    """A Pyomo model and what its rows and columns mean, in their order.

    Columns: one rate per activity (in units of `rate_scale` requests/s), then one count per pool.
    Rows: one balance per state, one capacity per limited resource (times its `row_scale`), one per stock.
    """

    network: Network
    model: pyo.ConcreteModel
    states: tuple[State, ...]
    resources: tuple[str, ...]
    stocks: tuple[str, ...]
    rate_scale: Fraction
    row_scale: dict[str, Fraction]

    @cached_property
    def price_scale(self) -> dict[str, Fraction]:
        """What a price of a scaled capacity row is to be multiplied by."""
        return {name: self.rate_scale * scale for name, scale in self.row_scale.items()}

    @cached_property
    def columns(self) -> list[tuple[Fraction, dict[Row, Fraction]]]:
        """Objective and exact coefficients of every column, unscaled; rows are named (kind, name)."""
        found = []
        for activity in self.network.activities.values():
            column: dict[Row, Fraction] = {("state", str(s)): c for s, c in activity.moves.items()}
            column |= {("resource", r): c for r, c in activity.uses.items()}
            found.append((Fraction(activity.name == LOAD), column))
        for pool in self.network.pools.values():
            column = {("stock", k): Fraction(c) for k, c in pool.takes.items()}
            column |= {("resource", r): -c for r, c in pool.gives.items()}
            found.append((Fraction(0), column))
        return found


def build(network: Network) -> Program:
    """Network -> Pyomo."""
    touched = {name for a in network.activities.values() for name in a.uses}
    touched |= {name for p in network.pools.values() for name in p.gives}
    resources = tuple(r.name for r in network.resources.values() if r.fixed is not None and r.name in touched)
    wanted = {name for pool in network.pools.values() for name in pool.takes}
    stocks = tuple(s.name for s in network.stocks.values() if s.have is not None and s.name in wanted)
    scale = _rate_scale(network)
    moved: dict[State, Terms] = defaultdict(dict)
    used: dict[str, dict[str, Fraction]] = defaultdict(dict)
    given: dict[str, dict[str, Fraction]] = defaultdict(dict)
    taken: dict[str, dict[str, int]] = defaultdict(dict)
    for activity in network.activities.values():
        for state, amount in activity.moves.items():
            moved[state][activity.name] = float(amount)
        for resource, amount in activity.uses.items():
            used[resource][activity.name] = amount * scale
    for pool in network.pools.values():
        for resource, amount in pool.gives.items():
            given[resource][pool.name] = amount
        for stock, units in pool.takes.items():
            taken[stock][pool.name] = units
    rows = {name: 1 / _power_of_two(max(used[name].values(), default=Fraction(1))) for name in resources}

    model = pyo.ConcreteModel("deployment")
    with PauseGC():
        model.x = pyo.Var(list(network.activities))
        for name, activity in network.activities.items():
            model.x[name].setlb(float(activity.floor / scale))
        model.n = pyo.Var(list(network.pools), domain=pyo.Integers)
        for name, pool in network.pools.items():
            model.n[name].setlb(0)
            model.n[name].setub(network.most(pool))
        x, n = model.x, model.n

        model.balance = pyo.Constraint(pyo.Any)
        for state in network.states:
            model.balance[str(state)] = pyo.quicksum(c * x[a] for a, c in moved[state].items()) == 0
        model.capacity = pyo.Constraint(pyo.Any)
        for name in resources:
            left = pyo.quicksum(float(c * rows[name]) * x[a] for a, c in used[name].items())
            right = pyo.quicksum(float(c * rows[name]) * n[p] for p, c in given[name].items())
            fixed = network.resources[name].fixed or 0
            model.capacity[name] = left - right <= float(fixed * rows[name])
        model.stock = pyo.Constraint(pyo.Any)
        for name in stocks:
            have = network.stocks[name].have
            model.stock[name] = pyo.quicksum(c * n[p] for p, c in taken[name].items()) <= have
        model.rate = pyo.Objective(expr=x[LOAD], sense=pyo.maximize)
    return Program(network, model, network.states, resources, stocks, scale, rows)


def _rate_scale(network: Network) -> Fraction:
    """Requests/s near what one card serves."""
    seconds = [
        amount
        for activity in network.activities.values()
        for name, amount in activity.uses.items()
        if network.resources[name].unit == "card-seconds/s"
    ]
    return 1 / _power_of_two(median_low(seconds)) if seconds else Fraction(1)


def _power_of_two(number: Fraction) -> Fraction:
    return Fraction(2) ** round(math.log2(number)) if number > 0 else Fraction(1)
