"""The bridge from Pyomo to HiGHS: one walk over the rows to arrays, then HiGHS driven directly.

`LinearRepnVisitor` is semi-public, hence the pinned Pyomo; a test compares this bridge with Pyomo's own.
One thread and a fixed seed: the same program gives the same answer, bit for bit.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.common.gc_manager import PauseGC
from pyomo.repn.linear import LinearRepnVisitor
from pyomo.repn.util import OrderedVarRecorder

Floats = NDArray[np.float64]


class Status(enum.Enum):
    """What HiGHS ended with, grouped by meaning."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    LIMIT = "limit"  # time or interrupt; values may hold the best point found


_STATUS = {
    highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
    highspy.HighsModelStatus.kModelEmpty: Status.OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: Status.UNBOUNDED,
    highspy.HighsModelStatus.kUnboundedOrInfeasible: Status.INFEASIBLE,
    highspy.HighsModelStatus.kTimeLimit: Status.LIMIT,
    highspy.HighsModelStatus.kInterrupt: Status.LIMIT,
    highspy.HighsModelStatus.kMemoryLimit: Status.LIMIT,
    highspy.HighsModelStatus.kIterationLimit: Status.LIMIT,
    highspy.HighsModelStatus.kSolutionLimit: Status.LIMIT,
}


SMALL = 2000  # columns


class SolverError(Exception):
    """HiGHS failed in a way that no input explains."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: its status, the point (None without one), prices of rows (relaxations only), the bound.

    prices: for a maximum, d objective / d upper side of the row, so >= 0 for `<=` rows.
    """

    status: Status
    objective: float
    values: Floats | None
    prices: Floats | None
    bound: float


@dataclass(frozen=True, slots=True)
class Arrays:
    """A linear program row by row, as HiGHS takes it."""

    cost: Floats
    lower: Floats
    upper: Floats
    integral: NDArray[np.bool_]
    row_lower: Floats
    row_upper: Floats
    starts: NDArray[np.int32]
    index: NDArray[np.int32]
    value: Floats
    maximise: bool


def arrays(model: pyo.ConcreteModel) -> Arrays:
    """Walk a Pyomo model's variables, active constraints and objective in order of declaration."""
    inf = highspy.kHighsInf
    with PauseGC():
        columns = list(model.component_data_objects(pyo.Var, descend_into=True))
        order = {id(v): j for j, v in enumerate(columns)}
        visitor = LinearRepnVisitor(
            {}, var_recorder=OrderedVarRecorder({id(v): v for v in columns}, order, None)
        )
        cost = np.zeros(len(columns))
        objective = next(model.component_data_objects(pyo.Objective, active=True, descend_into=True), None)
        if objective is not None:
            for key, amount in visitor.walk_expression(objective.expr).linear.items():
                cost[order[key]] = amount
        starts, index, value = [0], list[int](), list[float]()
        row_lower, row_upper = list[float](), list[float]()
        for row in model.component_data_objects(pyo.Constraint, active=True, descend_into=True):
            low, body, high = row.to_bounded_expression(evaluate_bounds=True)
            terms = visitor.walk_expression(body)
            if terms.nonlinear is not None:
                raise SolverError(f"the constraint {row.name} is not linear")
            index.extend([order[key] for key in terms.linear])
            value.extend(terms.linear.values())
            starts.append(len(index))
            row_lower.append(-inf if low is None else low - terms.constant)
            row_upper.append(inf if high is None else high - terms.constant)
        lower = np.array([-inf if v.lb is None else v.lb for v in columns], dtype=float)
        upper = np.array([inf if v.ub is None else v.ub for v in columns], dtype=float)
        integral = np.array([v.is_integer() for v in columns], dtype=bool)
    return Arrays(
        cost,
        lower,
        upper,
        integral,
        np.array(row_lower),
        np.array(row_upper),
        np.array(starts, dtype=np.int32),
        np.array(index, dtype=np.int32),
        np.array(value, dtype=float),
        objective is not None and objective.sense == pyo.maximize,
    )


class _Quiet(highspy.Highs):  # type: ignore[misc]
    """HiGHS without the banner that its constructor prints while it sets up callbacks."""

    def enableCallbacks(self) -> None:
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()


