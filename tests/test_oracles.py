"""The exact optimum against two oracles that know nothing of networks, programs and proofs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inferplan.models.case import build
from inferplan.models.instance import Instance
from inferplan.solver.optimize import Limits, Optimum, Solver
from inferplan.solver.verify import Judge, proven_bound, rate_of
from oracles import cells, cuts
from oracles.drawing import Raw, deployments

QWEN = {
    "name": "qwen3-8b", "num_hidden_layers": 36, "hidden_size": 4096, "intermediate_size": 12288,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "model_type": "qwen3",
}  # fmt: skip


def proven(instance: Instance) -> Optimum:
    """The optimum, after its routes and its tree have been checked."""
    network = build(instance)
    found = Solver(network, Limits()).highest_rate()
    assert found.closed
    if found.point.rate:
        assert rate_of(network, found.point.counts, found.point.routes) == found.point.rate
    judge = Judge(network)
    assert proven_bound(judge, found.tree) == found.bound == found.point.rate
    return found


SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@settings(SETTINGS, max_examples=200)
@given(deployments())
def test_enumeration(raw: Raw) -> None:
    it = Instance.model_validate(raw)
    assert proven(it).point.rate == cells.highest_rate(it)
