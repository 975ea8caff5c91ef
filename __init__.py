"""inferplan: which accelerator cards do what, so that an LLM service holds its load, with a proof.

>>> import inferplan
>>> plan = inferplan.solve(inferplan.load("instances/opening.yaml"))
>>> plan.summary, round(plan.rate, 6), plan.certificate.rate_exact
('4P4D', 4.554607, '1953125/428824')
>>> inferplan.check(plan)                        # what does not hold: nothing
[]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .models.documents import InputError
    from .models.instance import Instance
    from .models.plan import Plan
    from .solver.answer import min_cards, solve
    from .solver.check import check
    from .solver.load import load
    from .solver.optimize import Limits
    from .solver.sweep import sweep

__version__ = "0.1.0"
__all__ = ["InputError", "Instance", "Limits", "Plan", "check", "load", "min_cards", "solve", "sweep"]

_HOME = {
    "InputError": "models.documents",
    "Instance": "models.instance",
    "Plan": "models.plan",
    "Limits": "solver.optimize",
    "check": "solver.check",
    "load": "solver.load",
    "min_cards": "solver.answer",
    "solve": "solver.answer",
    "sweep": "solver.sweep",
}


def __getattr__(name: str) -> Any:
    """Load public names when they are first used, so that importing inferplan is cheap."""
    if name not in _HOME:
        raise AttributeError(f"module 'inferplan' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
