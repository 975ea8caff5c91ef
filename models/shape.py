"""How one replica spreads over several cards (digest section 2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """Tensor-parallel attention groups of `tp` cards, `ep` of them side by side sharing all experts."""

    tp: int
    ep: int

    @property
    def cards(self) -> int:
        """Cards of one replica."""
        return self.tp * self.ep

    @property
    def kv_copies(self) -> int:
        """Copies of a request's attention state: each group keeps its own."""
        return self.ep
