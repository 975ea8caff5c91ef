"""Ideal chunked prefill: every idle cycle of decode steps does prefill. A bound, not a plan to deploy."""

from __future__ import annotations

from ..fleet import Fleet
from ..network import Refusal, State


def chunked(fleet: Fleet) -> None:
    """One activity arrived -> done on two rows, arithmetic and memory traffic, each as if alone."""
    for column in fleet.columns("chunked", "chunked", handed_over=False):
        engine, replica = column.engine, column.replica
        if engine.measured:
            fleet.network.add(
                Refusal(
                    f"chunked on {replica.card} at {replica.site}",
                    "measured rates do not say how arithmetic and traffic overlap",
                    "roofline",
                    "measured rates",
                )
            )
            continue
        arithmetic, traffic = fleet.pool(column, ("arithmetic", "traffic"))
        for request in column.requests:
            stage = engine.chunked(request, replica.batch or 1)
            arrived, done = State("arrived", request.name), State("done", request.name)
            uses = {arithmetic: stage.arithmetic, traffic: stage.traffic}
            fleet.activity(request, "chunked", column.label, arrived, done, uses)
