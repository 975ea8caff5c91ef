"""First oracle: every cell of counts, each with an exact linear program over whole routes.

A route is a chain of pools and channels that serves one class; its rate is one variable. For the shares s_c of the
classes and all resources r (rows of pools, channels):

    maximise mu   subject to   s_c mu - sum of the class's routes <= 0,   sum of uses <= a count or a bandwidth.

Cells differ in their right-hand sides only, so the prices of a solved cell bound all others: `highest_rate` solves
a cell unless such a bound shows that it cannot win, `every_cell` solves all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import lcm

from inferplan.models.instance import Instance
from inferplan.models.workload import RequestClass

from . import seconds

PoolKey = tuple[str, str, str, int]  # site, role, model, batch (0 for prefill)
Row = tuple[str, object]  # a kind, and the pool or the channel that limits it
Uses = dict[Row, Fraction]
ZERO, ONE = Fraction(0), Fraction(1)


@dataclass
class Routes:
    """An instance as routes: what each class may take, by resource."""

    instance: Instance
    forms: tuple[str, ...]
    pools: list[PoolKey] = field(default_factory=list)
    bandwidth: dict[Row, Fraction] = field(default_factory=dict)
    routes: list[tuple[RequestClass, Uses]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.card = {site: card for site, card, _ in seconds.sites(self.instance)}
        self.served = [c for c in self.instance.workload.classes if c.share]
        self.ways = _Ways(self.instance)
        for form in self.forms:
            for role in ("prefill", "decode") if form == "disaggregated" else (form,):
                self._place(role)
        for request in self.served:
            for pool in self.pools:
                if pool[2] == seconds.model_of(self.instance, request):
                    self._route(request, pool)

    def _place(self, role: str) -> None:
        it = self.instance
        for (site, card), model in product(self.card.items(), seconds.models(it)):
            if not any(seconds.model_of(it, c) == model for c in it.workload.classes):
                continue
            if role == "chunked" and card in it.engines:
                continue  # a measured rate does not say how arithmetic and traffic overlap
            if role == "prefill":
                batches = [0] if seconds.needed_bytes(it, role, 0, model) <= it.cards[card].memory else []
            else:
                batches = seconds.batches(it, role, card, model)
            self.pools += [(site, role, model, batch) for batch in batches]

    def _route(self, request: RequestClass, pool: PoolKey) -> None:
        it, (site, role, model, batch) = self.instance, pool
        card = self.card[site]
        if role == "colocated":
            time = seconds.prefill(it, card, request) + seconds.decode(it, card, request, batch)
            self.routes.append((request, {("seconds", pool): time}))
        elif role == "chunked":
            arithmetic, traffic = seconds.chunks(it, card, request, batch)
            self.routes.append((request, {("arithmetic", pool): arithmetic, ("traffic", pool): traffic}))
        elif role == "prefill":
            first: Uses = {("seconds", pool): seconds.prefill(it, card, request)}
            if not seconds.steps(request):
                self.routes.append((request, first))
                return
            size = seconds.moved_bytes(it, request)
            for other in self.pools:
                if other[1:3] == ("decode", model):
                    time = seconds.decode(it, self.card[other[0]], request, other[3])
                    for way in self.ways.between(site, other[0]):
                        uses = first | {("seconds", other): time}
                        for channel in way:
                            uses[channel] = uses.get(channel, ZERO) + size
                            self.bandwidth[channel] = self.ways.bandwidth[channel]
                        self.routes.append((request, uses))

    def rows(self) -> tuple[list[list[Fraction]], list[PoolKey | Fraction]]:
        """The matrix (mu first, then the routes) and what limits each row below those of the classes."""
        matrix = [[c.share, *(Fraction(-(c is of)) for of, _ in self.routes)] for c in self.served]
        limits: list[PoolKey | Fraction] = []
        index = {pool: pool for pool in self.pools}
        for row in dict.fromkeys(row for _, uses in self.routes for row in uses):
            matrix.append([ZERO, *(uses.get(row, ZERO) for _, uses in self.routes)])
            limits.append(self.bandwidth[row] if row in self.bandwidth else index[row[1]])  # type: ignore[index]
        return matrix, limits


class _Ways:
    """The ways that bytes may take between servers, as lists of the channels they use."""

    def __init__(self, instance: Instance) -> None:
        self.bandwidth: dict[Row, Fraction] = {}
        self.hops: dict[str, list[tuple[str, list[Row]]]] = {}
        self.one: Row | None = None
        groups = {
            s.name: [f"{s.name}-{i}" for i in range(1, s.count + 1)] for s in instance.servers if s.count > 1
        }
        nics = {
            name: s.nic
            for s in instance.servers
            for name in groups.get(s.name, [s.name])
            if s.nic is not None
        }
        for link in instance.links:
            if instance.handover == link.name:
                self.one = ("channel", link.name)
                self.bandwidth[self.one] = link.bandwidth
            first, second = link.between or (link.source or "", link.target or "")
            for a, b in product(groups.get(first, [first]), groups.get(second, [second])):
                for here, there in ((a, b), (b, a)) if link.between else ((a, b),):
                    pair = frozenset((a, b)) if link.duplex == "half" else (here, there)
                    channel: Row = ("channel", (link.name, pair))
                    self.bandwidth[channel] = link.bandwidth
                    channels = [channel]
                    for node, side in ((here, "out"), (there, "in")):
                        if node in nics:
                            channels.append(("channel", (node, side)))
                            self.bandwidth[channels[-1]] = nics[node]
                    self.hops.setdefault(here, []).append((there, channels))

    def between(self, source: str, target: str) -> list[list[Row]]:
        """All ways without a loop; charged to the one channel, where there is one."""
        if self.one:
            return [[self.one]]
        return list(self._walk(source, target, {source}))

    def _walk(self, here: str, target: str, seen: set[str]) -> Iterator[list[Row]]:
        if here == target:
            yield []
            return
        for there, channels in self.hops.get(here, []):
            if there not in seen:
                for rest in self._walk(there, target, seen | {there}):
                    yield channels + rest


def highest_rate(instance: Instance, forms: tuple[str, ...] | None = None) -> Fraction:
    """The highest rate of all cells; 0 where no cell serves all classes."""
    best = ZERO
    bounds: list[
        tuple[list[int], int, int]
    ] = []  # whole weights of the counts, a constant, their denominator
    program = Routes(instance, forms or instance.forms)
    solve = _solver(program)
    for counts in _cells(program):
        if any(
            sum(w * n for w, n in zip(weights, counts, strict=True)) + constant <= best * bottom
            for weights, constant, bottom in bounds
        ):
            continue
        rate, of_counts, constant = solve(counts)
        best = max(best, rate)
        bottom = lcm(constant.denominator, *(w.denominator for w in of_counts))
        bounds.append(([int(w * bottom) for w in of_counts], int(constant * bottom), bottom))
    return best


def every_cell(
    instance: Instance, forms: tuple[str, ...] | None = None
) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """All cells, also those that leave cards idle, each with its highest rate."""
    program = Routes(instance, forms or instance.forms)
    solve = _solver(program)
    for counts in _cells(program):
        yield counts, solve(counts)[0]


def _solver(program: Routes) -> Callable[[tuple[int, ...]], tuple[Fraction, list[Fraction], Fraction]]:
    """From counts to the highest rate, the prices of the counts, and what the channels add at theirs."""
    matrix, limits = program.rows()
    costs = [ONE, *(ZERO for _ in program.routes)]
    place = {pool: i for i, pool in enumerate(program.pools)}
    shares = [ZERO] * len(program.served)

    def solve(counts: tuple[int, ...]) -> tuple[Fraction, list[Fraction], Fraction]:
        right = [limit if isinstance(limit, Fraction) else Fraction(counts[place[limit]]) for limit in limits]
        rate, prices = simplex(costs, matrix, shares + right)
        of_counts, constant = [ZERO] * len(counts), ZERO
        for limit, price in zip(limits, prices[len(shares) :], strict=True):
            if isinstance(limit, Fraction):
                constant += limit * price
            else:
                of_counts[place[limit]] += price
        return rate, of_counts, constant

    return solve


def _cells(program: Routes) -> Iterator[tuple[int, ...]]:
    """All counts that the cards and the pins allow, also those that leave cards idle."""
    choices: list[list[dict[PoolKey, int]]] = []
    for site, _, cards in seconds.sites(program.instance):
        own = [p for p in program.pools if p[0] == site]
        pins = program.instance.fix.get(site, {})
        choices.append([
            cell
            for numbers in product(range(cards, -1, -1), repeat=len(own))
            if sum(numbers) <= cards
            for cell in [dict(zip(own, numbers, strict=True))]
            if all(sum(n for p, n in cell.items() if p[1] == role) == pin for role, pin in pins.items())
        ])  # fmt: skip
    for parts in product(*choices):
        cell = {p: n for part in parts for p, n in part.items()}
        yield tuple(cell[p] for p in program.pools)


def simplex(
    costs: list[Fraction], matrix: list[list[Fraction]], right: list[Fraction]
) -> tuple[Fraction, list[Fraction]]:
    """max c x with A x <= b, x >= 0 and b >= 0: the optimum and the prices of the rows. Bland's rule, so it ends."""
    columns, count = len(costs), len(matrix)
    table = [
        [*row, *(Fraction(i == j) for j in range(count)), b]
        for i, (row, b) in enumerate(zip(matrix, right, strict=True))
    ]
    reduced = [*costs, *([ZERO] * count), ZERO]
    basis = list(range(columns, columns + count))
    while True:
        enter = next((j for j in range(columns + count) if reduced[j] > 0), None)
        if enter is None:
            return -reduced[-1], [-reduced[columns + i] for i in range(count)]
        ratios = [(row[-1] / row[enter], basis[i], i) for i, row in enumerate(table) if row[enter] > 0]
        if not ratios:
            raise ValueError("unbounded")
        leave = min(ratios)[2]
        pivot = table[leave][enter]
        top = table[leave] = [v / pivot if v else v for v in table[leave]]
        filled = [(j, v) for j, v in enumerate(top) if v]
        for row in [*(r for i, r in enumerate(table) if i != leave), reduced]:
            factor = row[enter]
            if factor:
                for j, v in filled:
                    row[j] -= factor * v
        basis[leave] = enter
