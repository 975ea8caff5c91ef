"""The search behind a proof: boxes of counts, a relaxation in each, exact prices at the leaves.

HiGHS only suggests; every bound is evaluated in rational arithmetic by `verify`. A box is closed when its
bound cannot beat what the proof is to exclude; otherwise it is split at a count that is not whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from ..models.network import LOAD, ZERO
from ..models.program import Program
from . import exact
from .highs import Floats, Session, Status
from .verify import Box, Judge, Node, Prices

Goal = Callable[[Fraction, int], bool]  # (bound of a box, nodes so far): may the box be closed?
Offer = Callable[[dict[str, int]], object]  # whole counts to try

_WHOLE = 1e-6
_NEAR = 1 - Fraction(1, 10**9)  # a bound this near to the goal is worth exact prices


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A priced box: its bound, where to split it (None: its counts are whole), its relaxation's counts."""

    bound: Fraction
    prices: Prices
    split: tuple[int, int] | None
    counts: Floats


@dataclass
class Search:
    """A tree of boxes while it grows, and when to give up."""

    program: Program
    session: Session
    judge: Judge
    nodes: list[Node] = field(default_factory=list)
    bound: Fraction = ZERO  # the largest bound of a leaf
    closed: bool = True  # every leaf satisfies the goal

    def __post_init__(self) -> None:
        activities = list(self.program.network.activities)
        self.load = activities.index(LOAD)
        self.counts = range(len(activities), len(activities) + len(self.judge.pools))
        self.tiny = self.program.rate_scale / 10**12  # so that a bound of nearly nothing is near to nothing
        tallies = [pool.tally for pool in self.program.network.pools.values()]
        self.weights = np.where(tallies, 1e6, 1.0)  # where to split first

    def run(
        self,
        goal: Goal,
        offer: Offer,
        *,
        most_boxes: int = 20_000,
        spent: Callable[[], bool] = lambda: False,
        tick: Callable[[Fraction], None] = lambda bound: None,
        leeway: Fraction = Fraction(1),
    ) -> Search:
        """Grow the tree until every leaf's bound meets the goal, or a limit is reached.

        goal(bound, boxes so far): the leaf needs no further split. offer(counts): whole counts that a
        relaxation found, for the caller to try; it may make the goal easier to meet. Boxes whose relaxation
        is whole but does not meet the goal are split down to points, unless the bound times `leeway` does.
        """
        self.session.aim({self.load: 1.0}, maximise=True)
        self.nodes = [Node()]
        stack: list[tuple[int, Box]] = [(0, self.judge.root)]
        root, found = ZERO, False
        while stack:
            number, box = stack.pop()
            cut = self.judge.tighten(box)
            if cut is None:
                continue  # empty: the leaf stays without prices
            late = len(self.nodes) > 2 * most_boxes or spent()
            leaf = self._price(cut, goal, offer)
            split: tuple[int, int] | None
            if leaf is None:  # the relaxation has no point: split until stocks show it
                if cut.is_point:
                    continue
                split = self._widest(cut)
            else:
                root = leaf.bound if number == 0 else root
                tick(root)
                split, whole = leaf.split, leaf.split is None
                found = found or whole
                done = self._meets(goal, leaf.bound) or (whole and self._meets(goal, leaf.bound * leeway))
                if whole and not done and not cut.is_point:
                    split = self._widest(cut)
                if late and not done and not found:  # better a rounded plan than none
                    offer(self._rounded(leaf.counts))
                    found = True
                if done or late or split is None:
                    self.nodes[number] = Node(prices=leaf.prices)
                    self.bound = max(self.bound, leaf.bound)
                    self.closed = self.closed and (done or (cut.is_point and not late))
                    continue
            pool, at = split
            below, above = cut.split(pool, at)
            first = len(self.nodes)
            self.nodes[number] = Node(self.judge.pools[pool], at, first, first + 1)
            self.nodes += [Node(), Node()]
            stack += [(first, below), (first + 1, above)]
        return self

    def _meets(self, goal: Goal, bound: Fraction) -> bool:
        return goal(bound, len(self.nodes))

    def _price(self, box: Box, goal: Goal, offer: Offer) -> _Leaf | None:
        """Solve a box's relaxation; None where it has no point."""
        self.session.bound(self.counts, box.low, box.high)
        outcome = self.session.run(whole=False)
        if outcome.status is not Status.OPTIMAL or outcome.values is None or outcome.prices is None:
            return None
        prices = float_prices(self.program, outcome.prices)
        bound = self.judge.bound(box, prices)
        counts = outcome.values[self.counts.start :]
        whole = np.rint(counts)
        away = np.abs(counts - whole)
        split = None
        if away.size and away.max() > _WHOLE:
            i = int(np.argmax(away * np.where(away > _WHOLE, self.weights, 0.0)))
            split = (i, int(np.floor(counts[i])))
        elif not self._meets(goal, bound):
            offer(self._named(whole))
        if not self._meets(goal, bound) and self._meets(goal, bound * _NEAR - self.tiny):
            if split is None:  # trying the counts moved the session away from this box
                self.session.aim({self.load: 1.0}, maximise=True)
                self.session.bound(self.counts, box.low, box.high)
                self.session.run(whole=False)
            better = exact_prices(self.program, self.session)
            sharper = bound if better is None else self.judge.bound(box, better)
            if better is not None and sharper < bound:
                bound, prices = sharper, better
        return _Leaf(bound, prices, split, counts)

    def _rounded(self, counts: Floats) -> dict[str, int]:
        """Counts rounded down, then up again by largest remainder as long as the stocks allow."""
        down = np.floor(counts + _WHOLE).astype(int)
        tally = [pool.tally for pool in self.program.network.pools.values()]
        low = [0 if sums else n for n, sums in zip(down.tolist(), tally, strict=True)]
        for i in np.argsort(down - counts, kind="stable").tolist():
            if counts[i] - down[i] > _WHOLE and not tally[i]:
                low[i] += 1
                if self.judge.tighten(Box(tuple(low), self.judge.root.high)) is None:
                    low[i] -= 1
        high = [most if sums else n for n, most, sums in zip(low, self.judge.root.high, tally, strict=True)]
        box = self.judge.tighten(Box(tuple(low), tuple(high)))
        return {} if box is None else {p: n for p, n in zip(self.judge.pools, box.low, strict=True) if n}

    def _named(self, counts: Floats) -> dict[str, int]:
        return {p: int(n) for p, n in zip(self.judge.pools, counts.tolist(), strict=True) if n}

    def _widest(self, box: Box) -> tuple[int, int]:
        """The pool with the most counts left, cut in half."""
        i = max(range(len(box.low)), key=lambda j: box.high[j] - box.low[j])
        return i, (box.low[i] + box.high[i]) // 2


