"""One question about an instance, and the network that it means.

The plan's own question, each form alone, one card more, a link without limit, a purchase: all are cases.
A case is written into every proof, so that `check` builds the same network again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Literal

from pydantic import Field

from .fleet import Fleet
from .forms import FORMS
from .instance import Form, Instance
from .network import LOAD, Activity, Network, Pool, Refusal, State, Stock
from .quantities import BytesPerSecond
from .schema import Schema


class Case(Schema):
    """How a network departs from the instance as declared.

    `floor`: `declared` cards are there and free; `drawn` ones are there and billed when taken; `empty`: none.
    `unit`: what may be bought: `card`, `server`, `offers`, or the name of an offer.
    """

    forms: tuple[Form, ...] | None = None
    floor: Literal["declared", "drawn", "empty"] = "declared"
    unit: str | None = None
    kinds: tuple[str, ...] | None = Field(None, description="the only kinds of card that may be bought")
    at_most: int | None = None
    pinned: bool = Field(True, description="whether the instance's `fix` holds")
    more_cards: dict[str, int] = Field(default_factory=dict, description="cards more (or fewer) by server")
    bandwidth: dict[str, BytesPerSecond | None] = Field(
        default_factory=dict, description="other bandwidths by link; null: unlimited"
    )


def build(instance: Instance, case: Case | None = None) -> Network:
    """The network of an instance under a case. Raises ValueError where a case does not suit it."""
    case = case or Case()
    if case.unit not in (None, "card", "server", "offers", *(offer.name for offer in instance.offers)):
        raise ValueError(f"nothing named {case.unit!r} is for sale")
    network = Network()
    for site, server in instance.sites.items():
        have = server.cards + case.more_cards.get(site, 0) if case.floor == "declared" else 0
        network.add(Stock(f"cards@{site}", have, f"{server.card} cards at {site}"))
    for purchase in _purchases(instance, case, network):
        network.add(purchase)
    for site, roles in instance.fix.items() if case.pinned else ():
        for role, count in roles.items():
            network.add(Stock(f"at most {role}@{site}", count))
            network.add(Stock(f"at least {role}@{site}", -count))
    billed = case.floor == "declared" and case.unit is None
    fleet = Fleet(instance, network, billed, case.pinned, dict(case.bandwidth))
    for form in case.forms or instance.forms:
        FORMS[form].build(fleet)
    if case.pinned:
        _refuse_pins(instance, network)
    _tally(instance, network)
    moves: dict[State, Fraction] = {}
    for request in instance.workload.classes:
        if request.share:
            moves |= {
                State("done", request.name): -request.share,
                State("arrived", request.name): request.share,
            }
    network.add(Activity(LOAD, LOAD, LOAD, moves))
    return network


def _refuse_pins(instance: Instance, network: Network) -> None:
    """Say which pinned counts cannot hold."""
    for site, roles in instance.fix.items():
        for role, count in roles.items():
            pin = f"at least {role}@{site}"
            room = max((network.most(p) for p in network.pools.values() if p.takes.get(pin)), default=0)
            if room < count:
                reason = f"{count} cards are pinned, {room} can be"
                network.add(Refusal(f"fix of {role} at {site}", reason, str(room), str(count)))


def _tally(instance: Instance, network: Network) -> None:
    """Add the sum of alike pools over the sites of one server entry as a pool of its own.

    Sites of one entry are alike, so a proof that may only split single sites would go through all ways to
    deal the same totals out; splitting the totals first avoids that. Two stocks without slack tie them.
    """
    for server in instance.servers:
        alike: dict[str, list[Pool]] = {}
        for pool in network.pools.values() if server.count > 1 else ():
            if pool.replica is not None and pool.replica.site in server.sites:
                alike.setdefault(pool.name.replace(f"@{pool.replica.site}/", f"@{server.name}/"), []).append(
                    pool
                )
        for name, pools in alike.items():
            over, under = f"over all {name}", f"under all {name}"
            network.add(Stock(over, 0))
            network.add(Stock(under, 0))
            most = sum(network.most(pool) for pool in pools)
            for pool in pools:
                network.pools[pool.name] = replace(pool, takes={**pool.takes, over: 1, under: -1})
            network.add(Pool(f"all {name}", {over: -1, under: 1}, most=most, tally=True))


def _purchases(instance: Instance, case: Case, network: Network) -> Iterator[Pool]:
    """The pools that supply cards."""
    cards = instance.cards
    if case.floor == "drawn":
        for site, server in instance.sites.items():
            if server.cards:
                price = cards[server.card].price
                cost = price.amount if price else None
                yield Pool(f"draw@{site}", {f"cards@{site}": -1}, cards=1, cost=cost, most=server.cards)
    declared: dict[str, int] = {}
    for server in instance.sites.values():
        declared[server.card] = declared.get(server.card, 0) + server.cards
    wanted = case.kinds or tuple(declared)
    if case.unit == "card":
        for card in wanted:
            price = cards[card].price
            limit = case.at_most or 10 * max(1, declared.get(card, 0))
            stock = f"purchases of {card}"
            network.add(Stock(stock, limit, f"at most {limit} {card} cards may be bought"))
            for site, server in instance.sites.items():
                if server.card == card:
                    takes = {f"cards@{site}": -1, stock: 1}
                    yield Pool(f"buy {card}@{site}", takes, cards=1, cost=price.amount if price else None)
    elif case.unit == "server":
        for site, server in instance.sites.items():
            if server.cards and server.card in wanted:
                price = cards[server.card].price
                cost = price.amount * server.cards if price else None
                takes = {f"cards@{site}": -server.cards}
                yield Pool(
                    f"buy server@{site}", takes, cards=server.cards, cost=cost, most=case.at_most or 10
                )
    elif case.unit is not None:
        for offer in instance.offers:
            if case.unit not in ("offers", offer.name):
                continue
            stock = f"purchases of {offer.name}"
            network.add(Stock(stock, case.at_most or offer.at_most, f"bundles of {offer.name}"))
            prices = [cards[card].price for card in offer.cards]
            cost = None
            if offer.price is not None:
                cost = offer.price.amount
            elif all(prices):
                cost = sum(
                    (p.amount * n for p, n in zip(prices, offer.cards.values(), strict=True) if p),
                    Fraction(0),
                )
            places = [
                [s for s, server in instance.sites.items() if server.card == card] for card in offer.cards
            ]
            for chosen in product(*places):
                takes = {f"cards@{site}": -n for site, n in zip(chosen, offer.cards.values(), strict=True)}
                size = sum(offer.cards.values())
                yield Pool(f"buy {offer.name}@{'+'.join(chosen)}", {**takes, stock: 1}, cards=size, cost=cost)
