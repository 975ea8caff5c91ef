"""The chapter's role tables, cell by cell, and what it says about each deployment, through the solver."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from chapter_functions import AIMS, CHANNEL, GB, Bench, bench, cleared, in_time, instances, pools, sustained
from inferplan.solver.routes import Point, capacities, used
from inferplan.solver.verify import Judge, proven_bound

TESTS = Path(__file__).resolve().parent
SHARED = TESTS.parents[1] / "shared" / "book" / "scenarios.yaml"
TABLES: dict[str, Any] = yaml.safe_load((TESTS / "scenarios.yaml").read_text("utf-8"))
SCENARIOS: dict[str, dict[str, Any]] = TABLES["scenarios"]
NAMES = list(SCENARIOS)

RATE = Fraction(5, 10**6)  # half of the last of five places
INSTANT = Fraction(5, 10**4)


def agrees(value: Fraction | int | None, figure: float | None, within: Fraction) -> bool:
    """Whether a value rounds to a figure; None is `never` on both sides."""
    if value is None or figure is None:
        return value is figure
    return abs(value - Fraction(str(figure))) <= within


def bench_of(name: str, **more: Any) -> Bench:
    it = SCENARIOS[name]
    load, link = it["load"], it["link"]
    outputs = load["output_tokens"]
    if isinstance(outputs, list):
        outputs = tuple((tokens, f"1/{len(outputs)}") for tokens in outputs)
    return bench(**{
        **it["cards"],
        "outputs": outputs,
        "cached_tokens": load["cached_tokens"],
        "efficiency": Fraction(str(it["efficiency"])),
        "link": Fraction(str(link["GBps"])) * GB,
        "handover_bytes_per_token": link["handoff_bytes"] // load["input_tokens"],
        "extra_decode_flops": it.get("extra_decode_flops", 0),
        **more,
    })  # fmt: skip


def binding(it: Bench, point: Point) -> set[str]:
    """What is used to the full: the link, or all cards of a role."""
    spent, slack = used(point.routes), dict[str, bool]()
    for name, have in capacities(it.solver().network, point.counts).items():
        kind = "link" if name == CHANNEL else name.split("@")[0].split()[-1]
        if have:
            slack[kind] = slack.get(kind, False) or spent.get(name, 0) < have
    return {kind for kind, some in slack.items() if not some}


# -------------------------------------------------------------------------------------------- the tables


def test_the_tables_are_whole() -> None:
    assert len(SCENARIOS) == 14
    for it in SCENARIOS.values():
        a100, h20 = it["cards"].values()
        cells = [(a, h) for a, h, *_ in it["cells"]]
        assert cells == [(a, h) for a in range(a100 + 1) for h in range(h20 + 1)]
        assert (it["load"]["decode_batch"], it["load"]["input_tokens"]) == (32, 8192)
        assert (it["load"]["arrival_per_s"], *it["start_up"].values()) == (3.5, 10, 60)


@pytest.mark.parametrize("name", NAMES)
def test_cells(name: str) -> None:
    """Counts pinned in one solver; a pool's own rate is the rate with all else ample."""
    it = bench_of(name)
    for a100_p, h20_p, mu_p, mu_d, mu in SCENARIOS[name]["cells"]:
        found = {**pools(it, (a100_p, h20_p)), "mu": it.cell(a100_p, h20_p)}
        for part, figure in (("mu_p", mu_p), ("mu_d", mu_d), ("mu", mu)):
            assert agrees(found[part], figure, RATE), (a100_p, h20_p, part, float(found[part]), figure)


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("opening-4p4d", (4, 0)),
        ("opening-4p4d", (0, 0)),
        ("opening-4p4d", (2, 3)),
        ("roles-swapped", (0, 4)),
        ("homogeneous-8xa100", (3, 0)),
        ("prefix-hit-6144", (2, 0)),
        ("output-129", (3, 4)),
        ("slow-link-one-per-second", (0, 1)),
        ("slow-link-one-per-second", (4, 3)),
        ("compact-mla-with-query-work", (4, 0)),
        ("mixed-1025-4097", (1, 1)),
    ],
)
def test_cells_pinned_in_the_instance(name: str, cell: tuple[int, int]) -> None:
    """`fix` from the instance to the proven optimum gives what the table says."""
    (figure,) = [mu for a, h, _, _, mu in SCENARIOS[name]["cells"] if (a, h) == cell]
    it, (a, h) = bench_of(name), cell
    fix = {"left": {"prefill": a, "decode": it.a100 - a}, "right": {"prefill": h, "decode": it.h20 - h}}
    solver = it.pinned(fix)
    best = solver.highest_rate()
    assert best.closed and best.bound == best.point.rate == it.cell(*cell)
    assert agrees(best.point.rate, figure, RATE)
    assert best.point.rate == 0 or sum(best.point.counts.values()) == it.a100 + it.h20


