"""The chapter's figures against what the product computes, within the printed precision."""

from __future__ import annotations

import importlib
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any

import chapter_functions
import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
CLAIMS = REPOSITORY.parent / "shared" / "book" / "claims.yaml"
CHAPTER = chapter_functions.read_chapter()
LISTED: dict[str, dict[str, Any]] = {it["id"]: it for claims in CHAPTER["sections"].values() for it in claims}
UNPRINTED = Fraction(1, 10**5)  # relative, where the chapter prints nothing
SEVEN_DIGITS = Fraction(1, 10**6)

needs_claims = pytest.mark.skipif(not CLAIMS.exists(), reason="../shared/book/claims.yaml is not here")


def exact(figure: int | float) -> Fraction:
    return Fraction(str(figure))


def close(value: Any, figure: Any, precision: Any, relative: Fraction = UNPRINTED) -> bool:
    """Whether a value agrees with a figure: equal where that is meant, else within the tolerance."""
    if isinstance(figure, bool):
        return value is figure
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
        return False
    tolerance = relative * abs(exact(figure)) if precision is None else exact(precision) / 2
    return abs(value - exact(figure)) <= tolerance


def parts(it: dict[str, Any], field: str) -> dict[str, Any]:
    """A field of a claim by part; a claim with one figure has one part, without a name."""
    figures = it[field] if isinstance(it[field], dict) else {"": it[field]}
    return {name: figure for name, figure in figures.items() if name not in it.get("without", {})}


@pytest.mark.parametrize("name", LISTED)
def test_claim(name: str) -> None:
    it = LISTED[name]
    found = chapter_functions.value(name)
    values = found if isinstance(found, dict) else {"": found}
    expected, computed = parts(it, "expected"), parts(it, "computed")
    assert values.keys() == expected.keys()
    for part, value in values.items():
        assert close(value, expected[part], it["precision"]), f"{part} {value!r} is not {expected[part]}"
        assert close(value, computed[part], None, SEVEN_DIGITS), f"{part} {value!r} is not {computed[part]}"


def test_every_claim_has_its_function_and_no_other_is_registered() -> None:
    assert chapter_functions.REGISTRY.keys() == LISTED.keys()
    assert not LISTED.keys() & CHAPTER["left_out"].keys()


@pytest.mark.parametrize("name", LISTED)
def test_the_functions_that_the_report_names_are_the_products(name: str) -> None:
    named = chapter_functions.REGISTRY[name].by
    assert named
    for path in named:
        package, module, *inside = path.split(".")
        assert package in ("models", "solver")
        reduce(getattr, inside, importlib.import_module(f"inferplan.{package}.{module}"))


def test_the_report_is_current() -> None:
    assert chapter_functions.REPORT.read_text("utf-8") == chapter_functions.render(), (
        "run `python tests/chapter_functions.py`"
    )


@pytest.mark.parametrize(
    ("value", "figure", "precision", "agrees"),
    [
        (Fraction("4.5546"), 4.55, 0.01, True),
        (Fraction("4.556"), 4.55, 0.01, False),
        (Fraction(1019.5), 1020, 1, True),
        (Fraction("1019.49"), 1020, 1, False),
        (Fraction("2.0000001"), 2, 0, False),
        (2, 2, 0, True),
        (1, True, 0, False),
        (True, 1, 0, False),
        (Fraction("10.34801"), 10.348, None, True),
        (Fraction("10.3482"), 10.348, None, False),
        (0, 0, None, True),
        (Fraction(1, 10**9), 0, None, False),
    ],
)
def test_what_agrees_with_a_figure(value: Any, figure: Any, precision: Any, agrees: bool) -> None:
    assert close(value, figure, precision) == agrees


@pytest.fixture(scope="module")
def claims() -> list[dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    tree: dict[str, list[dict[str, Any]]] = yaml.load(CLAIMS.read_text("utf-8"), Loader=loader)
    return tree["claims"]


@needs_claims
def test_figures_are_the_shared_ones(claims: list[dict[str, Any]]) -> None:
    shared = {it["id"]: it for it in claims}
    for section, listed in CHAPTER["sections"].items():
        for it in listed:
            claim = shared[it["id"]]
            assert it["expected"] == claim["expected"], it["id"]
            assert it["unit"] == claim["unit"], it["id"]
            assert it["precision"] == claim["printed_precision"], it["id"]
            assert it["computed"] == claim["computed"], it["id"]
            assert section == claim["section"], it["id"]
            assert "tolerance_unit" not in claim, it["id"]


@needs_claims
def test_no_computed_claim_of_these_sections_is_forgotten(claims: list[dict[str, Any]]) -> None:
    sections = CHAPTER["sections"].keys()
    wanted = {it["id"] for it in claims if it["kind"] == "computed" and it["section"] in sections}
    assert wanted == LISTED.keys() | CHAPTER["left_out"].keys()
