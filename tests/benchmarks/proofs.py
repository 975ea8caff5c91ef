"""Proofs of plans for 8 to 128 cards: boxes, bytes on paper, time to verify."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path

import inferplan
from inferplan import Instance
from inferplan.models.case import build
from inferplan.models.network import Network
from inferplan.solver.claims import tree_out
from inferplan.solver.optimize import Solver
from inferplan.solver.verify import Judge, Node, proven_bound
from measure import Row, fastest, ms

OPENING = Path(__file__).resolve().parents[2] / "instances" / "opening.yaml"
MOST_BOXES, MOST_SECONDS = 27, 5e-3


def grown(cards: int) -> Instance:
    """The opening with other counts, half of them of each kind, and all three forms; the link as it is."""
    half = str(cards // 2)
    return inferplan.load(
        OPENING,
        {
            "servers.left.cards": half,
            "servers.right.cards": half,
            "forms": "[colocated, chunked, disaggregated]",
        },
    )


def verify(network: Network, tree: Sequence[Node]) -> Fraction:
    """The bound that a proof shows, from scratch."""
    return proven_bound(Judge(network), tree)


def rows(small: bool) -> Iterator[Row]:
    for cards in (8,) if small else (8, 16, 32, 64, 128):
        network = build(grown(cards))
        optimum = Solver(network).highest_rate()
        boxes = sum(node.pool is None for node in optimum.tree)
        size = len(json.dumps(tree_out(optimum.tree)))
        (seconds,) = fastest([partial(verify, network, optimum.tree)], 3 if small else 15)
        holds = optimum.closed and verify(network, optimum.tree) == optimum.bound
        yield Row(
            f"proof for {cards} cards",
            f"{boxes} boxes, {size:,} bytes" + ("" if holds else ", NOT PROVEN"),
            f"{boxes} boxes, {ms(seconds)}",
            f"{MOST_BOXES} boxes, {ms(MOST_SECONDS)}",
            boxes <= MOST_BOXES and seconds <= MOST_SECONDS and holds,
        )
