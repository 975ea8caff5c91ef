"""Co-located: a card does both stages of a request, one after the other."""

from __future__ import annotations

from ..fleet import Fleet
from ..network import State


def colocated(fleet: Fleet) -> None:
    """One activity arrived -> done on one row of card-seconds, prefill plus decode.

    Written as two activities it would become a pool that shifts work freely between stages, which no
    whole card reaches (4.5926 instead of 3.0170 for the chapter's opening).
    """
    for column in fleet.columns("colocated", "colocated", handed_over=False):
        engine, batch = column.engine, column.replica.batch or 1
        (seconds,) = fleet.pool(column)
        for request in column.requests:
            time = engine.prefill_seconds(request) + engine.decode_seconds(request, batch)
            arrived, done = State("arrived", request.name), State("done", request.name)
            fleet.activity(request, "colocated", column.label, arrived, done, {seconds: time})
