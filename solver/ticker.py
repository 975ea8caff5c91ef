"""One line of progress on a terminal, for work that takes longer than a second."""

from __future__ import annotations

import sys
import time


class Ticker:
    """Shows the best rate, the bound and the gap on standard error; leaves no trace behind."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._last = self._began
        self._shown = False

    def __call__(self, best: float, bound: float) -> None:
        now = time.monotonic()
        if now - self._began < 1 or now - self._last < 0.2:
            return
        self._last, self._shown = now, True
        gap = f"{(bound - best) / best:.4%}" if best > 0 else "-"
        sys.stderr.write(f"\r\033[K{now - self._began:5.1f} s  best {best:.6g}  bound {bound:.6g}  gap {gap}")
        sys.stderr.flush()

    def close(self) -> None:
        """Wipe the line."""
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