# -------------------------------------------------------------------------------- stage times and optima


@pytest.mark.parametrize("name", NAMES)
def test_stage_seconds(name: str) -> None:
    it = bench_of(name)
    for card in ("a100", "h20"):
        engine, figures = it.engine(card), SCENARIOS[name]["stage_seconds"]
        assert agrees(engine.prefill_seconds(it.request), figures[f"{card}_prefill"], RATE)
        assert agrees(engine.decode_seconds(it.request, 32), figures[f"{card}_decode"], RATE)
    link = SCENARIOS[name]["link"]
    assert it.engine("a100").handover_bytes(it.request) == link["handoff_bytes"]
    assert agrees(it.link_rate, link["handoffs_per_s"], 10 * RATE)


@pytest.mark.parametrize("name", ["opening-4p4d", "output-129", "output-4097"])
def test_mean_context(name: str) -> None:
    assert bench_of(name).request.mean_context == SCENARIOS[name]["load"]["mean_context"]


@pytest.mark.parametrize("name", NAMES)
def test_optimum(name: str) -> None:
    """The rate and its proof; the cells that reach it are the table's, ties included."""
    it, expected = bench_of(name), SCENARIOS[name]["expected"]
    best = it.optimum()
    assert agrees(best.point.rate, expected["mu"], RATE)
    assert best.closed and best.bound == best.point.rate
    assert proven_bound(Judge(it.solver().network), best.tree) <= best.point.rate
    assert [list(cell) for cell in it.best_cells] == SCENARIOS[name]["best_cells"]
    if len(it.best_cells) == 1:
        assert it.best_cell == it.best_cells[0]
    assert binding(it, best.point) == {expected["bottleneck"]}
    assert agrees(it.lp_bound, expected["lp_bound"], RATE)
    assert it.lp_bound >= best.point.rate


@pytest.mark.parametrize("name", NAMES)
def test_goals(name: str) -> None:
    it, expected = bench_of(name), SCENARIOS[name]["expected"]
    assert sustained(it.rate()) == expected["sustains_arrival"]
    assert in_time(it.rate()) == expected["meets_deadline"]
    assert agrees(cleared(it.rate()), expected["drain_instant_s"], INSTANT)
    for form in ("colocated", "chunked"):
        assert agrees(it.rate(form), expected[f"{form}_mu"], RATE)
        assert agrees(cleared(it.rate(form)), expected[f"{form}_drain_s"], INSTANT)


@pytest.mark.parametrize("name", [n for n in NAMES if "focus_cell" in SCENARIOS[n]])
def test_focus_cell(name: str) -> None:
    it, focus = bench_of(name), SCENARIOS[name]["focus_cell"]
    cell = focus["a100_p"], focus["h20_p"]
    for part, value in {**pools(it, cell), "mu": it.cell(*cell)}.items():
        assert agrees(value, focus[part], RATE)
    assert agrees(cleared(it.cell(*cell)), focus["drain_instant_s"], INSTANT)
    assert binding(it, it.solver().at(it.counts(*cell))) == {focus["bottleneck"]}


