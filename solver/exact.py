"""A sparse linear system, solved in rational numbers.

Bases of our programs are nearly triangular, so eliminating the shortest row first keeps them sparse.
"""

from __future__ import annotations

from fractions import Fraction

Row = dict[int, Fraction]
LARGEST = 600  # unknowns; beyond it the caller keeps floats


def solve(rows: list[Row], right: list[Fraction]) -> dict[int, Fraction] | None:
    """The only solution of `rows` x = `right`, or None where there is not exactly one.

    rows: one mapping from unknown to coefficient per equation; as many equations as unknowns.
    """
    unknowns = {j for row in rows for j in row}
    if len(unknowns) != len(rows) or len(rows) > LARGEST:
        return None
    work = [(dict(row), value) for row, value in zip(rows, right, strict=True)]
    holders: dict[int, set[int]] = {}
    for i, (row, _) in enumerate(work):
        for j in row:
            holders.setdefault(j, set()).add(i)
    left = set(range(len(work)))
    order: list[tuple[int, int]] = []
    while left:
        pivot = min(left, key=lambda i: (len(work[i][0]), i))
        row, value = work[pivot]
        if not row:
            return None
        column = min(row, key=lambda j: (len(holders[j]), j))
        left.discard(pivot)
        for j in row:
            holders[j].discard(pivot)
        order.append((pivot, column))
        for i in list(holders[column]):
            other, other_value = work[i]
            factor = other[column] / row[column]
            for j, amount in row.items():
                changed = other.get(j, 0) - factor * amount
                if changed:
                    other[j] = Fraction(changed)
                    holders[j].add(i)
                else:
                    other.pop(j, None)
                    holders[j].discard(i)
            work[i] = (other, other_value - factor * value)
    found: dict[int, Fraction] = {}
    for pivot, column in reversed(order):
        row, value = work[pivot]
        rest = sum((amount * found[j] for j, amount in row.items() if j != column), Fraction(0))
        found[column] = (value - rest) / row[column]
    return found
