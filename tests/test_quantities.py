"""Numbers with units: exact, told apart, shown so that they read back, and refused where they are none."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inferplan.models import quantities as q
from inferplan.models.quantities import BANDWIDTH, COMPUTE, DURATION, RATE, SIZE, Price, Unit
from pydantic import TypeAdapter, ValidationError

UNITS = (SIZE, DURATION, RATE, BANDWIDTH, COMPUTE)
EXACT = settings(derandomize=True, deadline=None, max_examples=150)
GIGA = Fraction(10**9)


def name(unit: Unit) -> str:
    return unit.kind.replace(" ", "-")


def adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def message(kind: Any, value: object) -> str:
    """What a schema type says about a value that it refuses."""
    with pytest.raises(ValidationError) as caught:
        adapter(kind).validate_python(value)
    return str(caught.value.errors()[0]["msg"])


# ---------------------------------------------------------------------------------------------- units


READ: list[tuple[Unit, str, Fraction]] = [
    (SIZE, "80 GB", 80 * GIGA),
    (SIZE, "80GB", 80 * GIGA),
    (SIZE, " 80  GB ", 80 * GIGA),
    (SIZE, "74.5 GiB", Fraction(745, 10) * 2**30),
    (SIZE, "1 kB", Fraction(1000)),
    (SIZE, "1 KiB", Fraction(1024)),
    (SIZE, "1 MiB", Fraction(2**20)),
    (SIZE, "1 TiB", Fraction(2**40)),
    (SIZE, "1.5 PB", Fraction(15 * 10**14)),
    (SIZE, "0 B", Fraction(0)),
    (SIZE, "0", Fraction(0)),
    (DURATION, "10 s", Fraction(10)),
    (DURATION, "5 ms", Fraction(5, 1000)),
    (DURATION, "5 us", Fraction(5, 10**6)),
    (DURATION, "5 \u00b5s", Fraction(5, 10**6)),
    (DURATION, "5 ns", Fraction(5, 10**9)),
    (DURATION, "2 min", Fraction(120)),
    (DURATION, "1/3 h", Fraction(1200)),
    (DURATION, "1 d", Fraction(86400)),
    (DURATION, "1e3 s", Fraction(1000)),
    (DURATION, "1E-3 s", Fraction(1, 1000)),
    (DURATION, "+5 s", Fraction(5)),
    (DURATION, ".5 s", Fraction(1, 2)),
    (DURATION, "5. s", Fraction(5)),
    (DURATION, "0", Fraction(0)),
    (RATE, "3.5/s", Fraction(7, 2)),
    (RATE, "3.5 /s", Fraction(7, 2)),
    (RATE, "210/min", Fraction(7, 2)),
    (RATE, "1/3/s", Fraction(1, 3)),
    (RATE, "12600/h", Fraction(7, 2)),
    (RATE, "302400/d", Fraction(7, 2)),
    (BANDWIDTH, "25 GB/s", 25 * GIGA),
    (BANDWIDTH, "200 Gbit/s", 25 * GIGA),
    (BANDWIDTH, "200 Gbps", 25 * GIGA),
    (BANDWIDTH, "25 GiB/s", Fraction(25 * 2**30)),
    (BANDWIDTH, "8 bit/s", Fraction(1)),
    (BANDWIDTH, "1 Tbit/s", Fraction(10**12, 8)),
    (BANDWIDTH, "4.096 TB/s", Fraction(4096 * 10**9)),
    (BANDWIDTH, "1/3 MB/s", Fraction(10**6, 3)),
    (COMPUTE, "312 TFLOP/s", Fraction(312 * 10**12)),
    (COMPUTE, "312 TFLOPS", Fraction(312 * 10**12)),
    (COMPUTE, "1 PFLOP/s", Fraction(10**15)),
    (COMPUTE, "5 FLOP/s", Fraction(5)),
    (COMPUTE, "989.4 TFLOP/s", Fraction(9894 * 10**11)),
]


@pytest.mark.parametrize(("unit", "text", "value"), READ, ids=[f"{name(u)} {t}" for u, t, _ in READ])
def test_read(unit: Unit, text: str, value: Fraction) -> None:
    found = unit.read(text)
    assert isinstance(found, Fraction) and found == value


def test_bits_and_bytes_decimal_and_binary() -> None:
    assert BANDWIDTH.read("8 Gbit/s") == BANDWIDTH.read("1 GB/s") != BANDWIDTH.read("1 GiB/s")
    assert SIZE.read("1 GiB") / SIZE.read("1 GB") == Fraction(2**30, 10**9)
    assert DURATION.read("1000 us") == DURATION.read("1 ms") == DURATION.read("1/1000 s")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        ("0.1000", Fraction(1, 10)),
        ("1e3", Fraction(1000)),
        ("1/3", Fraction(1, 3)),
        ("-2.5", Fraction(-5, 2)),
        ("1e30", Fraction(10**30)),
        ("1e-30", Fraction(1, 10**30)),
        ("0", Fraction(0)),
        ("0e40", Fraction(0)),
        (0.1, Fraction(1, 10)),
        (1e22, Fraction(10**22)),
        (7, Fraction(7)),
        (Fraction(1, 7), Fraction(1, 7)),
        ("0.30000000000000004", Fraction(30000000000000004, 10**17)),
    ],
)
def test_plain_numbers(text: object, value: Fraction) -> None:
    """No text passes through a float: 0.1 is one tenth."""
    assert q.read_number(text) == value


NUMBERS = st.one_of(
    st.integers(1, 10**15).map(Fraction),
    st.decimals("0.000001", "999999999", places=6).map(Fraction),
    st.fractions(Fraction(1, 10**6), 10**9, max_denominator=10**6),
)


@pytest.mark.parametrize("unit", UNITS, ids=name)
@EXACT
@given(number=NUMBERS, data=st.data())
def test_show_then_read(unit: Unit, number: Fraction, data: st.DataObject) -> None:
    """Every unit that is read, and every unit that is shown, gives the same number again."""
    spelled = data.draw(st.sampled_from(sorted(unit.factors)))
    value = unit.read(f"{q.show_number(number)} {spelled}")
    assert value == number * unit.factors[spelled]
    shown = unit.show(value)
    assert unit.read(shown) == value
    assert unit.show(unit.read(shown)) == shown  # plans are compared as text


@EXACT
@given(st.one_of(NUMBERS, NUMBERS.map(lambda n: -n), st.just(Fraction(0))))
def test_show_number(number: Fraction) -> None:
    assert q.read_number(q.show_number(number)) == number


@EXACT
@given(st.floats(1e-29, 1e29))
def test_floats_by_their_shortest_decimal(number: float) -> None:
    assert float(q.read_number(number)) == number
    assert q.read_number(number) == Fraction(repr(number))


def test_what_is_shown() -> None:
    assert RATE.show(Fraction(7, 2)) == "3.5/s"
    assert BANDWIDTH.show(25 * GIGA) == "25 GB/s"
    assert SIZE.show(Fraction(0)) == "0 B"
    assert DURATION.show(Fraction(5, 10**6)) == "5 us"
    assert COMPUTE.show(Fraction(10**14, 3)) == "100/3 TFLOP/s"
    assert q.show_number(Fraction(-1, 8)) == "-0.125"


@pytest.mark.parametrize(
    "text",
    [
        "3." + "5" * 60 + "/s",
        "2." + "5" * 38 + "/s",
        "1/" + "7" * 90 + "/s",
        "7" * 97 + "/h",
    ],
)
def test_show_then_read_long(text: str) -> None:
    """What was read must read back, or a plan cannot be checked; else it must not be read."""
    try:
        value = RATE.read(text)
    except ValueError:
        return
    assert RATE.read(RATE.show(value)) == value


# ---------------------------------------------------------------------------------------------- refusals


NEVER = {
    "": "is not a",
    "   ": "is not a",
    "GB/s": "is not a",
    "nan s": "is not a",
    "NaN": "is not a",
    "inf s": "is not a",
    "-inf": "is not a",
    "Infinity": "is not a",
    "true": "is not a",
    "abc": "is not a",
    "-": "is not a",
    ".": "is not a",
    "0x10 s": "has the unit 'x10 s'",
    "1_000 s": "has the unit '_000 s'",
    "1,5 s": "has the unit ',5 s'",
    "1 000 s": "has the unit '000 s'",
    "5 parsec": "has the unit 'parsec'",
    "5 Gb/s": "has the unit 'Gb/s'",
    "5 gb": "has the unit 'gb'",
    "5 GB/s/s": "has the unit 'GB/s/s'",
    "5 s s": "has the unit 's s'",
    "1/0 s": "a division by zero",
    "1e99 s": "absurdly large or small",
    "1e-99 s": "absurdly large or small",
    "1e999999999 s": "absurdly large or small",
    "1e-999999999 s": "absurdly large or small",
    "9" * 101 + " s": "is a number of too many digits",
    "9" * 1_000_000 + " s": "is not a finite number",
    "1/" + "9" * 5000 + " s": "is not a finite number",
}


@pytest.mark.parametrize("unit", UNITS, ids=name)
@pytest.mark.parametrize(("text", "words"), NEVER.items(), ids=lambda t: t[:20])
def test_never_a_quantity(unit: Unit, text: str, words: str) -> None:
    with pytest.raises(ValueError) as caught:
        unit.read(text)
    assert words in str(caught.value) or (not text.strip(" 0123456789") and "unit" in str(caught.value))
    assert str(caught.value).endswith(f"; give {unit.accepted}")


@pytest.mark.parametrize("unit", UNITS, ids=name)
@pytest.mark.parametrize("value", [True, None, [1], {"s": 1}, 1, 1.5, float("nan"), float("inf"), b"1 s"])
def test_never_a_quantity_of_another_type(unit: Unit, value: object) -> None:
    """Numbers of Python carry no unit either."""
    with pytest.raises(ValueError, match="give a number"):
        unit.read(value)


@pytest.mark.parametrize(
    ("unit", "text", "words"),
    [
        (SIZE, "80", "has no unit"),
        (SIZE, "80 GB/s", "no unit of bytes"),
        (SIZE, "80 Gbit", "no unit of bytes"),
        (SIZE, "-1 GB", "is negative"),
        (SIZE, "-0.0001 B", "is negative"),
        (SIZE, "1e29 PB", "absurdly large"),
        (DURATION, "10", "has no unit"),
        (DURATION, "10 GB", "no unit of time"),
        (DURATION, "10 sec", "no unit of time"),
        (DURATION, "-1 s", "is negative"),
        (DURATION, "1e-25 ns", "absurdly large or small"),
        (DURATION, "1e30 d", "absurdly large"),
        (DURATION, "10:30", "has the unit ':30'"),
        (RATE, "3.5", "has no unit"),
        (RATE, "0/s", "is zero"),
        (RATE, "0", "has no unit"),
        (RATE, "-1/s", "is negative"),
        (RATE, "3.5 s", "no unit of rate"),
        (RATE, "3.5 requests/s", "no unit of rate"),
        (RATE, "3.5/ms", "no unit of rate"),
        (BANDWIDTH, "25", "has no unit"),
        (BANDWIDTH, "200 Gb/s", "write Gbit/s for bits, GB/s for bytes"),
        (BANDWIDTH, "25 GB", "no unit of bandwidth"),
        (BANDWIDTH, "0 GB/s", "is zero"),
        (BANDWIDTH, "0", "has no unit"),
        (BANDWIDTH, "5 bps", "no unit of bandwidth"),
        (BANDWIDTH, "25 gB/s", "no unit of bandwidth"),
        (COMPUTE, "312", "has no unit"),
        (COMPUTE, "312 TFLOP", "no unit of arithmetic rate"),
        (COMPUTE, "312 T", "no unit of arithmetic rate"),
        (COMPUTE, "0 FLOP/s", "is zero"),
        (COMPUTE, "312 TOPS", "no unit of arithmetic rate"),
    ],
)
def test_refused(unit: Unit, text: str, words: str) -> None:
    with pytest.raises(ValueError) as caught:
        unit.read(text)
    assert words in str(caught.value)
    assert unit.accepted in str(caught.value)


@pytest.mark.parametrize("digits", ["٢٥", "２５", "२५", "2५"])
def test_digits_of_other_scripts(digits: str) -> None:
    """Nobody types them on purpose, and they print like others: refused."""
    for unit, suffix in ((BANDWIDTH, "GB/s"), (RATE, "/s")):
        with pytest.raises(ValueError):
            unit.read(f"{digits} {suffix}")
    with pytest.raises(ValueError):
        q.read_number(digits)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "abc",
        "1_000",
        "nan",
        "inf",
        "1/0",
        "1e99",
        "1e-99",
        "1e999999999",
        "9" * 101,
        "9" * 10**6,
        "1e",
        "1 2",
        "--1",
        "1/2/3",
        "0x10",
        "1/-3",
        True,
        None,
        [],
        float("nan"),
        float("inf"),
        1e300,
        10**31,
    ],
    ids=lambda v: repr(v)[:15],
)
def test_never_a_number(value: object) -> None:
    with pytest.raises(ValueError):
        q.read_number(value)


# ---------------------------------------------------------------------------------------------- schema types


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (q.Efficiency, "0.5", Fraction(1, 2)),
        (q.Efficiency, "1", Fraction(1)),
        (q.Efficiency, "1/3", Fraction(1, 3)),
        (q.Share, "0", Fraction(0)),
        (q.Share, "1", Fraction(1)),
        (q.Amount, "0", Fraction(0)),
        (q.Amount, "1e20", Fraction(10**20)),
        (q.Tokens, "1", 1),
        (q.Tokens, "1e3", 1000),
        (q.Tokens, "8192.0", 8192),
        (q.Tokens, 100_000_000, 10**8),
        (q.CachedTokens, "0", 0),
        (q.Count, "0", 0),
        (q.Count, "1e7", 10**7),
        (q.PositiveCount, "1", 1),
        (q.ServerCount, "1000", 1000),
    ],
)
def test_accepted(kind: Any, value: object, found: object) -> None:
    assert adapter(kind).validate_python(value) == found


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (q.Efficiency, "0", "out of range"),
        (q.Efficiency, "1.0000000001", "out of range"),
        (q.Efficiency, "-0.5", "out of range"),
        (q.Efficiency, "50%", "not a finite number"),
        (q.Efficiency, "nan", "not a finite number"),
        (q.Efficiency, "", "finite"),
        (q.Share, "-0.1", "out of range"),
        (q.Share, "1.1", "out of range"),
        (q.Amount, "-1", "out of range"),
        (q.Amount, "1e31", "absurdly large"),
        (q.Tokens, "0", "out of range"),
        (q.Tokens, "-3", "out of range"),
        (q.Tokens, "1.5", "not a whole number"),
        (q.Tokens, "100000001", "out of range"),
        (q.Tokens, "1e999999999", "finite"),
        (q.Tokens, "8k", "not a finite number"),
        (q.Tokens, "1/0", "division by zero"),
        (q.CachedTokens, "-1", "out of range"),
        (q.Count, "-1", "out of range"),
        (q.Count, "10000001", "out of range"),
        (q.Count, True, "truth value"),
        (q.PositiveCount, "0", "out of range"),
        (q.ServerCount, "1001", "out of range"),
        (q.ServerCount, "0", "out of range"),
    ],
)
def test_schema_types_refuse(kind: Any, value: object, words: str) -> None:
    text = message(kind, value)
    assert words in text and "; give a" in text


# ---------------------------------------------------------------------------------------------- prices


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("2/h", Price(Fraction(2), True)),
        ("2.5", Price(Fraction(5, 2), False)),
        ("0", Price(Fraction(0), False)),
        ("24/d", Price(Fraction(1), True)),
        (" 1e3/h ", Price(Fraction(1000), True)),
    ],
)
def test_price(text: str, price: Price) -> None:
    assert adapter(q.Money).validate_python(text) == price


@pytest.mark.parametrize(
    "text",
    [
        "2/h",
        "2.5",
        "0",
        "24/d",
        "0.07/h",
        "2.5/d",
        "1/d",
    ],
)
def test_price_shown_then_read(text: str) -> None:
    money = adapter(q.Money)
    price = money.validate_python(text)
    assert money.validate_python(money.dump_python(price, mode="json")) == price


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-1/h", "negative"),
        ("-1", "negative"),
        ("2/s", "per 's'"),
        ("2/", "not a finite number"),
        ("2 EUR", "finite number"),
        ("", "finite number"),
        ("/h", "finite number"),
        ("nan", "finite number"),
        ("$2/h", "finite number"),
        ("1e99", "absurdly large"),
        ("free", "finite number"),
        ("2/h/h", "not a finite number"),
    ],
)
def test_price_refused(text: str, words: str) -> None:
    found = message(q.Money, text)
    assert words in found and "an amount of at least 0" in found
