"""A transport program from Pyomo to HiGHS: this package's bridge beside Pyomo's own solver class.

Building is compared as this package does it (`quicksum` inside `PauseGC`) with an ordinary model (rules with
`sum`). The garbage collector rests during both transfers, and during both builds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import isclose
from random import Random

import pyomo.environ as pyo
from inferplan.solver.highs import Session
from measure import Row, at_least, fastest, ms
from pyomo.common.gc_manager import PauseGC
from pyomo.contrib.solver.solvers.highs import Highs

Costs = dict[tuple[int, int], float]


def draw(sources: int, sinks: int) -> Costs:
    """Costs of one unit from each source to each sink."""
    random = Random(0)
    return {(i, j): random.uniform(1, 9) for i in range(sources) for j in range(sinks)}


def as_here(costs: Costs, sources: int, sinks: int) -> pyo.ConcreteModel:
    """The program in the style of models/program.py."""
    model = pyo.ConcreteModel()
    with PauseGC():
        model.x = pyo.Var(list(costs), bounds=(0, None))
        x = model.x
        model.supply = pyo.Constraint(pyo.Any)
        for i in range(sources):
            model.supply[i] = pyo.quicksum(x[i, j] for j in range(sinks)) <= sinks
        model.demand = pyo.Constraint(pyo.Any)
        for j in range(sinks):
            model.demand[j] = pyo.quicksum(x[i, j] for i in range(sources)) >= sources
        model.cost = pyo.Objective(expr=pyo.quicksum(c * x[way] for way, c in costs.items()))
    return model


def ordinary(costs: Costs, sources: int, sinks: int) -> pyo.ConcreteModel:
    """The same program as Pyomo's examples would write it."""
    model = pyo.ConcreteModel()
    with PauseGC():
        model.I, model.J = pyo.RangeSet(0, sources - 1), pyo.RangeSet(0, sinks - 1)
        model.x = pyo.Var(model.I, model.J, domain=pyo.NonNegativeReals)

        @model.Constraint(model.I)
        def supply(m: pyo.ConcreteModel, i: int) -> object:
            return sum(m.x[i, j] for j in m.J) <= sinks

        @model.Constraint(model.J)
        def demand(m: pyo.ConcreteModel, j: int) -> object:
            return sum(m.x[i, j] for i in m.I) >= sources

        model.cost = pyo.Objective(expr=sum(costs[way] * model.x[way] for way in costs))
    return model


class TimedHighs(Highs):  # type: ignore[misc]
    """Pyomo's class, which says how long its transfer took."""

    transfer = 0.0

    def set_instance(self, model: pyo.ConcreteModel) -> None:
        begin = time.process_time()
        super().set_instance(model)
        self.transfer = time.process_time() - begin


def by_pyomo(model: pyo.ConcreteModel) -> tuple[float, float]:
    """Seconds of Pyomo's transfer, and the optimum."""
    solver = TimedHighs()
    with PauseGC():
        results = solver.solve(model, threads=1, load_solutions=False)  # a process has one number of threads
    return solver.transfer, float(results.incumbent_objective)


def rows(small: bool) -> Iterator[Row]:
    sources, sinks, repeats = (20, 30, 1) if small else (250, 400, 7)
    costs = draw(sources, sinks)
    build, usual = fastest(
        [lambda: as_here(costs, sources, sinks), lambda: ordinary(costs, sources, sinks)], repeats
    )
    mine, theirs = as_here(costs, sources, sinks), ordinary(costs, sources, sinks)
    sessions: list[Session] = []
    found: list[tuple[float, float]] = []

    def hand_over() -> None:
        with PauseGC():
            sessions[:] = [Session(mine)]

    ours = float("inf")
    for _ in range(repeats):  # in turns
        ours = min(ours, *fastest([hand_over], 1))
        found.append(by_pyomo(theirs))
    pyomos = min(seconds for seconds, _ in found)
    (solve,) = fastest([lambda: sessions[0].run(whole=False)], 1)
    same = isclose(sessions[0].run(whole=False).objective, found[0][1], rel_tol=1e-9)
    optima = "same optimum" if same else "OTHER OPTIMUM"
    size = f"{len(costs):,} columns"
    yield at_least(
        f"transfer of {size}",
        f"{ms(ours)}; Pyomo's class {ms(pyomos)}; then solved in {ms(solve)}, {optima}",
        pyomos / ours,
        2,
        same,
    )
    yield at_least(
        f"build and transfer of {size}",
        f"{ms(build)} + {ms(ours)}; ordinary Pyomo {ms(usual)} + {ms(pyomos)}",
        (usual + pyomos) / (build + ours),
        1.5,
        same,
    )
