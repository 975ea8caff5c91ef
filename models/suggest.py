"""One word for a likely slip of the pen."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """`, did you mean 'x'?` where a known word is near, else the empty string."""
    near = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.6)
    return f", did you mean {near[0]!r}?" if near else ""