# ------------------------------------------------------------------------------ several groups, speed-up


@pytest.mark.parametrize("name", [n for n in NAMES if "groups" in SCENARIOS[n]])
def test_copies_of_the_plan(name: str) -> None:
    it, groups = bench_of(name), SCENARIOS[name]["groups"]
    for word, n in {"two": 2, "three": 3, "four": 4}.items():
        if f"mu_{word}" in groups:
            assert agrees(n * it.rate(), groups[f"mu_{word}"], RATE)
            assert agrees(cleared(n * it.rate()), groups[f"drain_{word}_s"], INSTANT)
    for aim, goal in zip(AIMS, ("to_sustain", "for_deadline"), strict=True):
        plan = it.fewest("copies", aim)
        assert (plan.copies, plan.cards) == (groups[f"copies_{goal}"], groups[f"cards_{goal}"])


def test_cards_assigned_together() -> None:
    joint = SCENARIOS["output-4097"]["joint"]
    for cards in (24, 32):
        it, figures = bench_of("output-4097", a100=cards // 2, h20=cards // 2), joint[f"cards{cards}"]
        assert agrees(it.rate(), figures["mu"], RATE)
        assert it.best_cell == (figures["a100_p"], figures["h20_p"])
        assert it.best_cells == [it.best_cell]
    for aim in AIMS:
        assert bench_of("output-4097").fewest("card", aim).cards == joint["fewest_any_mix"][aim]
        assert bench_of("output-4097").fewest("pair", aim).cards == joint["fewest_equal_mix"][aim]


def test_faster_decode() -> None:
    it = TABLES["decode_speed_up"]
    slow, fast = (f"{it['instances'][f'd_rate_{when}']}/s" for when in ("before", "after"))
    for case, decode_rate in (("before", slow), ("kept", fast), ("rebalanced", fast)):
        found = instances(decode_rate, it[case]["d"])
        rates = {**pools(found, (1, 0)), "mu": found.cell(1, 0)}
        assert rates == {part: it[case][part] for part in rates}
    best = instances(fast).pinned({"left": {"prefill": 1}, "right": {"prefill": 0}})
    kept = best.highest_rate().point.counts["decode@right/h20"]
    assert it["kept"]["d"] - kept == it["rebalanced"]["freed_d"]


# --------------------------------------------------------------------------------------------- the source


@pytest.mark.skipif(not SHARED.exists(), reason="../shared/book/scenarios.yaml is not here")
def test_figures_are_the_shared_ones() -> None:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    shared = {it["id"]: it for it in yaml.load(SHARED.read_text("utf-8"), Loader=loader)["scenarios"]}
    assert [name for name, it in shared.items() if "cells" in it] == NAMES
    for name, it in SCENARIOS.items():
        other = shared[name]
        for field in ("cards", "link", "efficiency", "start_up", "stage_seconds"):
            assert it[field] == other[field], (name, field)
        load = {**it["load"], "prefix_hit_on_p_tokens": it["load"]["cached_tokens"]}
        assert {k: load[k] for k in other["workload"]} == other["workload"]
        assert it.get("extra_decode_flops", 0) == other["model_args"].get("extra_step_flops", 0)
        best = [[cell["a100_p"], cell["h20_p"]] for cell in other["expected"].pop("best_cells")]
        assert (it["expected"], it["best_cells"]) == (other["expected"], best)
        assert it.get("focus_cell") == other.get("focus_cell")
        groups = other.get("groups", {})
        joint = {k: v for k, v in groups.pop("joint_assignment", {}).items() if k != "note"}
        assert (it.get("groups", {}), it.get("joint", {})) == (groups, joint)
        columns = ("a100_p", "h20_p", "mu_p", "mu_d", "mu")
        assert it["cells"] == [[cell[column] for column in columns] for cell in other["cells"]]
    faster = TABLES["decode_speed_up"]
    assert faster == {field: shared["decode-speed-up"][field] for field in faster}
