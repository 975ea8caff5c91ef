"""A saved plan holds as it is, and any change to what it states is refuted."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
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


def nothing_fits() -> Plan:
    return inferplan.solve(inferplan.load(INSTANCES / "opening.yaml", {"model": "llama-3.1-70b"}))


@cache
def made(make: Callable[[], Plan]) -> Plan:
    """A plan that several tests share."""
    return make()


def nodes(tree: Any, at: At = ()) -> Iterator[tuple[At, Any]]:
    """Every path with its value, branches included."""
    yield at, tree
    for key, value in (
        tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    ):
        yield from nodes(value, (*at, key))


def replaced(tree: Any, at: At, value: Any) -> Any:
    """A tree that differs at one path only; the rest is shared."""
    if not at:
        return value
    other = copy.copy(tree)
    other[at[0]] = value if len(at) == 1 else replaced(tree[at[0]], at[1:], value)
    return other


def without(tree: Any, at: At) -> Any:
    """A tree without the key at a path."""
    parent: Any = tree
    for part in at[:-1]:
        parent = parent[part]
    return replaced(tree, at[:-1], {key: value for key, value in parent.items() if key != at[-1]})


def bent(tree: Any, at: At, value: Any) -> Iterator[Any]:
    """The tree with the structure at a path changed: cut, doubled, emptied, a key removed or added."""
    if isinstance(value, list):
        others: list[Any] = [[*value, value[-1]], value[:-1], []] if value else [["x"]]
    elif isinstance(value, dict):
        others = [{**value, "other": 1}, {}]
    else:
        others = [{}, []] + ["x"] * (value is None)
    yield from (replaced(tree, at, other) for other in others)
    if isinstance(at[-1], str):
        yield without(tree, at)


def test_any_bent_structure_is_refuted() -> None:
    """Once for every shape of path over all plans. What reads back to the same plan is no change."""
    seen: set[tuple[object, ...]] = set()
    missed_changes = []
    for make in (opening, missed, infeasible, cards, routed, cost, pairs, copies):
        plan = made(make)
        tree = json.loads(plan.to_json())
        for at, value in nodes(tree):
            premise = at in ((), ("asked", "gap"), ("certificate", "budget")) or at[0] == "solver"
            if premise or {"prices", "binding"} & set(at) or shape(at) in seen:
                continue
            seen.add(shape(at))
            for other in bent(tree, at, value):
                try:
                    read = Plan.model_validate_json(json.dumps(other))
                except ValidationError:
                    continue
                unread = at[-1] == "bound" and "claims" in at  # a fault of its own, below
                if read != plan and not unread and not inferplan.check(read):
                    missed_changes.append((make.__name__, at, value))
    assert len(seen) > 250 and missed_changes == []


def test_prices_may_change_where_the_bound_still_follows() -> None:
    """Every price of one proof, changed and left out: refuted, or the very same statement proven again."""
    plan = made(opening)
    tree = json.loads(plan.to_json())
    kept = 0
    for at in scalars(tree):
        if "prices" not in at or at[:2] != ("certificate", "tree"):
            continue
        value = str(next(v for path, v in nodes(tree) if path == at))
        for other in (replaced(tree, at, "1" + value), replaced(tree, at, "0"), without(tree, at)):
            read = Plan.model_validate(other)
            if not inferplan.check(read):
                kept += 1
                assert read.model_dump(exclude={"certificate"}) == plan.model_dump(exclude={"certificate"})
                assert read.certificate.bound_exact == plan.certificate.bound_exact
    assert kept < 10  # most prices matter


@pytest.mark.parametrize(
    ("make", "at", "value"),
    [
        (cards, ("certificate", "claims", 0, "bound"), "nan"),
        (cost, ("certificate", "claims", 0, "bound"), "1"),
        (opening, ("certificate", "budget"), {"cards": 3}),
        (cards, ("certificate", "budget", "cost"), 3),
        (nothing_fits, ("asked", "case", "unit"), "x"),
        (nothing_fits, ("asked", "case", "at_most"), -1),
        (nothing_fits, ("asked", "case", "pinned"), False),
        (nothing_fits, ("asked", "case", "more_cards"), {"nowhere": 9}),
        (nothing_fits, ("asked", "case", "kinds"), ["b200"]),
    ],
)
def test_fields_beside_the_point_are_refuted_too(make: Any, at: At, value: Any) -> None:
    tree = json.loads(made(make).to_json())
    assert refuted(replaced(tree, at, value))


MONSTERS = [
    "1e999999999",
    "-1e-999999999",
    "1p999999999",
    "1p-999999999",
    "1p" + "9" * 3000,
    "1p2000",
    "9" * 3999,
    "-1p-2000",
    "1/" + "9" * 3990,
    "9" * 5000,
    "1/0",
    "0/0",
    "nan",
    "",
    "p",
    "1p",
    "p1",
    "1_0",
    "0x10",
    "\u00b2",
]


@pytest.mark.parametrize("number", MONSTERS, ids=lambda number: number[:14])
def test_monstrous_numbers_anywhere(number: str) -> None:
    """In every kind of place that holds an exact number: refuted, or (prices that do not matter) still proven."""
    for make in (opening, cards):
        tree = json.loads(made(make).to_json())
        for at in (
            ("asked", "required_rate"),
            ("routes", 0, "rate_exact"),
            ("certificate", "rate_exact"),
            ("certificate", "bound_exact"),
            ("certificate", "claims", 0, "rate"),
            ("certificate", "claims", 0, "routes", 0, "rate_exact"),
        ):
            assert refuted(replaced(tree, at, number)), at
        prices = [at for at in scalars(tree) if "prices" in at or "binding" in at]
        for at in prices[:: max(1, len(prices) // 12)]:
            refuted(replaced(tree, at, number))


@pytest.mark.parametrize("number", [10**18, 10**400, -(10**400), 10**4000, 1e308, -1e308, 5e-324, 0, -1])
def test_monstrous_counts(number: float, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for make in (opening, cards):
        tree = json.loads(made(make).to_json())
        certificate = tree["certificate"]
        split = next((i for i, node in enumerate(certificate["tree"]) if "at" in node), None)
        ways = [("rate",), ("cards",), ("copies",), ("pools", 0, "replicas"), ("objective", "bound")]
        ways += [("certificate", "counts", next(iter(certificate["counts"]))), ("certificate", "boxes")]
        ways += [("certificate", "tree", split, key) for key in ("at", "below", "above") if split is not None]
        for at in ways:
            path.write_text(json.dumps(replaced(tree, at, number)))
            try:
                assert inferplan.check(path), at
            except inferplan.InputError:
                pass
            except OverflowError:
                assert at[-1] == "at" and number == -(10**400)  # the fault of BEYOND_FLOATS


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b"", 2, "is not valid JSON"),
        (b"\0\1\2", 2, "binary"),
        (b"{}\n\xff", 2, ":2: is not UTF-8"),
        (b"[" * 100_000, 2, "nested too deeply"),
        (b'{"format": "inferplan.plan/2"}', 2, "inferplan.plan/1"),
        (b'{"format": "inferplan.instance/1"}', 2, "inferplan.plan/1"),
        (b"name: opening\n", 2, "is not valid JSON"),
        (None, 2, "cannot be read"),
    ],
    ids=["empty", "binary", "latin", "deep", "version", "kind", "yaml", "missing"],
)
def test_files_that_are_no_plans_from_the_shell(
    content: bytes | None, status: int, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    if content is not None:
        path.write_bytes(content)
    tool = Path(sys.executable).parent / "inferplan"
    ran = subprocess.run([tool, "check", path], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (status, "")
    assert str(path) in ran.stderr and words in ran.stderr and ran.stderr.count("\n") == 1


def test_check_from_the_shell(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    tool = Path(sys.executable).parent / "inferplan"

    def check(*more: object) -> tuple[int, str, str]:
        ran = subprocess.run([tool, "check", path, *more], capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout, ran.stderr

    plan = made(opening)
    path.write_text(plan.to_json())
    status, out, err = check(INSTANCES / "opening.yaml")
    assert (status, err) == (0, "") and "hold" in out
    status, out, err = check(INSTANCES / "prefix-hit.yaml")
    assert (status, out) == (1, "") and "another instance" in err
    assert check(tmp_path / "none.yaml")[0] == 2
    path.write_text(plan.to_json().replace('"replicas": 4', '"replicas": 5', 1))
    status, out, err = check()
    assert (status, out) == (1, "") and "replicas" in err and "Traceback" not in err