def float_prices(program: Program, row_prices: Floats) -> Prices:
    """HiGHS's prices of scaled rows as exact prices of the network; a float is the dyadic number it is."""
    values, scale = row_prices.tolist(), program.rate_scale
    first, second = len(program.states), len(program.states) + len(program.resources)
    states = {str(s): Fraction(v) for s, v in zip(program.states, values[:first], strict=True) if v}
    resources = {
        r: Fraction(v) * program.price_scale[r]
        for r, v in zip(program.resources, values[first:second], strict=True)
        if v > 0
    }
    stocks = {k: Fraction(v) * scale for k, v in zip(program.stocks, values[second:], strict=True) if v > 0}
    return Prices(resources, stocks, states)


def exact_prices(program: Program, session: Session) -> Prices | None:
    """The prices of HiGHS's last basis, solved for exactly; None where that is not possible."""
    columns_basic, rows_basic = session.basis()
    names: list[tuple[str, str]] = [("state", str(s)) for s in program.states]
    names += [("resource", r) for r in program.resources] + [("stock", k) for k in program.stocks]
    unknown = {name: i for i, name in enumerate(names) if not rows_basic[i]}
    equations: list[exact.Row] = []
    right: list[Fraction] = []
    for basic, (cost, column) in zip(columns_basic, program.columns, strict=True):
        if basic:
            equations.append({unknown[row]: amount for row, amount in column.items() if row in unknown})
            right.append(cost)
    found = exact.solve(equations, right)
    if found is None:
        return None
    prices: dict[str, dict[str, Fraction]] = {"state": {}, "resource": {}, "stock": {}}
    for (kind, name), i in unknown.items():
        price = found.get(i, ZERO)
        if price and (kind == "state" or price > 0):
            prices[kind][name] = price
    return Prices(prices["resource"], prices["stock"], prices["state"])


def exact_rates(
    program: Program, session: Session, counts: Mapping[str, int], fixed: Mapping[str, Fraction]
) -> dict[str, Fraction] | None:
    """The activity rates of HiGHS's last basis under fixed counts, solved for exactly; None if impossible.

    fixed: activities that the relaxation held at a value.
    """
    columns_basic, rows_basic = session.basis()
    net = program.network
    right: dict[tuple[str, str], Fraction] = {("state", str(s)): ZERO for s in program.states}
    right |= {("resource", r): net.resources[r].fixed or ZERO for r in program.resources}
    right |= {("stock", k): Fraction(net.stocks[k].have or 0) for k in program.stocks}
    rows = [name for name, basic in zip(right, rows_basic, strict=True) if not basic]
    equations: dict[tuple[str, str], exact.Row] = {name: {} for name in rows}
    labels = [*net.activities, *net.pools]
    for j, (basic, (_, column)) in enumerate(zip(columns_basic, program.columns, strict=True)):
        for row, amount in column.items():
            if row not in equations:
                continue
            if basic:
                equations[row][j] = amount
            elif j < len(net.activities):
                activity = net.activities[labels[j]]
                right[row] -= amount * fixed.get(activity.name, activity.floor)
            else:
                right[row] -= amount * counts.get(labels[j], 0)
    found = exact.solve([equations[name] for name in rows], [right[name] for name in rows])
    if found is None:
        return None
    return {
        name: found[j] if columns_basic[j] else fixed.get(name, activity.floor)
        for j, (name, activity) in enumerate(net.activities.items())
    }
