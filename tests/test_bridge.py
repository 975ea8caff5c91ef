"""Our bridge from Pyomo to HiGHS against Pyomo's own, and what a session promises."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import inferplan
import pyomo.environ as pyo
import pytest
from inferplan.models import program
from inferplan.models.case import build
from inferplan.solver.highs import Session, Status
from inferplan.solver.optimize import Solver

OPENING = Path(__file__).parent.parent / "instances" / "opening.yaml"


def random_model(seed: int, whole: bool) -> pyo.ConcreteModel:
    """Bounded and feasible: rows of every kind, constants in bodies, fixed bounds, an inactive row, min or max."""
    draw = random.Random(seed)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(6), bounds=(0, draw.randint(3, 9)), domain=pyo.Integers if whole else pyo.Reals)
    model.x[5].setlb(2)
    model.x[5].setub(2)
    model.x[4].setlb(-draw.randint(0, 3))
    model.free = pyo.Var(["up", "down"])
    model.switch = pyo.Var(domain=pyo.Binary if whole else pyo.UnitInterval)
    model.rows = pyo.ConstraintList()
    for _ in range(5):
        terms = sum(draw.randint(0, 9) * model.x[i] for i in draw.sample(range(5), 3))
        model.rows.add(terms + model.x[5] + 3 <= draw.randint(9, 30) + 2 * model.switch)
    model.rows.add(model.x[0] - model.x[1] == 0)
    model.rows.add((-1, model.x[2] - model.x[3] + 1, 3))
    model.rows.add(model.free["up"] + 1 == model.x[2] + 0.5)
    model.rows.add(model.free["down"] - 2 >= -3 * model.x[3])
    model.rows.add(model.x[0] + model.x[2] <= -1)
    model.rows[len(model.rows)].deactivate()
    sense = pyo.maximize if draw.random() < 0.5 else pyo.minimize
    sign = 1 if sense == pyo.maximize else -1
    model.goal = pyo.Objective(
        expr=sum(sign * draw.randint(1, 9) * model.x[i] for i in range(6))
        + sign * (model.free["up"] - 2 * model.free["down"] - 3 * model.switch),
        sense=sense,
    )
    return model


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_same_optimum_as_pyomo_finds(seed: int, whole: bool) -> None:
    model = random_model(seed, whole)
    ours = Session(model).run(whole=whole)
    solver = pyo.SolverFactory("highs")
    solver.solve(model)
    assert ours.status is Status.OPTIMAL and ours.values is not None
    assert ours.objective == pytest.approx(pyo.value(model.goal), abs=1e-7)
    assert (ours.prices is None) == whole
    for variable, value in zip(model.component_data_objects(pyo.Var), ours.values.tolist(), strict=True):
        variable.set_value(value, skip_validation=True)
    assert pyo.value(model.goal) == pytest.approx(ours.objective, abs=1e-6)
    for row in model.component_data_objects(pyo.Constraint, active=True):
        assert row.slack() >= -1e-6


def test_prices_have_the_sign_of_what_more_is_worth() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, None))
    model.row = pyo.Constraint(expr=2 * model.x <= 6)
    model.goal = pyo.Objective(expr=5 * model.x, sense=pyo.maximize)
    outcome = Session(model).run(whole=False)
    assert outcome.prices is not None and outcome.prices.tolist() == [2.5]


@pytest.mark.parametrize("seed", range(12))
def test_a_used_session_is_as_good_as_a_new_one(seed: int) -> None:
    """Bounds, costs and senses may change between runs, and whole and relaxed runs may alternate."""
    draw = random.Random(seed)
    model = random_model(seed, True)
    used = Session(model)
    for _ in range(8):
        low = [draw.randint(0, 2) for _ in range(4)]
        high = [n + draw.randint(0, 3) for n in low]
        costs = {i: float(draw.randint(0, 5)) for i in draw.sample(range(6), 3)}
        maximise, whole = draw.random() < 0.5, draw.random() < 0.5
        found = []
        for session in (used, Session(model)):
            session.bound(range(4), low, high)
            session.aim(costs, maximise=maximise)
            found.append(session.run(whole=whole))
        assert found[0].status is found[1].status
        if found[0].status is Status.OPTIMAL:
            assert found[0].objective == pytest.approx(found[1].objective, abs=1e-7)


def test_statuses() -> None:
    def model(row: Any, sense: Any) -> pyo.ConcreteModel:
        it = pyo.ConcreteModel()
        it.x = pyo.Var(bounds=(0, None))
        it.row = pyo.Constraint(expr=row(it.x))
        it.goal = pyo.Objective(expr=it.x, sense=sense)
        return it

    assert Session(model(lambda x: x <= -1, pyo.maximize)).run(whole=False).status is Status.INFEASIBLE
    assert Session(model(lambda x: x <= -1, pyo.minimize)).run(whole=True).values is None
    assert Session(model(lambda x: x >= 1, pyo.maximize)).run(whole=False).status is Status.UNBOUNDED
    assert Session(model(lambda x: x >= 1, pyo.minimize)).run(whole=True).objective == 1


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    session = Session(random_model(1, True))
    assert capfd.readouterr() == ("", "")
    session.run(whole=True, watch=lambda best, bound: False)
    session.run(whole=False)
    assert capfd.readouterr() == ("", "")


def test_the_same_input_gives_the_same_answer() -> None:
    network = build(inferplan.load(OPENING, {"forms": "[colocated, chunked, disaggregated]"}))
    first, second = Solver(network).highest_rate(), Solver(network).highest_rate()
    assert first.point == second.point and first.tree == second.tree  # the tree holds the prices
    assert list(first.point.counts) == list(second.point.counts)
    assert first.binding == second.binding


def test_another_user_of_highs_in_the_same_process() -> None:
    """HiGHS keeps one number of threads per process; a stranger with the default must not stop us."""
    code = (
        "import highspy, inferplan, sys\n"
        "h = highspy.Highs(); x = h.addVariable(0, 4); h.maximize(x)\n"
        "print(round(inferplan.solve(inferplan.load(sys.argv[1])).rate, 6))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(OPENING)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0 and ran.stdout.split()[-1] == "4.554607", ran.stderr


def test_watching_can_stop_a_search() -> None:
    calls = []

    def watch(best: float, bound: float) -> bool:
        calls.append((best, bound))
        return True

    network = build(inferplan.load(OPENING))
    outcome = Session(program.build(network).model).run(whole=True, watch=watch)
    assert outcome.status in (Status.LIMIT, Status.OPTIMAL)
