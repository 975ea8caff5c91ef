"""Ways to distribute the work. A form is a function that adds to a fleet's network; nothing else knows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..fleet import Fleet
from .chunked import chunked
from .colocated import colocated
from .disaggregated import disaggregated


@dataclass(frozen=True, slots=True)
class FormEntry:
    """A form, how it is called in words, and whether it is only a bound."""

    build: Callable[[Fleet], None]
    title: str
    ideal: bool = False


FORMS: dict[str, FormEntry] = {
    "colocated": FormEntry(colocated, "co-located"),
    "chunked": FormEntry(chunked, "ideal chunked (a bound)", ideal=True),
    "disaggregated": FormEntry(disaggregated, "prefill-decode split"),
}
