"""What a proof says, in rational arithmetic: bounds from prices, boxes of counts, routes. No solver.

Weak duality: for any prices y of states, u >= 0 of resources and v >= 0 of stocks, and all counts n in a box,

    rate <= u.fixed + v.stock + sum_p max(rc_p lo_p, rc_p hi_p) + sum_a max(0, rc_a) roof_a
    rc_p = u.gives - v.takes        rc_a = [a is the load] - y.moves - u.uses

with roof_a the largest rate that the box allows an activity. Prices may come from anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import lcm

from ..models.network import LOAD, ZERO, Activity, Network, State


class Refuted(Exception):
    """A proof or a plan does not hold; the message says where."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Exact prices: of resources and stocks (>= 0), of states (any sign)."""

    resources: Mapping[str, Fraction]
    stocks: Mapping[str, Fraction]
    states: Mapping[str, Fraction]


NO_PRICES = Prices({}, {}, {})


@dataclass(frozen=True, slots=True)
class Box:
    """Lower and upper counts, one per pool in the network's order."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def is_point(self) -> bool:
        return self.low == self.high

    def split(self, pool: int, at: int) -> tuple[Box, Box]:
        """The part with the count of a pool at most `at`, and the part above."""
        below = (*self.high[:pool], at, *self.high[pool + 1 :])
        above = (*self.low[:pool], at + 1, *self.low[pool + 1 :])
        return Box(self.low, below), Box(above, self.high)


@dataclass
class Judge:
    """A network made ready for many exact evaluations."""

    network: Network
    _bounds: dict[tuple[tuple[int, ...], tuple[int, ...], int], tuple[Fraction, Prices]] = field(
        default_factory=dict
    )

    @cached_property
    def pools(self) -> tuple[str, ...]:
        return tuple(self.network.pools)

    @cached_property
    def root(self) -> Box:
        """All counts that the network allows."""
        return Box((0,) * len(self.pools), tuple(self.network.most(p) for p in self.network.pools.values()))

    @cached_property
    def _stock_rows(self) -> list[tuple[int, list[tuple[int, int]]]]:
        taken: dict[str, list[tuple[int, int]]] = {}
        for i, pool in enumerate(self.network.pools.values()):
            for stock, units in pool.takes.items():
                taken.setdefault(stock, []).append((i, units))
        rows = ((s.have, taken.get(s.name, [])) for s in self.network.stocks.values())
        return [(have, row) for have, row in rows if have is not None]

    @cached_property
    def makers(self) -> dict[State, list[Activity]]:
        """The activities that make each state."""
        found: dict[State, list[Activity]] = {}
        for activity in self.network.activities.values():
            for state, amount in activity.moves.items():
                if amount > 0:
                    found.setdefault(state, []).append(activity)
        return found

    @cached_property
    def givers(self) -> dict[str, list[tuple[int, Fraction]]]:
        """The pools that give to each resource."""
        found: dict[str, list[tuple[int, Fraction]]] = {}
        for i, pool in enumerate(self.network.pools.values()):
            for resource, amount in pool.gives.items():
                found.setdefault(resource, []).append((i, amount))
        return found

    def tighten(self, box: Box) -> Box | None:
        """Cut a box to what each stock alone allows; None where nothing is left."""
        low, high = list(box.low), list(box.high)
        changed = True
        while changed:
            changed = False
            for have, row in self._stock_rows:
                least = sum(units * (low[i] if units > 0 else high[i]) for i, units in row)
                if least > have:
                    return None
                spare = have - least
                for i, units in row:
                    if units > 0 and low[i] + spare // units < high[i]:
                        high[i], changed = low[i] + spare // units, True
                    elif units < 0 and high[i] - spare // -units > low[i]:
                        low[i], changed = high[i] - spare // -units, True
            if any(a > b for a, b in zip(low, high, strict=True)):
                return None
        return Box(tuple(low), tuple(high))

    def capacity(self, resource: str, box: Box) -> Fraction | None:
        """The largest capacity of a resource in a box, None for unlimited."""
        fixed = self.network.resources[resource].fixed
        if fixed is None:
            return None
        return fixed + sum(
            (
                amount * (box.high[i] if amount > 0 else box.low[i])
                for i, amount in self.givers.get(resource, ())
            ),
            ZERO,
        )

    def point(self, counts: Mapping[str, int]) -> Box:
        """The box that holds these counts alone."""
        numbers = tuple(counts.get(name, 0) for name in self.pools)
        return Box(numbers, numbers)

    def roof(self, activity: Activity, box: Box, _seen: frozenset[str] = frozenset()) -> Fraction:
        """The largest rate of an activity in a box.

        The least that its resources allow; without one, what the makers of a state it takes can make.
        Raises Refuted where nothing limits it.
        """
        limits = []
        for resource, amount in activity.uses.items():
            capacity = self.capacity(resource, box)
            if amount > 0 and capacity is not None:
                limits.append(max(ZERO, capacity) / amount)
        if not limits:
            for state, amount in activity.moves.items():
                if amount < 0 and activity.name not in _seen:
                    seen = _seen | {activity.name}
                    try:
                        made = sum(
                            (self.roof(m, box, seen) * m.moves[state] for m in self.makers.get(state, ())),
                            ZERO,
                        )
                    except Refuted:
                        continue
                    limits.append(made / -amount)
        if not limits:
            raise Refuted(f"nothing limits {activity.name}")
        return min(limits)

    @cached_property
    def _activity_rows(self) -> list[tuple[Activity, int, int, list[tuple[str, int]], list[tuple[str, int]]]]:
        """Every activity in whole numbers: its denominator, and its objective, moves and uses times that."""
        rows = []
        for activity in self.network.activities.values():
            bottom = lcm(*(f.denominator for f in (*activity.moves.values(), *activity.uses.values())))
            moves = [(str(s), int(f * bottom)) for s, f in activity.moves.items()]
            uses = [(r, int(f * bottom)) for r, f in activity.uses.items()]
            rows.append((activity, bottom, bottom if activity.name == LOAD else 0, moves, uses))
        return rows

    def bound(self, box: Box, prices: Prices) -> Fraction:
        """The rate that no plan in the box exceeds, by these prices. Raises Refuted for unusable prices."""
        key = (box.low, box.high, id(prices))
        if key not in self._bounds:
            self._bounds[key] = (self._bound(box, prices), prices)
        return self._bounds[key][0]

    @cached_property
    def _pool_rows(self) -> list[tuple[int, list[tuple[str, int]], list[tuple[str, int]]]]:
        """Every pool in whole numbers: its denominator, and what it gives and takes times that."""
        rows = []
        for pool in self.network.pools.values():
            bottom = lcm(*(f.denominator for f in pool.gives.values()))
            gives = [(r, int(f * bottom)) for r, f in pool.gives.items()]
            rows.append((bottom, gives, [(k, n * bottom) for k, n in pool.takes.items()]))
        return rows

    def _bound(self, box: Box, prices: Prices) -> Fraction:
        """Whole numbers over one denominator: reducing fractions at every step would take most time."""
        total = self._worth_of_limits(prices)
        groups = (prices.resources, prices.stocks, prices.states)
        bottom = lcm(*(f.denominator for group in groups for f in group.values()))
        u, v, y = ({n: f.numerator * (bottom // f.denominator) for n, f in g.items()} for g in groups)
        for i, (own, gives, takes) in enumerate(self._pool_rows):
            reduced = 0
            for resource, amount in gives:
                if resource in u:
                    reduced += u[resource] * amount
            for stock, units in takes:
                if stock in v:
                    reduced -= v[stock] * units
            count = box.high[i] if reduced > 0 else box.low[i]
            if reduced and count:
                total += Fraction(reduced * count, own * bottom)
        for activity, own, objective, moves, uses in self._activity_rows:
            reduced = objective * bottom
            for state, amount in moves:
                if state in y:
                    reduced -= y[state] * amount
            for resource, amount in uses:
                if resource in u:
                    reduced -= u[resource] * amount
            if reduced > 0:
                total += Fraction(reduced, own * bottom) * self.roof(activity, box)
            elif reduced < 0 and activity.floor:
                total += Fraction(reduced, own * bottom) * activity.floor
        return total

    def _worth_of_limits(self, prices: Prices) -> Fraction:
        """u.fixed + v.stock, once every price is shown to be usable."""
        total = ZERO
        for name, price in prices.resources.items():
            fixed = self.network.resources[name].fixed if name in self.network.resources else None
            if price < 0 or fixed is None:
                raise Refuted(f"the price of resource {name} cannot be used")
            total += price * fixed
        for name, price in prices.stocks.items():
            have = self.network.stocks[name].have if name in self.network.stocks else None
            if price < 0 or have is None:
                raise Refuted(f"the price of stock {name} cannot be used")
            total += price * have
        return total


@dataclass(frozen=True, slots=True)
class Route:
    """A whole chain arrived -> done of one class, at one rate (requests/s)."""

    of: str
    steps: tuple[Activity, ...]
    rate: Fraction

    @property
    def via(self) -> list[str]:
        """The steps that use something, by their labels."""
        return [step.label for step in self.steps if step.uses]


@dataclass(frozen=True, slots=True)
class Point:
    """A feasible plan of a network: counts, routes, and the exact rate they carry."""

    counts: Mapping[str, int]
    routes: Sequence[Route]
    rate: Fraction


def trace_route(network: Network, of: str, via: Sequence[str], rate: Fraction) -> Route:
    """Rebuild a route from its labels; steps that use nothing are filled in. Raises Refuted."""
    state, steps = State("arrived", of), list[Activity]()
    free = {
        next(s for s, n in a.moves.items() if n < 0): a
        for a in network.activities.values()
        if not a.uses and a.name != LOAD and a.of == of
    }
    for label in via:
        activity = network.activities.get(f"{of}: {label}")
        if activity is None:
            raise Refuted(f"no activity {label!r} serves class {of!r}")
        if state not in activity.moves or activity.moves[state] >= 0:
            step = free.get(state)
            if step is None:
                raise Refuted(f"{label!r} does not follow in the route of class {of!r}")
            steps.append(step)
            state = _made(step)
        if activity.moves.get(state) != -1:
            raise Refuted(f"{label!r} does not follow in the route of class {of!r}")
        steps.append(activity)
        state = _made(activity)
    if state != State("done", of):
        raise Refuted(f"a route of class {of!r} ends at {state}, not at done")
    return Route(of, tuple(steps), rate)


def _made(activity: Activity) -> State:
    return next(s for s, n in activity.moves.items() if n > 0)


def peel(network: Network, rates: Mapping[str, Fraction]) -> list[Route]:
    """Split exact activity rates into routes; loops are left out, since they serve nobody."""
    left = {name: rate for name, rate in rates.items() if rate > 0 and name != LOAD}
    leaving: dict[State, list[Activity]] = {}
    for name in left:
        activity = network.activities[name]
        leaving.setdefault(next(s for s, n in activity.moves.items() if n < 0), []).append(activity)
    routes: list[Route] = []
    for start in [s for s in leaving if s.kind == "arrived"]:
        while True:
            steps, seen, state = list[Activity](), {start: 0}, start
            while state.kind != "done":
                step = next((a for a in leaving.get(state, ()) if left.get(a.name, ZERO) > 0), None)
                if step is None:
                    break
                steps.append(step)
                state = _made(step)
                if state in seen:  # a loop: take it out of the rates
                    loop = steps[seen[state] :]
                    least = min(left[a.name] for a in loop)
                    for a in loop:
                        left[a.name] -= least
                    steps = steps[: seen[state]]
                    seen = {s: i for s, i in seen.items() if i <= len(steps)}
                seen[state] = len(steps)
            if state.kind != "done":
                break
            least = min(left[a.name] for a in steps)
            for a in steps:
                left[a.name] -= least
            routes.append(Route(start.of, tuple(steps), least))
    return routes


def used(routes: Sequence[Route]) -> dict[str, Fraction]:
    """What routes use of each resource, per second."""
    total: dict[str, Fraction] = {}
    for route in routes:
        for step in route.steps:
            for resource, amount in step.uses.items():
                total[resource] = total.get(resource, ZERO) + route.rate * amount
    return total


def capacities(network: Network, counts: Mapping[str, int]) -> dict[str, Fraction | None]:
    """The capacity of each resource under given counts, None for unlimited."""
    total: dict[str, Fraction | None] = {name: r.fixed for name, r in network.resources.items()}
    for name, pool in network.pools.items():
        for resource, amount in pool.gives.items() if counts.get(name) else ():
            have = total[resource]
            if have is not None:
                total[resource] = have + amount * counts[name]
    return total


def check_counts(network: Network, counts: Mapping[str, int]) -> None:
    """Raise Refuted where counts are negative, unknown, too many, or overdraw a stock."""
    for name, n in counts.items():
        if name not in network.pools:
            raise Refuted(f"no pool is named {name!r}")
        most = network.pools[name].most
        if n < 0 or (most is not None and n > most):
            raise Refuted(f"{n} of {name!r} is not allowed")
    for stock in network.stocks.values():
        taken = sum(p.takes.get(stock.name, 0) * counts.get(name, 0) for name, p in network.pools.items())
        if stock.have is not None and taken > stock.have:
            raise Refuted(f"{stock.label or stock.name}: {taken} taken, {stock.have} there")


def rate_of(network: Network, counts: Mapping[str, int], routes: Sequence[Route]) -> Fraction:
    """The rate of the load that routes carry, once they are proven to fit the counts. Raises Refuted."""
    check_counts(network, counts)
    have = capacities(network, counts)
    for resource, amount in used(routes).items():
        limit = have[resource]
        if limit is not None and amount > limit:
            raise Refuted(f"{resource}: {float(amount):.9g} used, {float(limit):.9g} there")
    carried: dict[str, Fraction] = {}
    for route in routes:
        if route.rate <= 0:
            raise Refuted(f"a route of class {route.of!r} has no rate")
        carried[route.of] = carried.get(route.of, ZERO) + route.rate
    shares = {s.of: n for s, n in network.activities[LOAD].moves.items() if n > 0}
    rates = {carried.get(of, ZERO) / share for of, share in shares.items()}
    if len(rates) != 1 or carried.keys() - shares.keys():
        raise Refuted("the routes do not carry the classes in their shares")
    return rates.pop()


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a proof tree: a split of one pool's count, or a leaf with prices, or an empty leaf."""

    pool: str | None = None
    at: int = 0
    below: int = 0
    above: int = 0
    prices: Prices | None = None


