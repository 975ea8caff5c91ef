"""The upper half of a proof, in rational arithmetic: bounds from prices over boxes of counts. No solver.

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
