"""From a network to its best plan: whole counts, exact rates, routes and a proof.

Stages: the highest rate; the fewest cards (or least money) at that rate; with counts fixed, the rate again,
exactly; then the fewest bytes over links. No stage gives away what an earlier one won.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from ..models import program as programs
from ..models.network import LOAD, ZERO, Network
from . import exact
from .highs import Session, Status
from .proof import Goal, Search, exact_prices, exact_rates, float_prices
from .routes import Point, Route, capacities, check_counts, peel, rate_of, used
from .verify import NO_PRICES, Judge, Node, Prices, Refuted

Progress = Callable[[float, float], None]  # (best, bound) of a rate in requests/s


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop: seconds for everything, relative gap that is good enough, boxes of one proof.

    stop: asked now and then; True ends the search with the best so far. until: set by `begin`.
    """

    seconds: float | None = None
    gap: float = 0.0
    boxes: int = 20_000
    progress: Progress | None = None
    stop: Callable[[], bool] | None = None
    until: float | None = None

    def begin(self) -> Limits:
        """The same limits with the clock running."""
        return self if self.seconds is None else replace(self, until=time.monotonic() + self.seconds)

    @property
    def spent(self) -> bool:
        late = self.until is not None and time.monotonic() > self.until
        return late or (self.stop is not None and self.stop())


@dataclass(frozen=True, slots=True)
class Optimum:
    """A plan with its proof. `bound`: the rate that no plan exceeds; `closed`: the proof is complete."""

    point: Point
    bound: Fraction
    tree: Sequence[Node]
    closed: bool
    binding: Prices = NO_PRICES  # that prove the point's rate the highest under its counts
    judge: Judge | None = None  # that evaluated the tree


NOTHING = Point({}, (), ZERO)
QUICK_BOXES = 40  # small programs close within this many, without HiGHS's own search
LEEWAY = 1 - Fraction(1, 10**9)  # for programs too large for exact prices
SLACK = 1e-6
MIP_GAP = 1e-7  # HiGHS's tolerances allow no finer one; the proof's search does the rest