def leaves(judge: Judge, tree: Sequence[Node]) -> Iterator[tuple[Box, Prices | None]]:
    """The boxes at the leaves of a tree, which together cover every count; empty ones are checked.

    Yields each leaf's box and prices (None where the box is a single point that needs no price).
    Raises Refuted for a tree that is not one.
    """
    index = {name: i for i, name in enumerate(judge.pools)}
    stack: list[tuple[int, Box]] = [(0, judge.root)]
    visited = 0
    while stack:
        number, box = stack.pop()
        visited += 1
        if not 0 <= number < len(tree) or visited > len(tree):
            raise Refuted("the proof is no tree")
        node = tree[number]
        cut = judge.tighten(box)
        if node.pool is None:
            if cut is not None:
                yield cut, node.prices
            continue
        if node.pool not in index:
            raise Refuted(f"the proof splits an unknown pool {node.pool!r}")
        low, high = (cut or box).split(index[node.pool], node.at)
        stack += [(node.below, low), (node.above, high)]
    if visited != len(tree):
        raise Refuted("the proof is no tree")


def proven_bound(judge: Judge, tree: Sequence[Node]) -> Fraction:
    """The rate that no plan of the network exceeds, by a proof tree. Raises Refuted."""
    best = ZERO
    for box, prices in leaves(judge, tree):
        if prices is None:
            raise Refuted("a leaf of the proof has no prices and its box is not empty")
        best = max(best, judge.bound(box, prices))
    return best
