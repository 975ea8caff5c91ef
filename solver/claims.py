"""Proofs on paper: points and trees to and from the JSON of a plan, exact numbers as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from ..models.case import Case
from ..models.network import Network
from ..models.plan import Claim, RouteUse
from ..models.quantities import show_number
from .describe import route_uses
from .routes import Point, Route, trace_route
from .verify import Node, Prices, Refuted


def read_exact(text: object) -> Fraction:
    """A number of a proof: `n/d`, a decimal, or `n*2^-k`. Raises Refuted."""
    if not isinstance(text, str) or len(text) > 4000:
        raise Refuted(f"{text!r} is no exact number")
    try:
        if "p" in text:
            top, _, power = text.partition("p")
            if abs(int(power)) > 2000:
                raise ValueError
            return int(top) * Fraction(2) ** int(power)
        if "e" in text.lower() or "_" in text:
            raise ValueError
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise Refuted(f"{text[:60]!r} is no exact number") from None


def show_exact(number: Fraction) -> str:
    """Exact text: a short decimal, `n/d`, or `npk` for n 2^k where a float's dyadic value is shorter so."""
    bottom = number.denominator
    if bottom > 2**20 and bottom & (bottom - 1) == 0:
        return f"{number.numerator}p-{bottom.bit_length() - 1}"
    return show_number(number)


def tree_out(tree: Sequence[Node]) -> tuple[dict[str, Any], ...]:
    """A proof tree as JSON: splits `{pool, at, below, above}`, leaves `{prices}`, empty leaves `{}`."""
    found: list[dict[str, Any]] = []
    for node in tree:
        if node.pool is not None:
            found.append({"pool": node.pool, "at": node.at, "below": node.below, "above": node.above})
        elif node.prices is None:
            found.append({})
        else:
            found.append({"prices": prices_out(node.prices)})
    return tuple(found)


def prices_out(prices: Prices) -> dict[str, dict[str, str]]:
    """Prices as JSON: exact text by resource, stock and state."""
    parts = {"resources": prices.resources, "stocks": prices.stocks, "states": prices.states}
    return {kind: {name: show_exact(v) for name, v in part.items()} for kind, part in parts.items() if part}


def prices_in(parts: object) -> Prices:
    """Prices from JSON. Raises Refuted for anything that is none."""
    if not isinstance(parts, Mapping) or not set(parts) <= {"resources", "stocks", "states"}:
        raise Refuted("prices of the proof are malformed")
    read = []
    for kind in ("resources", "stocks", "states"):
        part = parts.get(kind, {})
        if not isinstance(part, Mapping):
            raise Refuted("prices of the proof are malformed")
        read.append({str(name): read_exact(value) for name, value in part.items()})
    return Prices(*read)


def tree_in(tree: Sequence[Mapping[str, Any]]) -> list[Node]:
    """A proof tree from JSON values. Raises Refuted for anything that is none."""
    nodes = []
    for item in tree:
        if not item:
            nodes.append(Node())
        elif set(item) == {"pool", "at", "below", "above"}:
            numbers = [item["at"], item["below"], item["above"]]
            if not isinstance(item["pool"], str) or not all(type(n) is int for n in numbers):
                raise Refuted("a split of the proof is malformed")
            nodes.append(Node(item["pool"], *numbers))
        elif set(item) == {"prices"}:
            nodes.append(Node(prices=prices_in(item["prices"])))
        else:
            raise Refuted("a node of the proof is malformed")
    if not nodes:
        raise Refuted("the proof is empty")
    return nodes


def claim(
    about: str,
    case: Case,
    point: Point,
    bound: Fraction | None,
    tree: Sequence[Node],
    budget: dict[str, int] | None = None,
) -> Claim:
    """Write down a proven statement about a case."""
    return Claim(
        about=about,
        case=case,
        budget=budget,
        counts=dict(point.counts),
        routes=route_uses(point.routes),
        rate=show_number(point.rate),
        bound=None if bound is None else show_exact(bound),
        tree=tree_out(tree),
    )


def routes_in(network: Network, routes: Sequence[RouteUse]) -> list[Route]:
    """Routes from their labels and exact rates. Raises Refuted."""
    return [trace_route(network, r.of, r.via, read_exact(r.rate_exact)) for r in routes]
