"""What of a cached prefix can be reused, in tokens (digest sections 8 and 10)."""

from __future__ import annotations


def reusable_tokens(tokens: int, page: int) -> int:
    """Tokens of a repeated prompt that whole pages cover; the last token is always processed again."""
    return (tokens - 1) // page * page


def registered_tokens(requests: int, tokens: int) -> int:
    """Tokens that requests register for prefetching; once a limit is reached, later arrivals go without."""
    return requests * tokens
