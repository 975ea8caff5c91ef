"""A proof can only be right: every way to bend one is refuted, or leaves a bound that still holds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import inferplan
import pytest
from inferplan.models.case import Case, build
from inferplan.models.network import LOAD, Activity, Network, Pool, Resource, State, Stock
from inferplan.solver.optimize import Optimum, Solver
from inferplan.solver.routes import Route, rate_of
from inferplan.solver.verify import Box, Judge, Node, Prices, Refuted, proven_bound

INSTANCES = Path(__file__).parent.parent / "instances"
BEST = Fraction(1953125, 428824)


@cache
def opening() -> tuple[Network, Optimum]:
    forms = ("colocated", "chunked", "disaggregated")
    instance = inferplan.load(INSTANCES / "opening.yaml")
    network = build(instance, Case(forms=forms))
    return network, Solver(network).highest_rate()


def bound(tree: list[Node]) -> Fraction:
    """The bound of a tree; where it is refuted, something that no bound may be below."""
    try:
        return proven_bound(Judge(opening()[0]), tree)
    except Refuted:
        return Fraction(10**9)


def tiny() -> Network:
    """One pool of at most 3 cards from a stock of 2; a request takes half a card-second: 4 requests/s."""
    network = Network()
    network.add(Stock("cards", 2))
    network.add(Resource("seconds", "card-seconds/s", Fraction(0), "pool"))
    network.add(Pool("pool", {"cards": 1}, {"seconds": Fraction(1)}, cards=1, most=3))
    arrived, done = State("arrived", "c"), State("done", "c")
    network.add(
        Activity(
            "c: pool", "f", "pool", {arrived: Fraction(-1), done: Fraction(1)}, {"seconds": Fraction(1, 2)}
        )
    )
    network.add(Activity(LOAD, LOAD, LOAD, {done: Fraction(-1), arrived: Fraction(1)}))
    return network


def test_prices_by_hand() -> None:
    """rate = 2 seconds and seconds <= n, n <= 2: a second is worth 2, a card 2, and a finished request -1."""
    judge = Judge(tiny())
    prices = Prices({"seconds": Fraction(2)}, {"cards": Fraction(2)}, {"done(c)": Fraction(-1)})
    assert judge.root == Box((0,), (2,))
    assert judge.bound(judge.root, prices) == 4
    assert Solver(tiny()).highest_rate().point.rate == 4
    dear = Prices({"seconds": Fraction(3)}, {"cards": Fraction(3)}, {"done(c)": Fraction(-1)})
    assert judge.bound(judge.root, dear) == 6
    cheap = Prices({"seconds": Fraction(1)}, {"cards": Fraction(1)}, {"done(c)": Fraction(-1)})
    assert (
        judge.bound(judge.root, cheap) == 2 + Fraction(1, 2) * 4
    )  # what the price leaves open, at most 4 times


def test_the_opening_is_proven_exactly() -> None:
    network, optimum = opening()
    assert optimum.point.rate == optimum.bound == proven_bound(Judge(network), list(optimum.tree)) == BEST
    assert rate_of(network, optimum.point.counts, optimum.point.routes) == BEST
    assert len(optimum.tree) > 2


def test_bent_trees() -> None:
    tree = list(opening()[1].tree)
    for i, node in enumerate(tree):
        if node.pool is None:
            assert bound([*tree[:i], Node(), *tree[i + 1 :]]) >= BEST  # a leaf without prices
            assert bound(tree[:i] + tree[i + 1 :]) >= BEST  # a leaf missing
            continue
        assert bound([*tree[:i], replace(node, at=node.at + 1), *tree[i + 1 :]]) >= BEST
        assert bound([*tree[:i], replace(node, below=node.above, above=node.below), *tree[i + 1 :]]) >= BEST
        assert bound([*tree[:i], replace(node, above=node.below), *tree[i + 1 :]]) >= BEST
        assert bound([*tree[:i], replace(node, below=i), *tree[i + 1 :]]) == 10**9  # a circle
        assert bound([*tree[:i], replace(node, pool="none"), *tree[i + 1 :]]) == 10**9
    assert bound([*tree, Node()]) == 10**9  # a node that hangs on nothing


@pytest.mark.parametrize(
    "factor", [Fraction(0), Fraction(1, 2), 1 - Fraction(1, 10**12), Fraction(2), Fraction(-1)]
)
def test_bent_prices(factor: Fraction) -> None:
    tree = list(opening()[1].tree)
    for i, node in enumerate(tree):
        if node.prices is None:
            continue
        for part in ("resources", "stocks", "states"):
            prices = getattr(node.prices, part)
            for name, price in prices.items():
                bent = replace(node.prices, **{part: {**prices, name: price * factor}})
                assert bound([*tree[:i], replace(node, prices=bent), *tree[i + 1 :]]) >= BEST


def test_prices_of_nothing_are_refuted() -> None:
    network, _ = opening()
    judge = Judge(network)
    for prices in (
        Prices({"none": Fraction(1)}, {}, {}),
        Prices({}, {"none": Fraction(1)}, {}),
        Prices({"seconds of decode@right/h20": Fraction(-1)}, {}, {}),
        Prices({}, {"cards@left": Fraction(-1)}, {}),
    ):
        with pytest.raises(Refuted):
            judge.bound(judge.root, prices)


def test_bent_routes_and_counts() -> None:
    network, optimum = opening()
    counts, routes = dict(optimum.point.counts), list(optimum.point.routes)
    faster = [Route(r.of, r.steps, r.rate * (1 + Fraction(1, 10**15))) for r in routes]
    for bad_counts, bad_routes in (
        (counts, faster),
        ({**counts, "decode@right/h20": 3}, routes),
        ({**counts, "decode@right/h20": 5}, routes),
        ({**counts, "decode@left/a100": 1}, routes),
        ({**counts, "decode@left/a100": -1}, routes),
        ({**counts, "none": 1}, routes),
        (counts, [*routes, Route("chat", routes[0].steps, Fraction(0))]),
    ):
        with pytest.raises(Refuted):
            rate_of(network, bad_counts, bad_routes)


def test_classes_out_of_their_shares_are_refuted() -> None:
    network = build(inferplan.load(INSTANCES / "two-sites.yaml"))
    point = Solver(network).highest_rate().point
    assert len(point.routes) > 1
    with pytest.raises(Refuted, match="shares"):
        rate_of(
            network,
            point.counts,
            [replace(point.routes[0], rate=point.routes[0].rate / 2), *point.routes[1:]],
        )
