"""The exact optimum against two oracles that know nothing of networks, programs and proofs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from inferplan.models.case import Case, build
from inferplan.models.instance import Instance
from inferplan.solver.optimize import Limits, Optimum, Solver
from inferplan.solver.routes import rate_of, trace_route
from inferplan.solver.verify import Judge, proven_bound
from oracles import cells, cuts
from oracles.drawing import Raw, deployments
from pydantic import ValidationError

SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
QWEN = {
    "name": "qwen3-8b",
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "model_type": "qwen3",
}
A100 = {"bf16": "312 TFLOP/s", "memory": "80 GB", "bandwidth": "2039 GB/s", "efficiency": "0.5"}
H20 = {"bf16": "148 TFLOP/s", "memory": "96 GB", "bandwidth": "4096 GB/s", "efficiency": "0.5"}


def opening(**changes: Any) -> Raw:
    """Four A100 and four H20 with Qwen3-8B, as in the chapter."""
    request = {"input_tokens": 8192, "output_tokens": changes.pop("output", 1025)}
    request["cached_tokens"] = changes.pop("cached", 0)
    raw: Raw = {
        "model": QWEN,
        "cards": {"a100": A100, "h20": H20},
        "servers": [
            {"name": "left", "card": "a100", "cards": 4},
            {"name": "right", "card": "h20", "cards": 4},
        ],
        "links": [{"name": "net", "between": ["left", "right"], "bandwidth": "25 GB/s"}],
        "handover": {"one-channel": "net"},
        "workload": {"classes": [request]},
        "forms": ["disaggregated"],
    }
    return raw | changes


def measured(servers: dict[str, tuple[str, int]], links: list[Raw], **changes: Any) -> Raw:
    """Cards `p` (20 prompts/s, 1 answer/s) and `d` (1 prompt/s, 5 answers/s); a hand-over moves 1000 bytes."""
    card = {"bf16": "1 TFLOP/s", "memory": "1 GB", "bandwidth": "1 GB/s", "efficiency": "1"}
    model = {
        "num_hidden_layers": 1,
        "hidden_size": 4,
        "intermediate_size": 8,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": 4,
        "vocab_size": 8,
    }
    raw: Raw = {
        "model": model,
        "cards": {"p": card, "d": card},
        "engines": {
            "p": {"prefill_rate": "20/s", "decode_rate": "1/s"},
            "d": {"prefill_rate": "1/s", "decode_rate": "5/s"},
        },
        "engine": {"handover_bytes_per_token": 10},
        "servers": [{"name": name, "card": kind, "cards": n} for name, (kind, n) in servers.items()],
        "links": links,
        "workload": {"classes": [{"input_tokens": 100, "output_tokens": 11}]},
        "forms": ["disaggregated"],
    }
    return raw | changes


def proven(instance: Instance, case: Case | None = None) -> Optimum:
    """The optimum, after its routes and its proof have been checked."""
    network = build(instance, case)
    found = Solver(network, Limits()).highest_rate()
    point = found.point
    assert found.closed
    bound = proven_bound(Judge(network), found.tree)
    assert bound == found.bound == point.rate
    if point.rate:
        assert rate_of(network, point.counts, point.routes) == point.rate
        for route in point.routes:
            assert trace_route(network, route.of, route.via, route.rate) == route
    return found


# the oracles against the chapter ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "printed", "digits"),
    [
        ({}, 4.555, 3),
        ({"forms": ["colocated"]}, 3.017, 3),
        ({"forms": ["chunked"]}, 4.166, 3),
        ({"cached": 6144}, 5.688, 3),
        ({"cached": 6144, "forms": ["colocated"]}, 4.897, 3),
        ({"cached": 6144, "forms": ["chunked"]}, 6.765, 3),
        ({"output": 129}, 6.333, 3),
        ({"output": 129, "forms": ["colocated"]}, 5.836, 3),
        ({"output": 129, "forms": ["chunked"]}, 6.757, 3),
        ({"output": 4097}, 1.2596, 4),
        ({"output": 4097, "forms": ["colocated"]}, 1.146, 3),
        ({"output": {1025: 0.5, 4097: 0.5}}, 2.0625, 4),
        ({"output": {1025: 0.5, 4097: 0.5}, "forms": ["colocated"]}, 1.645, 3),
        ({"links": [{"name": "net", "between": ["left", "right"], "bandwidth": "1.207959552 GB/s"}]}, 1.0, 9),
        ({"servers": [{"name": "left", "card": "a100", "cards": 8}]}, 2.834, 3),
    ],
)
def test_oracles_know_the_chapter(changes: dict[str, Any], printed: float, digits: int) -> None:
    if "servers" in changes:  # one place, so any other node will do as the link's far end
        changes = changes | {"switches": ["right"]}
    it = Instance.model_validate(opening(**changes))
    assert round(float(cells.highest_rate(it)), digits) == printed
    assert cells.highest_rate(it) == cuts.highest_rate(it) == proven(it).point.rate


TABLE = [  # rows: A100 in prefill, columns: H20 in prefill (digest, section 4)
    [0, 0.554, 1.108, 1.662, 2.216],
    [1.168, 1.722, 2.276, 2.830, 1.700],
    [2.335, 2.889, 3.411, 2.272, 1.134],
    [3.503, 3.983, 2.844, 1.705, 0.567],
    [4.555, 3.416, 2.277, 1.139, 0],
]


@pytest.mark.parametrize("a100", range(5))
@pytest.mark.parametrize("h20", range(5))
def test_role_table(a100: int, h20: int) -> None:
    fix = {
        "left": {"prefill": a100, "decode": 4 - a100},
        "right": {"prefill": h20, "decode": 4 - h20},
    }
    it = Instance.model_validate(opening(fix=fix))
    assert round(float(cells.highest_rate(it)), 3) == TABLE[a100][h20]
    assert cells.highest_rate(it) == proven(it).point.rate


# by hand ---------------------------------------------------------------------------------------------------


def between(a: str, b: str, rate: str, **more: Any) -> Raw:
    """A link that carries `rate` hand-overs of 1000 bytes a second."""
    return {"name": f"{a}-{b}", "between": [a, b], "bandwidth": f"{rate} kB/s"} | more


@pytest.mark.parametrize(
    ("links", "best"),
    [
        # two p and two d: 20 prompts/s leave a p; 10 answers/s leave the d; one p may decode 1/s itself
        ([between("a", "b", "100")], 11),
        ([between("a", "b", "7")], 8),
        ([between("a", "b", "7"), between("a", "b", "2", name="second")], 10),
        ([between("a", "b", "7", duplex="half")], 8),
        ([{"name": "one", "from": "a", "to": "b", "bandwidth": "7 kB/s"}], 8),
        ([{"name": "one", "from": "b", "to": "a", "bandwidth": "7 kB/s"}], 2),
        ([between("a", "hub", "8"), between("hub", "b", "3")], 5),
        ([between("a", "hub", "8"), between("hub", "b", "4")], 6),
        ([between("a", "hub", "8"), between("hub", "b", "4"), between("a", "b", "2")], 7),
    ],
)
def test_by_hand(links: list[Raw], best: int) -> None:
    it = Instance.model_validate(
        measured({"a": ("p", 2), "b": ("d", 2)}, links, switches=["hub"]),
    )
    assert cells.highest_rate(it) == max(rate for _, rate in cells.every_cell(it)) == best
    assert proven(it).point.rate == best


def test_relay_through_a_server() -> None:
    """a -> b -> c, with cards at b that take and pass on."""
    links = [between("a", "b", "9"), between("b", "c", "4")]
    it = Instance.model_validate(measured({"a": ("p", 1), "b": ("d", 1), "c": ("d", 1)}, links))
    assert (
        cells.highest_rate(it) == max(rate for _, rate in cells.every_cell(it)) == 9
    )  # 5 stay at b, 4 go on to c
    found = proven(it)
    assert found.point.rate == 9
    assert {tuple(r.via) for r in found.point.routes} == {
        ("prefill@a/p", "a->b", "decode@b/d"),
        ("prefill@a/p", "a->b", "b->c", "decode@c/d"),
    }


def test_link_without_limit() -> None:
    """Relaying in circles over unlimited links must not keep the proof from closing."""
    raw: Raw = {
        "cards": {"k0": {"bf16": "70 kFLOP/s", "bandwidth": "9 kB/s", "memory": "1 GB", "efficiency": "0.5"}},
        "servers": [{"name": "s0", "card": "k0", "cards": 2}, {"name": "s1", "card": "k0", "cards": 4}],
        "links": [{"name": "n0", "between": ["s0", "s1"], "bandwidth": "1 B/s"}],
        "workload": {"classes": [{"input_tokens": 1, "output_tokens": {"1": "1/2", "2": "1/2"}}]},
        "forms": ["disaggregated"],
        "engine": {"decode_batch": 1, "extra_decode_flops": 50},
        "model": {
            "num_hidden_layers": 1,
            "hidden_size": 4,
            "intermediate_size": 12,
            "num_attention_heads": 1,
            "num_key_value_heads": 1,
            "head_dim": 2,
            "vocab_size": 10,
        },
    }
    ample = raw | {"links": [raw["links"][0] | {"bandwidth": "1 TB/s"}]}
    best = cells.highest_rate(Instance.model_validate(ample))
    assert proven(Instance.model_validate(ample)).point.rate == best
    assert proven(Instance.model_validate(raw), Case(bandwidth={"n0": None})).point.rate == best


# at random -------------------------------------------------------------------------------------------------


@settings(SETTINGS, max_examples=300)
@given(deployments())
def test_enumeration(raw: Raw) -> None:
    it = Instance.model_validate(raw)
    assert proven(it).point.rate == cells.highest_rate(it)


@settings(SETTINGS, max_examples=60)
@given(deployments(servers=2, most_classes=2, most_cells=60))
def test_every_cell(raw: Raw) -> None:
    """Without skipping any cell of counts: the highest rate, and the fewest cards at that rate."""
    it = Instance.model_validate(raw)
    rates = dict(cells.every_cell(it))
    best = max(rates.values(), default=Fraction(0))
    found = proven(it).point
    assert found.rate == best == cells.highest_rate(it)
    if best:
        pools = build(it).pools
        assert sum(pools[name].cards * n for name, n in found.counts.items()) == min(
            sum(counts) for counts, rate in rates.items() if rate == best
        )


@settings(SETTINGS, max_examples=250)
@given(deployments(servers=2, most_classes=1, several_models=False, switches=False, rich=False))
def test_cuts(raw: Raw) -> None:
    """Both oracles and the solver."""
    it = Instance.model_validate(raw)
    best = cuts.highest_rate(it)
    assert best == cells.highest_rate(it)
    assert proven(it).point.rate == best


# limits ----------------------------------------------------------------------------------------------------


def test_channel_without_hand_overs() -> None:
    """Prefill fits both cards and decode neither, so the one channel exists and nobody uses it."""
    small = {name: card | {"memory": "56 GiB"} for name, card in (("a100", A100), ("h20", H20))}
    it = Instance.model_validate(opening(cards=small, forms=["colocated", "disaggregated"]))
    assert proven(it).point.rate == cells.highest_rate(it) > 3


def test_hand_overs_of_no_bytes_are_refused() -> None:
    """They could circulate without limit; no real hand-over is empty."""
    free = measured({"a": ("p", 1), "b": ("d", 1)}, [between("a", "b", "7")])
    with pytest.raises(ValidationError, match="above 0"):
        Instance.model_validate(free | {"engine": {"handover_bytes_per_token": 0}})


def test_nothing_is_proven_to_be_nothing() -> None:
    """One card cannot do both stages apart: the rate is 0, and so should be its bound."""
    alone = [{"name": "left", "card": "a100", "cards": 0}, {"name": "right", "card": "h20", "cards": 1}]
    it = Instance.model_validate(opening(servers=alone))
    assert cells.highest_rate(it) == cuts.highest_rate(it) == 0
    assert proven(it).bound == 0


def test_one_token_prompts_need_no_landing_buffer() -> None:
    """Design, section 1: a landing buffer of one state, only where KV is handed over."""
    classes = [
        {"name": "short", "share": "1/2", "input_tokens": 10, "output_tokens": 11},
        {"name": "one", "share": "1/2", "input_tokens": 1000, "output_tokens": 1},
    ]
    # weights 472 B + a state of 160 B that lands + 32 requests of 20 tokens at 16 B; the other state is 16 kB
    card = {"bf16": "1 TFLOP/s", "memory": "11 kB", "bandwidth": "1 GB/s", "efficiency": "1"}
    raw = measured({"a": ("p", 1), "b": ("d", 1)}, [between("a", "b", "7")], workload={"classes": classes})
    raw |= {"engine": {}, "cards": {"p": card | {"memory": "1 GB"}, "d": card}}
    assert proven(Instance.model_validate(raw)).point.rate > 0