class Session:
    """A program inside HiGHS: bounds and costs may change between runs, the rows stay."""

    def __init__(self, model: pyo.ConcreteModel) -> None:
        self.arrays = a = arrays(model)
        self._highs = h = _Quiet()
        for option, setting in (
            ("threads", 1),
            ("random_seed", 0),
            ("mip_abs_gap", 0.0),
            ("mip_max_nodes", 2000),
            ("mip_max_stall_nodes", 500),
        ):
            h.setOptionValue(option, setting)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(a.cost), len(a.row_lower)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = a.cost, a.lower, a.upper
        lp.row_lower_, lp.row_upper_ = a.row_lower, a.row_upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = lp.num_col_, lp.num_row_
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = a.starts, a.index, a.value
        lp.sense_ = highspy.ObjSense.kMaximize if a.maximise else highspy.ObjSense.kMinimize
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[i] for i in a.integral.tolist()]
        if h.passModel(lp) == highspy.HighsStatus.kError:
            raise SolverError("HiGHS did not accept the program")

    @property
    def version(self) -> str:
        return str(self._highs.version())

    def aim(self, costs: Mapping[int, float], *, maximise: bool) -> None:
        """Replace the objective: costs by column, all others 0."""
        cost = np.zeros(len(self.arrays.cost))
        for column, amount in costs.items():
            cost[column] = amount
        columns = np.arange(len(cost), dtype=np.int32)
        self._highs.changeColsCost(len(cost), columns, cost)
        self._highs.changeObjectiveSense(
            highspy.ObjSense.kMaximize if maximise else highspy.ObjSense.kMinimize
        )

    def bound(self, columns: Sequence[int], lower: Sequence[float], upper: Sequence[float]) -> None:
        """Set the bounds of some columns."""
        self._highs.changeColsBounds(
            len(columns),
            np.array(columns, dtype=np.int32),
            np.array(lower, dtype=float),
            np.array(upper, dtype=float),
        )

    def run(
        self,
        *,
        whole: bool,
        time_limit: float | None = None,
        gap: float = 0.0,
        watch: Callable[[float, float], bool] | None = None,
    ) -> Outcome:
        """Solve; `whole` keeps counts whole, else the relaxation with its prices.

        watch(best, bound) is called now and then during a whole-number run; True stops it with the best
        point so far (status LIMIT). Raises SolverError.
        """
        h = self._highs
        h.setOptionValue("solve_relaxation", not whole)
        small = len(self.arrays.cost) <= SMALL  # presolving takes longer than solving
        h.setOptionValue("presolve", "off" if small and not whole else "choose")
        h.setOptionValue(
            "time_limit", highspy.kHighsInf if time_limit is None else h.getRunTime() + time_limit
        )
        h.setOptionValue("mip_rel_gap", gap)

        def look(event: Any) -> None:
            if watch is not None and watch(event.data_out.mip_primal_bound, event.data_out.mip_dual_bound):
                event.interrupt()

        if whole and watch is not None:
            h.cbMipInterrupt.subscribe(look)
        try:
            h.run()
            if h.getModelStatus() == highspy.HighsModelStatus.kNotset:
                # The number of threads belongs to the process: another user of HiGHS has set a different one.
                highspy.Highs.resetGlobalScheduler(True)
                h.run()
        finally:
            if whole and watch is not None:
                h.cbMipInterrupt.unsubscribe(look)
        code = h.getModelStatus()
        if code not in _STATUS:
            raise SolverError(f"HiGHS ended with {h.modelStatusToString(code)}")
        status, info, solution = _STATUS[code], h.getInfo(), h.getSolution()
        valid = info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)
        objective = h.getObjectiveValue()
        return Outcome(
            status,
            objective,
            np.array(solution.col_value) if valid and status in (Status.OPTIMAL, Status.LIMIT) else None,
            np.array(solution.row_dual) if not whole and status is Status.OPTIMAL else None,
            info.mip_dual_bound if whole else objective,
        )

    def basis(self) -> tuple[list[bool], list[bool]]:
        """Which columns and which rows are basic after a relaxation."""
        basis, basic = self._highs.getBasis(), highspy.HighsBasisStatus.kBasic
        return [s == basic for s in basis.col_status], [s == basic for s in basis.row_status]
