"""The program as text: one small deployment per family of constraints, reviewable line by line.

INFERPLAN_GOLDEN=1 pytest tests/test_program.py writes the files anew.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from inferplan.models import program
from inferplan.models.case import Case, build
from inferplan.models.instance import Instance
from inferplan.models.network import LOAD
from inferplan.solver.highs import arrays
from oracles.drawing import Raw, deployments

GOLDEN = Path(__file__).parent / "golden"
CARD = {"bf16": "1 TFLOP/s", "memory": "1 GB", "bandwidth": "1 GB/s", "efficiency": "1"}
MODEL = {
    "num_hidden_layers": 1, "hidden_size": 4, "intermediate_size": 8, "num_attention_heads": 1,
    "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 8,
}  # fmt: skip


def deployment(**changes: Any) -> Instance:
    """Cards with measured rates: 1/2 second a prompt on `p`, 1/4 second an answer on `d`."""
    raw: dict[str, Any] = {
        "model": MODEL,
        "cards": {"p": CARD, "d": CARD},
        "servers": [{"name": "a", "card": "p", "cards": 2}, {"name": "b", "card": "d", "cards": 3}],
        "links": [{"name": "net", "between": ["a", "b"], "bandwidth": "4 kB/s"}],
        "engines": {c: {"prefill_rate": "2/s", "decode_rate": "4/s"} for c in ("p", "d")},
        "engine": {"handover_bytes_per_token": 1000, "decode_batch": 1},
        "workload": {"classes": [{"name": "c", "input_tokens": 2, "output_tokens": 3}]},
        "forms": ["disaggregated"],
    }
    return Instance.model_validate(raw | changes)


TWO = [
    {"name": "c", "share": "1/4", "input_tokens": 2, "output_tokens": 3},
    {"name": "e", "share": "3/4", "input_tokens": 4, "output_tokens": 1},
]
HUB = [
    {"name": "up", "from": "a", "to": "hub", "bandwidth": "4 kB/s"},
    {"name": "down", "between": ["hub", "b"], "duplex": "half", "bandwidth": "2 kB/s"},
]
FAMILIES: dict[str, tuple[dict[str, Any], Case]] = {
    "capacity": ({"forms": ["colocated"]}, Case()),
    "stock": ({"forms": ["colocated", "disaggregated"], "links": []}, Case()),
    "two-classes": ({"workload": {"classes": TWO}, "links": []}, Case()),
    "hops": ({"links": HUB, "switches": ["hub"]}, Case()),
    "one-channel": ({"handover": {"one-channel": "net"}}, Case()),
    "pinned": ({"fix": {"a": {"prefill": 1}}, "links": []}, Case()),
    "purchases": ({"forms": ["colocated"]}, Case(floor="empty", unit="card")),
    "alike": ({"forms": ["colocated"], "servers": [{"name": "a", "card": "p", "cards": 2, "count": 2}], "links": []}, Case()),
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_golden(family: str, tmp_path: Path) -> None:
    changes, case = FAMILIES[family]
    model = program.build(build(deployment(**changes), case)).model
    written = tmp_path / "model.lp"
    model.write(str(written), io_options={"symbolic_solver_labels": True})
    text = "\n".join(line.rstrip() for line in written.read_text().splitlines()) + "\n"
    golden = GOLDEN / f"{family}.lp"
    if os.environ.get("INFERPLAN_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_scales_are_powers_of_two() -> None:
    built = program.build(build(deployment()))
    for scale in (built.rate_scale, *built.row_scale.values()):
        top, bottom = scale.numerator, scale.denominator
        assert (top & (top - 1), bottom & (bottom - 1)) == (0, 0)


@settings(derandomize=True, deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(deployments(most_cells=10**6))
def test_rows_and_columns_stand_where_proofs_look_for_them(raw: Raw) -> None:
    """Columns: activities, then pools. Rows: states, resources, stocks. Numbers: exact ones, rounded once."""
    network = build(Instance.model_validate(raw))
    built = program.build(network)
    found = arrays(built.model)
    names = [("state", str(s)) for s in built.states]
    names += [("resource", r) for r in built.resources] + [("stock", k) for k in built.stocks]
    rate = built.rate_scale
    expected: dict[tuple[int, int], float] = {}
    for j, column in enumerate([*network.activities.values(), *network.pools.values()]):
        parts = (
            (("state", getattr(column, "moves", {}), 1), ("resource", getattr(column, "uses", {}), rate))
            if j < len(network.activities)
            else (("stock", getattr(column, "takes", {}), 1), ("resource", getattr(column, "gives", {}), -1))
        )
        for kind, amounts, scale in parts:
            for name, amount in amounts.items():
                if (kind, str(name)) in names and amount:
                    own = built.row_scale[name] if kind == "resource" else 1
                    expected[names.index((kind, str(name))), j] = float(amount * scale * own)
    got = {
        (i, int(j)): float(value)
        for i, (start, end) in enumerate(pairwise(found.starts.tolist()))
        for j, value in zip(found.index[start:end], found.value[start:end], strict=True)
        if value
    }
    assert got == expected
    assert found.cost.tolist() == [float(name == LOAD) for name in [*network.activities, *network.pools]]
    assert found.integral.tolist() == [False] * len(network.activities) + [True] * len(network.pools)
    sides = [
        0.0 if kind == "state" else (network.resources[n].fixed or 0) * built.row_scale[n] if kind == "resource"
        else network.stocks[n].have for kind, n in names
    ]  # fmt: skip
    assert found.row_upper.tolist() == [float(side or 0) for side in sides]
