"""A grid over any fields of an instance: one short plan per variant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ..models.documents import Document, InputError
from ..models.instance import Instance
from ..models.plan import Plan
from .answer import solve
from .load import copy_of, set_field, validate
from .optimize import Limits

MOST_VARIANTS = 100_000


@dataclass(frozen=True, slots=True)
class Row:
    """One variant: the fields that were set, and its plan (without worth and alternatives)."""

    fields: Mapping[str, str]
    plan: Plan


def sweep(
    source: Document | Instance, vary: Mapping[str, Sequence[str]], *, limits: Limits | None = None
) -> Iterator[Row]:
    """Plan every combination of field values, the last field varying fastest.

    source: a document as `documents.read_document` gives it, or an instance.
    vary: values by dotted path, such as {"engine.decode_batch": ["8", "16"]}.
    Raises InputError for the first variant that is no valid instance, before any is solved.
    """
    document = source if isinstance(source, Document) else Document(source.resolved)
    total = 1
    for field, values in vary.items():
        if not values:
            raise InputError(f"--vary {field}: no values; give some, such as {field}=8,16")
        total *= len(values)
    if total > MOST_VARIANTS:
        raise InputError(f"{total} variants; at most {MOST_VARIANTS} are swept at once")
    variants = [dict(zip(vary, values, strict=True)) for values in product(*vary.values())]
    instances = []
    for fields in variants:
        changed = copy_of(document)
        for field, value in fields.items():
            set_field(changed, field, value)
        try:
            instances.append(validate(changed))
        except InputError as error:
            setting = ", ".join(f"{field}={value}" for field, value in fields.items())
            raise InputError(f"with {setting}: {error}") from None
    for fields, instance in zip(variants, instances, strict=True):
        yield Row(fields, solve(instance, limits=limits, explain=False))
