"""The one idea: a deployment is a flow. States, activities, resources, stocks, pools (design section 1).

    balance    sum_a moves[a,s] x[a] = 0                                  for every state
    capacity   sum_a uses[a,r] x[a] <= fixed[r] + sum_p gives[p,r] n[p]   for every resource
    stock      sum_p takes[p,k] n[p] <= stock[k]                          for every stock

with rates x >= floor and whole numbers 0 <= n <= most. The objective is the rate of the load, the activity
that turns finished requests back into arriving ones; a budget, where there is one, is a stock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from typing import NamedTuple, TypeVar

T = TypeVar("T")

ZERO = Fraction(0)
LOAD = "load"
BUDGET = "budget"


class State(NamedTuple):
    """Where a request of one class stands: `made(chat)@left`."""

    kind: str
    of: str
    at: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}({self.of})" + (f"@{self.at}" if self.at else "")


@dataclass(frozen=True, slots=True)
class Resource:
    """Something with a capacity per second, or a size in use. `fixed` in `unit`, None for unlimited."""

    name: str
    unit: str
    fixed: Fraction | None = ZERO
    label: str = ""


@dataclass(frozen=True, slots=True)
class Stock:
    """Something taken in whole units; None for unlimited."""

    name: str
    have: int | None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Activity:
    """A recipe at a rate (units/s): what one unit moves between states and uses of resources."""

    name: str
    form: str
    label: str  # how routes name it; the same for all classes
    moves: Mapping[State, Fraction]
    uses: Mapping[str, Fraction] = field(default_factory=dict)
    floor: Fraction = ZERO

    @property
    def of(self) -> str:
        """The class that it moves."""
        return next(iter(self.moves)).of


class Replica(NamedTuple):
    """What one replica of a pool is."""

    site: str
    card: str
    role: str
    form: str
    model: str
    batch: int | None
    cards: int = 1


@dataclass(frozen=True, slots=True)
class Pool:
    """A whole number of replicas of one engine at one place; or a purchase, which takes negative stock."""

    name: str
    takes: Mapping[str, int]
    gives: Mapping[str, Fraction] = field(default_factory=dict)
    cards: int = 0  # what one adds to the bill in cards
    cost: Fraction | None = ZERO  # and in money; None where no price was given
    most: int | None = None
    replica: Replica | None = None
    tally: bool = False  # the sum of alike pools, there so that a proof can split on it first


@dataclass(frozen=True, slots=True)
class Refusal:
    """A column that a form left out, and why."""

    what: str
    reason: str
    limit: str
    needed: str
    short_bytes: Fraction | None = None


@dataclass
class Network:
    """A deployment as a flow; built by the forms, read by the program and the proof."""

    resources: dict[str, Resource] = field(default_factory=dict)
    stocks: dict[str, Stock] = field(default_factory=dict)
    activities: dict[str, Activity] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    budget_unit: Fraction = Fraction(1)  # cards, or money, of one unit of the budget stock

    def add(self, item: Resource | Stock | Activity | Pool | Refusal) -> None:
        """Add one part; a name must be new."""
        self.__dict__.pop("suppliers", None)
        self.__dict__.pop("states", None)
        if isinstance(item, Refusal):
            self.refusals.append(item)
        elif isinstance(item, Resource):
            _put(self.resources, item.name, item)
        elif isinstance(item, Stock):
            _put(self.stocks, item.name, item)
        elif isinstance(item, Activity):
            _put(self.activities, item.name, item)
        else:
            _put(self.pools, item.name, item)

    @cached_property
    def states(self) -> tuple[State, ...]:
        """All states that an activity touches, in order of appearance."""
        return tuple(dict.fromkeys(s for a in self.activities.values() for s in a.moves))

    def most(self, pool: Pool) -> int:
        """The largest count of a pool that its own limit and each stock alone allow."""
        if pool.tally and pool.most is not None:
            return pool.most
        limits = [] if pool.most is None else [pool.most]
        for name, taken in pool.takes.items():
            have = self.stocks[name].have
            if taken > 0 and have is not None:
                supplied = sum(
                    -other.takes[name] * self.most(other)
                    for other in self.suppliers.get(name, ())
                    if other is not pool
                )
                limits.append(max(0, (have + supplied) // taken))
        if not limits:
            raise ValueError(f"nothing limits the number of {pool.name!r}")
        return min(limits)

    @cached_property
    def suppliers(self) -> dict[str, tuple[Pool, ...]]:
        """The pools that add to each stock."""
        found: dict[str, list[Pool]] = {}
        for pool in self.pools.values():
            for name, taken in pool.takes.items():
                if taken < 0:
                    found.setdefault(name, []).append(pool)
        return {name: tuple(pools) for name, pools in found.items()}

    def with_budget(self, kind: str, limit: int | None = None) -> Network:
        """The same network with a stock `budget` that every pool draws on by its bill, in `kind`.

        Money is counted in the largest unit of which all prices are whole multiples.
        """
        bills = {
            name: (Fraction(p.cards) if kind == "cards" else p.cost or ZERO) for name, p in self.pools.items()
        }
        unit = common_measure(bills.values())
        pools = {
            name: replace(p, takes={**p.takes, BUDGET: int(bills[name] / unit)}) if bills[name] else p
            for name, p in self.pools.items()
        }
        stocks = {**self.stocks, BUDGET: Stock(BUDGET, limit, f"budget of {kind}")}
        return replace(self, pools=pools, stocks=stocks, budget_unit=unit)


def _put(table: dict[str, T], name: str, item: T) -> None:
    if name in table:
        raise ValueError(f"two {type(item).__name__.lower()}s are named {name!r}")
    table[name] = item


def common_measure(amounts: Iterable[Fraction | int]) -> Fraction:
    """The largest amount of which all others are whole multiples (1 where all are 0)."""
    parts = [Fraction(a) for a in amounts if a]
    if not parts:
        return Fraction(1)
    bottom = lcm(*(a.denominator for a in parts))
    return Fraction(gcd(*(int(a * bottom) for a in parts)), bottom)
