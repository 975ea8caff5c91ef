"""Facts about cards and LLMs, one YAML file each, with the source of every figure."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ..documents import read_document

_FOLDER = Path(__file__).parent


@cache
def names(kind: str) -> tuple[str, ...]:
    """The entries of a kind, `cards` or `llms`, in alphabetical order."""
    return tuple(sorted(path.stem for path in (_FOLDER / kind).glob("*.yaml")))


@cache
def entry(kind: str, name: str) -> dict[str, Any]:
    """One entry as it stands in its file (scalars as text). Raises KeyError for an unknown name."""
    if name not in names(kind):
        raise KeyError(name)
    tree: dict[str, Any] = read_document(_FOLDER / kind / f"{name}.yaml").tree
    return tree
