"""A thousand variants of the opening, each a plan with a proof that was checked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from inferplan import sweep
from inferplan.models.documents import read_document
from measure import Row

OPENING = Path(__file__).resolve().parents[2] / "instances" / "opening.yaml"
TARGET = 100


def grid(each: int) -> dict[str, list[str]]:
    """Batches, bandwidths and lengths of answers, `each` of all three."""
    return {
        "engine.decode_batch": [str(4 * i) for i in range(1, each + 1)],
        "links.left-right.bandwidth": [f"{5 * i} GB/s" for i in range(1, each + 1)],
        "workload.classes.chat.output_tokens": [str(128 * i + 1) for i in range(1, each + 1)],
    }


def rows(small: bool) -> Iterator[Row]:
    begin = time.process_time()
    plans = [row.plan for row in sweep(read_document(OPENING), grid(2 if small else 10))]
    seconds = time.process_time() - begin
    proven = sum(plan.status == "optimal" and plan.certificate.verified for plan in plans)
    rate = len(plans) / seconds
    yield Row(
        f"sweep of {len(plans):,} variants",
        f"{seconds:.1f} s of one core, {proven:,} proven",
        f"{rate:.0f} /s",
        f"at least {TARGET} /s",
        rate >= TARGET and proven == len(plans),
    )