@dataclass
class Solver:
    """One network inside HiGHS, with what is known about it so far."""

    network: Network
    limits: Limits = field(default_factory=Limits)
    best: Point = NOTHING

    def __post_init__(self) -> None:
        self.judge = Judge(self.network)
        self.program = programs.build(self.network)
        self.session = Session(self.program.model)
        self.activities = list(self.network.activities)
        self.pools = list(self.network.pools)
        self.load = self.activities.index(LOAD)
        rows = len(self.program.states) + len(self.program.resources) + len(self.program.stocks)
        self.finest = 0.0 if rows <= exact.LARGEST else 1e-9  # floats only, where exact prices take too long
        self.patience = min(4000, 40_000 // max(1, sum(self.judge.root.high)))
        self._tried: dict[tuple[int, ...], Point] = {}

    @property
    def possible(self) -> bool:
        """Whether any counts satisfy the stocks (pinned counts may not)."""
        return self.judge.tighten(self.judge.root) is not None

    def _watch(self, best: float, bound: float) -> bool:
        """Called while HiGHS runs: show progress, say whether to stop."""
        if self.limits.progress is not None:
            scale = float(self.program.rate_scale)
            self.limits.progress(best * scale, bound * scale)
        return self.limits.spent

    def left(self) -> float | None:
        """Seconds left of the limit."""
        return None if self.limits.until is None else max(0.0, self.limits.until - time.monotonic())

    def highest_rate(self, *, frugal: bool = True, why: bool = True) -> Optimum:
        """The highest rate, then (`frugal`) the fewest cards at that rate, with a proof.

        `why`: also the prices that show what binds.
        Small programs are settled by the proof's own search; larger ones let HiGHS find the counts first.
        """
        if not self.possible:
            return Optimum(NOTHING, ZERO, (Node(),), True)
        quick = self.patience >= QUICK_BOXES  # among many cards, good counts are not met by chance
        search = self.prove(self.cannot_win, boxes=QUICK_BOXES, leeway=LEEWAY) if quick else None
        if search is None or not search.closed:
            self._search_best()
            search = self.prove(self.cannot_win, leeway=LEEWAY)
        elif len(search.nodes) > 15:  # knowing the best from the start often takes fewer boxes
            again = self.prove(self.cannot_win, leeway=LEEWAY)
            search = again if again.closed and len(again.nodes) < len(search.nodes) else search
        point = self.best
        bills = {p.name: p.cards for p in self.network.pools.values() if p.cards}
        if frugal and bills:
            point = self.cheapest(point, bills)
        bound = max(search.bound, point.rate)
        binding = self.binding(point) if why else NO_PRICES
        return Optimum(self.lean(point), bound, search.nodes, search.closed, binding, self.judge)

    def cannot_win(self, bound: Fraction, nodes: int = 0) -> bool:
        """Whether a box with this bound holds nothing better than the best so far.

        After many boxes (the more, the fewer cards there are), what could gain less than a millionth is
        let go; the plan states the gap.
        """
        slack = max(self.limits.gap, SLACK if nodes > self.patience else self.finest)
        return bound <= self.best.rate * (1 + Fraction(slack))

    def prove(
        self,
        goal: Goal,
        *,
        leeway: Fraction = Fraction(1),
        boxes: int | None = None,
        offer: Callable[[dict[str, int]], object] | None = None,
    ) -> Search:
        """A tree of boxes whose bounds all meet the goal; better counts found on the way are kept."""
        self._free()
        return Search(self.program, self.session, self.judge).run(
            goal,
            offer or self.consider,
            most_boxes=self.limits.boxes if boxes is None else boxes,
            spent=lambda: self.limits.spent,
            tick=self._tick,
            leeway=leeway,
        )

    def _tick(self, bound: Fraction) -> None:
        if self.limits.progress is not None:
            self.limits.progress(float(self.best.rate), float(bound))

    def cheapest(self, point: Point, bills: Mapping[str, int]) -> Point:
        """The smallest bill at a rate not below the point's; the point itself where nothing is cheaper."""
        now = sum(bills.get(name, 0) * n for name, n in point.counts.items())
        counts = self.cheapest_counts(point.rate * (1 - Fraction(1, 10**9)), bills, below=now)
        if counts is None:
            return point
        other = self.at(counts)
        bill = sum(bills.get(name, 0) * n for name, n in other.counts.items())
        return other if other.rate >= point.rate and bill < now else point

    def cheapest_counts(
        self, rate: Fraction, bills: Mapping[str, int], below: int | None = None
    ) -> dict[str, int] | None:
        """HiGHS's counts with the smallest bill at a rate; None without a plan, or with none below `below`.

        The relaxation alone often shows that nothing is cheaper than what is known.
        """
        self._free()
        first = len(self.activities)
        self.session.bound([self.load], [float(rate / self.program.rate_scale)], [float("inf")])
        self.session.aim({first + self.pools.index(p): float(b) for p, b in bills.items()}, maximise=False)
        outcome = None
        least = self.session.run(whole=False)
        if below is None or least.status is not Status.OPTIMAL or least.objective <= below - 1 + 1e-6:
            outcome = self.session.run(whole=True, time_limit=self.left(), watch=self._watch)
        self.session.bound([self.load], [0.0], [float("inf")])
        return None if outcome is None or outcome.values is None else self._counts(outcome.values)

    def consider(self, counts: dict[str, int]) -> Point:
        """Keep counts that carry more than the best so far."""
        point = self.at(counts)
        if point.rate > self.best.rate:
            self.best = point
        return point

    def at(self, counts: Mapping[str, int]) -> Point:
        """The highest rate under fixed counts, exactly."""
        key = tuple(counts.get(p, 0) for p in self.pools)
        if key not in self._tried:
            self._tried[key] = self._at(dict(counts), None)
        return self._tried[key]

    def binding(self, point: Point) -> Prices:
        """Prices that prove the point's rate to be the highest under its counts: what binds has a price."""
        first, numbers = len(self.activities), [point.counts.get(p, 0) for p in self.pools]
        self.session.bound(range(first, first + len(numbers)), numbers, numbers)
        self.session.aim({self.load: 1.0}, maximise=True)
        outcome = self.session.run(whole=False)
        prices = exact_prices(self.program, self.session)
        if prices is None and outcome.prices is not None:
            prices = float_prices(self.program, outcome.prices)
        return prices or NO_PRICES

    def lean(self, point: Point) -> Point:
        """The same counts and rate with the fewest bytes over links."""
        links = [r.name for r in self.network.resources.values() if r.unit == "bytes/s"]
        if not point.rate or not any(used(point.routes).get(name) for name in links):
            return point
        other = self._at(dict(point.counts), point.rate)
        return other if other.rate >= point.rate else point

    def _at(self, counts: dict[str, int], rate: Fraction | None) -> Point:
        """Solve the flow under fixed counts: the highest rate, or the fewest bytes at a rate."""
        first, numbers = len(self.activities), [counts.get(p, 0) for p in self.pools]
        if not self._stocks_hold(counts):
            return NOTHING
        self.session.bound(range(first, first + len(numbers)), numbers, numbers)
        fixed: dict[str, Fraction] = {}
        if rate is None:
            self.session.aim({self.load: 1.0}, maximise=True)
        else:
            fixed = {LOAD: rate}
            held = float(rate / self.program.rate_scale)
            self.session.bound([self.load], [held], [held])
            self.session.aim(self._bytes(), maximise=False)
        outcome = self.session.run(whole=False)
        if rate is not None:
            self.session.bound([self.load], [0.0], [float("inf")])
        if outcome.values is None:
            return NOTHING
        counts = {p: n for p, n in counts.items() if n}
        rates = exact_rates(self.program, self.session, counts, fixed)
        if rates is not None:
            routes = peel(self.network, rates)
            try:
                return Point(counts, routes, rate_of(self.network, counts, routes))
            except Refuted:
                pass
        return self._scaled(counts, outcome.values.tolist())

    def _scaled(self, counts: Mapping[str, int], values: list[float]) -> Point:
        """Routes from floats, brought to their shares and scaled down until they fit exactly."""
        floats = {
            a: Fraction(v) * self.program.rate_scale
            for a, v in zip(self.activities, values, strict=False)
            if v > 0
        }
        load = floats.get(LOAD, ZERO)
        routes = [r for r in peel(self.network, floats) if r.rate > load / 10**12]
        carried: dict[str, Fraction] = {}
        for route in routes:
            carried[route.of] = carried.get(route.of, ZERO) + route.rate
        shares = {s.of: n for s, n in self.network.activities[LOAD].moves.items() if n > 0}
        if not load or shares.keys() - carried.keys():
            return NOTHING
        routes = [Route(r.of, r.steps, r.rate * shares[r.of] * load / carried[r.of]) for r in routes]
        have = capacities(self.network, counts)
        fit = min(
            (
                limit / amount
                for name, amount in used(routes).items()
                if (limit := have[name]) is not None and amount
            ),
            default=Fraction(1),
        )
        if fit <= 0:
            return NOTHING
        routes = [Route(r.of, r.steps, r.rate * min(fit, Fraction(1))) for r in routes]
        return Point(counts, routes, rate_of(self.network, counts, routes))

    def _stocks_hold(self, counts: Mapping[str, int]) -> bool:
        try:
            check_counts(self.network, counts)
        except Refuted:
            return False
        return True

    def _search_best(self) -> None:
        self._free()
        self.session.aim({self.load: 1.0}, maximise=True)
        outcome = self.session.run(
            whole=True, time_limit=self.left(), gap=max(self.limits.gap, MIP_GAP), watch=self._watch
        )
        if outcome.values is not None:
            self.consider(self._counts(outcome.values))

    def _counts(self, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> dict[str, int]:
        whole = np.rint(values[len(self.activities) :]).astype(int).tolist()
        return {p: n for p, n in zip(self.pools, whole, strict=True) if n}

    def _bytes(self) -> dict[int, float]:
        """Costs by column: bytes over links of one unit of each activity, the largest scaled to 1."""
        links = {r.name for r in self.network.resources.values() if r.unit == "bytes/s"}
        moved = {
            j: sum((c for r, c in a.uses.items() if r in links), ZERO)
            for j, a in enumerate(self.network.activities.values())
        }
        largest = max(moved.values(), default=ZERO) or Fraction(1)
        return {j: float(amount / largest) for j, amount in moved.items() if amount}

    def _free(self) -> None:
        """Let all counts range over what the network allows."""
        first = len(self.activities)
        self.session.bound(range(first, first + len(self.pools)), self.judge.root.low, self.judge.root.high)
