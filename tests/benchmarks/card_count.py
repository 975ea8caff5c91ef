"""Counts of cards cost nothing: a plan for 400,000 cards of four kinds beside one for sixteen."""

from __future__ import annotations

from collections.abc import Iterator

from inferplan.models.case import build
from inferplan.models.instance import Instance
from inferplan.solver.optimize import Optimum, Solver
from measure import Row, at_most, fastest, ms

KINDS = {
    "a100": "a100-80gb-sxm",
    "h20": "h20-96gb-sxm5",
    "h100": "h100-80gb-sxm",
    "l40s": "l40s-48gb",
}


def fleet(cards: int) -> Instance:
    """So many cards of each kind, every kind with a link to one switch that grows with them."""
    return Instance.model_validate({
        "name": "four-kinds",
        "model": "qwen3-8b",
        "cards": {kind: {"catalog": name} for kind, name in KINDS.items()},
        "servers": [{"name": kind, "card": kind, "cards": cards} for kind in KINDS],
        "switches": ["switch"],
        "links": [
            {"name": f"{kind}-switch", "between": [kind, "switch"], "bandwidth": f"{25 * cards} GB/s"}
            for kind in KINDS
        ],
        "handover": "routed",
        "workload": {
            "rate": "1/s",
            "classes": [{"name": "chat", "input_tokens": 2048, "output_tokens": 513}],
        },
        "engine": {"decode_batch": 32},
        "forms": ["colocated", "disaggregated"],
    })  # fmt: skip


def solve(instance: Instance) -> Optimum:
    return Solver(build(instance)).highest_rate()


def shown(optimum: Optimum, seconds: float) -> str:
    """Time, boxes and gap of a proof."""
    boxes = sum(node.pool is None for node in optimum.tree)
    gap = float(optimum.bound / optimum.point.rate - 1)
    return f"{ms(seconds)}, {boxes} boxes, gap {gap:.0e}" if gap else f"{ms(seconds)}, {boxes} boxes, gap 0"


def rows(small: bool) -> Iterator[Row]:
    many, repeats = (40, 1) if small else (100_000, 7)
    large, little = fleet(many), fleet(4)
    seconds = fastest([lambda: solve(large), lambda: solve(little)], repeats)
    texts = [shown(solve(it), took) for it, took in zip((large, little), seconds, strict=True)]
    yield at_most(
        f"4 kinds x {many:,} cards", f"{texts[0]}; 4 x 4 cards {texts[1]}", seconds[0] / seconds[1], 2
    )
