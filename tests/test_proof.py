"""A proof can only be right: every way to bend one is refuted, or leaves a bound that still holds."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import inferplan
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inferplan.models.case import Case, build
from inferplan.models.instance import Instance
from inferplan.models.network import LOAD, Activity, Network, Pool, Resource, State, Stock
from inferplan.solver.claims import tree_in, tree_out
from inferplan.solver.optimize import Optimum, Solver
from inferplan.solver.routes import Route, rate_of, trace_route
from inferplan.solver.verify import Box, Judge, Node, Prices, Refuted, proven_bound
from oracles import cells
from oracles.drawing import Raw, deployments

INSTANCES = Path(__file__).parent.parent / "instances"
BEST = Fraction(1953125, 428824)
NO_BOUND = Fraction(10**9)
NEARLY = Fraction(1, 10**12)
FACTORS = [Fraction(0), Fraction(1, 2), 1 - NEARLY, 1 + NEARLY, Fraction(2), Fraction(-1)]
EACH = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
SMALL = deployments(rich=False, several_models=False, most_cells=150)


@cache
def opening() -> tuple[Network, Optimum]:
    forms = ("colocated", "chunked", "disaggregated")
    instance = inferplan.load(INSTANCES / "opening.yaml")
    network = build(instance, Case(forms=forms))
    return network, Solver(network).highest_rate()


def bound(tree: list[Node], judge: Judge | None = None) -> Fraction:
    """The bound of a tree; where it is refuted, something that no bound may be below."""
    try:
        return proven_bound(judge or Judge(opening()[0]), tree)
    except Refuted:
        return NO_BOUND


def tiny(floor: int = 0) -> Network:
    """One pool of at most 3 cards from a stock of 2; a request takes half a card-second: 4 requests/s.

    Besides, every request sends a byte over a link without limit. `floor`: requests/s that must be served.
    """
    network = Network()
    network.add(Resource("wire", "bytes/s", None))
    network.add(Stock("cards", 2))
    network.add(Resource("seconds", "card-seconds/s", Fraction(0), "pool"))
    network.add(Pool("pool", {"cards": 1}, {"seconds": Fraction(1)}, cards=1, most=3))
    arrived, done = State("arrived", "c"), State("done", "c")
    network.add(
        Activity(
            "c: pool",
            "f",
            "pool",
            {arrived: Fraction(-1), done: Fraction(1)},
            {"seconds": Fraction(1, 2), "wire": Fraction(1)},
        )
    )
    moves = {done: Fraction(-1), arrived: Fraction(1)}
    network.add(Activity(LOAD, LOAD, LOAD, moves, floor=Fraction(floor)))
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


def test_signs_of_prices() -> None:
    """Resources and stocks: what one unit more of it adds to the rate, so >= 0.

    States: what one unit per second taken out of the state for nothing would add; a finished request that
    the load does not get costs a request, so its price is -1 here, and one given for nothing is worth 1.
    Of each column, objective - y.moves - u.uses (activities) and u.gives - v.takes (pools) must be <= 0, or
    what is left counts as often as the box allows at most.
    """
    judge = Judge(tiny())
    for u, v, y, found in (
        (0, 0, 0, 1 * 4),  # the load counts its own rate, at most 4/s
        (0, 0, -1, 1 * 4),  # as does the activity that finishes requests
        (0, 0, 1, 2 * 4),  # wrong sign: the load would count twice
        (2, 0, -1, 2 * 2),  # seconds paid, cards free: 2 a card, at most 2 cards
        (2, 1, -1, 1 * 2 + (2 - 1) * 2),
        (2, 2, -1, 2 * 2),
        (0, 2, -1, 2 * 2 + 1 * 4),  # cards paid, yet nothing gained: only a weaker bound
    ):
        prices = Prices({"seconds": Fraction(u)}, {"cards": Fraction(v)}, {"done(c)": Fraction(y)})
        assert judge.bound(judge.root, prices) == found


def test_counts_of_a_box_count() -> None:
    judge = Judge(tiny())
    prices = Prices({"seconds": Fraction(2)}, {"cards": Fraction(3)}, {"done(c)": Fraction(-1)})
    assert judge.bound(Box((1,), (2,)), prices) == 3 * 2 - (3 - 2) * 1  # a card costs 1 net, at least one
    assert judge.bound(Box((1,), (1,)), Prices({}, {}, {})) == 2


def test_floors_lower_what_is_too_dear() -> None:
    """The load must run at 1/s at least; a price that makes it lose counts at least that loss."""
    dear = Prices({"seconds": Fraction(6)}, {"cards": Fraction(6)}, {"done(c)": Fraction(-3)})
    for floor in (0, 1):
        judge = Judge(tiny(floor))
        assert judge.bound(judge.root, dear) == 6 * 2 - 2 * floor


def test_unlimited_resources_have_no_price() -> None:
    judge = Judge(tiny())
    with pytest.raises(Refuted, match="wire"):
        judge.bound(judge.root, Prices({"wire": Fraction(1, 10**9)}, {}, {}))


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
        assert bound([*tree[:i], replace(node, below=i), *tree[i + 1 :]]) == NO_BOUND  # a circle
        assert bound([*tree[:i], replace(node, pool="none"), *tree[i + 1 :]]) == NO_BOUND
    assert bound([*tree, Node()]) == NO_BOUND  # a node that hangs on nothing


@pytest.mark.parametrize("factor", FACTORS)
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


def test_a_wrong_optimum_is_not_proven() -> None:
    """The proof of a smaller deployment does not bound a larger one, nor do the prices of one leaf the whole."""
    instance = inferplan.load(INSTANCES / "opening.yaml")
    forms = ("colocated", "chunked", "disaggregated")
    for site in ("left", "right"):
        smaller = Solver(build(instance, Case(forms=forms, more_cards={site: -1}))).highest_rate()
        assert smaller.bound < BEST
        assert bound(list(smaller.tree)) >= BEST
    larger = Judge(build(instance, Case(forms=forms, more_cards={"right": 1})))
    assert bound(list(opening()[1].tree), larger) >= Fraction(9521484375, 2038450736)  # what 4 A100 prefill
    for node in opening()[1].tree:
        if node.prices is not None:
            assert bound([node]) >= BEST


def test_broken_chains_are_refuted() -> None:
    network, optimum = opening()
    (route,) = (r for r in optimum.point.routes if len(r.via) == 3)
    prefill, hop, decode = route.via
    assert trace_route(network, "chat", route.via, route.rate) == route
    for via in (
        [],
        [prefill],
        [prefill, hop],
        [hop, decode],
        [prefill, decode],
        [decode, hop, prefill],
        [prefill, hop, hop, decode],
        [prefill, hop, decode, decode],
        [prefill, hop, decode, prefill, hop, decode],
        [LOAD],
        [prefill, "none", decode],
    ):
        with pytest.raises(Refuted):
            trace_route(network, "chat", via, route.rate)
    with pytest.raises(Refuted):
        trace_route(network, "none", route.via, route.rate)


@settings(EACH, max_examples=60)
@given(SMALL, st.data())
def test_bent_proofs_of_small_deployments(raw: Raw, data: st.DataObject) -> None:
    """Whatever is done to a tree, its bound is not below the best rate, which the oracle knows."""
    instance = Instance.model_validate(raw)
    best = cells.highest_rate(instance)
    network = build(instance)
    judge = Judge(network)
    tree = list(Solver(network).highest_rate(frugal=False, why=False).tree)
    assert tree_in(tree_out(tree)) == tree
    assert bound(tree, judge) == best
    pools = st.sampled_from([*judge.pools, "none"])
    numbers = st.integers(-1, len(tree))
    for i, node in enumerate(tree):
        if node.pool is None:
            bent = [replace(node, prices=other_prices(data, network, node.prices)), Node()]
            bent.append(Node(data.draw(pools), data.draw(st.integers(-1, 4)), i, i))
        else:
            bent = [
                replace(node, pool=data.draw(pools)),
                replace(node, at=data.draw(st.integers(-2, 5))),
                replace(node, below=data.draw(numbers)),
                replace(node, above=data.draw(numbers)),
                replace(node, below=node.above, above=node.below),
                tree[data.draw(st.integers(0, len(tree) - 1))],
            ]
        for other in bent:
            assert bound([*tree[:i], other, *tree[i + 1 :]], judge) >= best
        assert bound(tree[:i] + tree[i + 1 :], judge) >= best


def other_prices(data: st.DataObject, network: Network, prices: Prices | None) -> Prices:
    """The prices with some changed by a factor, or prices of anything at all."""
    price = st.fractions(-1, 3, max_denominator=4)
    known = {
        "resources": list(network.resources),
        "stocks": list(network.stocks),
        "states": [str(s) for s in network.states],
    }
    found: dict[str, dict[str, Fraction]] = {}
    for kind, names in known.items():
        old = dict(getattr(prices, kind)) if prices is not None else {}
        for name in data.draw(st.lists(st.sampled_from(names), max_size=2)) if names else ():
            old[name] = old[name] * data.draw(st.sampled_from(FACTORS)) if old.get(name) else data.draw(price)
        found[kind] = old
    return Prices(**found)


@settings(EACH, max_examples=60)
@given(SMALL, st.data())
def test_bent_routes_of_small_deployments(raw: Raw, data: st.DataObject) -> None:
    """Whatever is done to counts and routes, what passes carries no more than the best rate."""
    instance = Instance.model_validate(raw)
    best = cells.highest_rate(instance)
    network = build(instance)
    point = Solver(network).highest_rate(why=False).point
    counts, routes = dict(point.counts), list(point.routes)
    if not routes:
        return
    for _ in range(4):
        i = data.draw(st.integers(0, len(routes) - 1))
        factor = data.draw(st.sampled_from(FACTORS))
        name = data.draw(st.sampled_from(list(network.pools)))
        other = data.draw(st.sampled_from(routes))
        for bent_counts, bent_routes in (
            ({**counts, name: counts.get(name, 0) + data.draw(st.integers(-2, 2))}, routes),
            (counts, [*routes[:i], replace(routes[i], rate=routes[i].rate * factor), *routes[i + 1 :]]),
            (counts, [replace(r, rate=r.rate * factor) for r in routes]),
            (counts, [*routes[:i], *routes[i + 1 :]]),
            (counts, [*routes, other]),
        ):
            with suppress(Refuted):
                assert rate_of(network, bent_counts, bent_routes) <= best
    grown = [replace(r, rate=r.rate * (1 + Fraction(1, 10**15))) for r in routes]
    with pytest.raises(Refuted):
        rate_of(network, counts, grown)
