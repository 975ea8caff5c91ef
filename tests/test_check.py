"""A saved plan holds as it is, and any change to what it states is refuted."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import inferplan
import pytest
from inferplan.models.plan import Plan
from pydantic import ValidationError

INSTANCES = Path(__file__).parent.parent / "instances"
At = tuple[str | int, ...]


def opening() -> Plan:
    return inferplan.solve(inferplan.load(INSTANCES / "opening.yaml"))


def missed() -> Plan:
    return inferplan.solve(inferplan.load(INSTANCES / "opening.yaml", {"goals.deadline": "20 s"}))


def infeasible() -> Plan:
    changes = {"goals.deadline": "20 s", "objective": "min-cards"}
    return inferplan.solve(inferplan.load(INSTANCES / "opening.yaml", changes))


def cards() -> Plan:
    return inferplan.min_cards(inferplan.load(INSTANCES / "long-output.yaml"), aim="sustain")


def pairs() -> Plan:
    return inferplan.min_cards(inferplan.load(INSTANCES / "long-output.yaml"), unit="pairs")


def copies() -> Plan:
    return inferplan.min_cards(inferplan.load(INSTANCES / "long-output.yaml"), unit="copies")


def routed() -> Plan:
    return inferplan.solve(inferplan.load(INSTANCES / "two-sites.yaml"))


def cost() -> Plan:
    return inferplan.solve(inferplan.load(INSTANCES / "cheapest.yaml"))


PLANS = [opening, missed, infeasible, cards, pairs, copies, routed, cost]


def scalars(tree: Any, at: At = ()) -> Iterator[At]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else None
    if items is None:
        yield at
        return
    for key, value in items:
        yield from scalars(value, (*at, key))


def shape(at: At) -> tuple[object, ...]:
    """A path without the numbers of list items and the names of proofs' entries."""
    parts: list[object] = ["#" if isinstance(part, int) else part for part in at]
    if "prices" in parts or "binding" in parts:
        parts = parts[: parts.index("prices" if "prices" in parts else "binding") + 2]
    return tuple(parts)


def changed(value: Any) -> list[Any]:
    """Other values of the same kind."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, float):
        return [value * (1 + 1e-9) if value else 1e-9, value + 1]
    if value is None:
        return [1]
    return [value + "x", "1" if value != "1" else "2"]


def refuted(tree: dict[str, Any]) -> bool:
    try:
        plan = Plan.model_validate(tree)
    except ValidationError:
        return True
    return bool(inferplan.check(plan))


@pytest.mark.parametrize("make", PLANS)
def test_plans_hold_after_a_trip_through_a_file(make: Any, tmp_path: Path) -> None:
    plan = make()
    path = tmp_path / "plan.json"
    path.write_text(plan.to_json())
    assert inferplan.check(path) == []
    assert plan.certificate.verified


@pytest.mark.parametrize("make", PLANS)
def test_any_changed_scalar_is_refuted(make: Any) -> None:
    """One path of every shape, each changed in every way. Prices may change where the bound still follows."""
    tree = json.loads(make().to_json())
    seen: set[tuple[object, ...]] = set()
    kept: list[At] = []
    for at in scalars(tree):
        premise = at == ("asked", "gap")  # what the user calls good enough, within 0 and 1
        if at[0] != "solver" and not premise and shape(at) not in seen:
            seen.add(shape(at))
            kept.append(at)
    missed_changes = []
    for at in kept:
        node = tree
        for part in at[:-1]:
            node = node[part]
        value = node[at[-1]]
        for other in changed(value):
            node[at[-1]] = other
            if not refuted(tree) and not {"prices", "binding"} & set(at):
                missed_changes.append((at, value, other))
        node[at[-1]] = value
    assert missed_changes == []


def test_lists_cut_or_doubled_are_refuted() -> None:
    tree = json.loads(opening().to_json())
    for field in ("pools", "routes", "links", "alternatives", "worth", "bottlenecks", "loads", "assumptions"):
        for new in (tree[field][:-1], [*tree[field], tree[field][-1]]):
            assert refuted({**tree, field: new}), field
    for field in ("tree", "claims"):
        certificate = tree["certificate"]
        for new in (certificate[field][:-1], [*certificate[field], certificate[field][-1]]):
            assert refuted({**tree, "certificate": {**certificate, field: new}}), field


@pytest.mark.parametrize("number", ["1e999999999", "1p999999999", "1/0", "nan", "9" * 5000, "", "1_0", "inf"])
def test_monstrous_numbers_neither_hang_nor_crash(number: str) -> None:
    tree = json.loads(opening().to_json())
    for field in ("rate_exact", "bound_exact"):
        worse = copy.deepcopy(tree)
        worse["certificate"][field] = number
        assert refuted(worse)
    worse = copy.deepcopy(tree)
    worse["routes"][0]["rate_exact"] = number
    assert refuted(worse)


def test_a_plan_of_another_instance_is_refuted() -> None:
    other = inferplan.load(INSTANCES / "opening.yaml", {"workload.rate": "3.6/s"})
    assert any("another instance" in problem for problem in inferplan.check(opening(), other))
    assert inferplan.check(opening(), INSTANCES / "opening.yaml") == []


def test_check_needs_no_solver() -> None:
    code = (
        "import sys; import inferplan.solver.check as c; "
        "print([m for m in ('pyomo', 'highspy', 'numpy') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "not json", '{"format": "inferplan.plan/2"}', '{"a": 1, "a": 2}', '{"rate": NaN}'],
)
def test_files_that_are_no_plans(text: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(inferplan.InputError, match=r"plan\.json"):
        inferplan.check(path)
