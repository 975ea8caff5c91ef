"""Rows of a sweep as JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from .sweep import Row


def split(values: str) -> list[str]:
    """Split `a,b,c` at commas that stand outside brackets."""
    found, depth, start = [], 0, 0
    for i, letter in enumerate(values):
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            found.append(values[start:i].strip())
            start = i + 1
    found.append(values[start:].strip())
    return [value for value in found if value]


def as_json(rows: Sequence[Row]) -> str:
    """`inferplan.sweep/1`: fields, rate, counts, bound and proof of each row."""
    items = [
        {
            "set": dict(row.fields),
            "status": row.plan.status,
            "rate": row.plan.rate,
            "rate_exact": row.plan.certificate.rate_exact,
            "bound": None if row.plan.objective is None else row.plan.objective.bound,
            "cards": row.plan.cards,
            "counts": row.plan.certificate.counts,
            "sha256": row.plan.instance.sha256,
            "certificate": row.plan.certificate.model_dump(mode="json", exclude={"claims", "binding"}),
        }
        for row in rows
    ]
    return json.dumps({"format": "inferplan.sweep/1", "rows": items}, indent=1) + "\n"


def as_csv(rows: Sequence[Row]) -> str:
    """One line per row: the fields that vary, then status, rate, bound, cards and counts."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = list(rows[0].fields) if rows else []
    writer.writerow([*fields, "status", "rate_per_s", "bound", "proven_gap", "cards", "counts"])
    for row in rows:
        plan = row.plan
        bound = "" if plan.objective is None else repr(plan.objective.bound)
        counts = "; ".join(f"{n} {pool}" for pool, n in plan.certificate.counts.items())
        values = [row.fields[f] for f in fields]
        writer.writerow(
            [
                *values,
                plan.status,
                repr(plan.rate),
                bound,
                repr(plan.certificate.proven_gap),
                plan.cards,
                counts,
            ]
        )
    return out.getvalue()
