"""Numbers with units: read exactly, keep exactly, show shortly.

A quantity is a `fractions.Fraction` in one base unit (bytes, bytes/s, FLOP, FLOP/s, seconds, requests/s).
Text such as ``25 GB/s`` is read without ever passing through a float; a number without a unit is refused
wherever a unit is meant. Bits and bytes, GB and GiB are told apart by their names: ``b``/``B`` alone is
not accepted for bits, since ``200 Gb/s`` is read both ways in the field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?(?:/\d+)?", re.ASCII)
_LARGEST = Fraction(10) ** 30

_SI = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
_BYTES = {f"{p}B": Fraction(f) for p, f in (_SI | _BINARY).items()}
_FLOP = {f"{p}FLOP": Fraction(f) for p, f in _SI.items()}


def read_number(text: object) -> Fraction:
    """Read a plain number (``8192``, ``0.5``, ``1e3``, ``1/3``) exactly.

    Python floats are read by their shortest decimal, so ``0.1`` is one tenth.
    Raises ValueError for anything else, NaN, infinities and numbers above 1e30.
    """
    if isinstance(text, Fraction):
        number = text
    elif isinstance(text, bool):
        raise ValueError("a truth value is not a number")
    elif isinstance(text, int):
        number = Fraction(text)
    else:
        digits = (repr(text) if isinstance(text, float) else str(text)).strip()
        if len(digits) > 200 or not _NUMBER.fullmatch(digits):
            raise ValueError("not a finite number")
        top, _, bottom = digits.partition("/")
        if not bottom and len(top) > 50:
            raise ValueError("a number of too many digits")
        exponent = re.search(r"[eE]([+-]?\d+)", top)
        if exponent and abs(int(exponent[1])) > 40:
            raise ValueError("absurdly large or small")
        if bottom and not int(bottom):
            raise ValueError("a division by zero")
        number = Fraction(top) / (int(bottom) if bottom else 1)
    if abs(number) > _LARGEST or (number and abs(number) < 1 / _LARGEST):
        raise ValueError("absurdly large or small")
    return number


def show_number(number: Fraction) -> str:
    """The shortest exact text of a number: a decimal where one ends, else ``n/d``."""
    rest, shift = number.denominator, 0
    while rest % 10 == 0:
        rest, shift = rest // 10, shift + 1
    twos = fives = 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = shift + max(twos, fives)
    if rest != 1 or places > 40:
        return f"{number.numerator}/{number.denominator}"
    if not places:
        return str(number.numerator)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-places]}.{digits[-places:]}"


@dataclass(frozen=True, slots=True)
class Unit:
    """One kind of quantity: its units as factors to the base unit, its range, and how it is shown."""

    kind: str
    factors: Mapping[str, Fraction]
    shown: tuple[str, ...]  # candidates for output, largest first
    example: str
    zero: bool = False
    hint: str = ""

    @property
    def accepted(self) -> str:
        return f"a number {'of at least 0' if self.zero else 'above 0'} with a unit, such as {self.example}"

    def read(self, value: object) -> Fraction:
        """Read a quantity exactly, in base units. A Fraction (or 0 where allowed) passes as it is."""
        if isinstance(value, Fraction):
            number = value
        else:
            text = str(value).strip()
            found = _NUMBER.match(text)
            if not found:
                raise self._error(f"is not a {self.kind}")
            unit = text[found.end() :].strip()
            try:
                number = read_number(found[0])
            except ValueError as error:
                raise self._error(f"is {error}") from None
            if unit not in self.factors:
                if not unit and number == 0 and self.zero:
                    return number
                trouble = f"has the unit {unit!r}, which is no unit of {self.kind}" if unit else "has no unit"
                raise self._error(trouble + self.hint)
            number *= self.factors[unit]
        if number < 0 or (number == 0 and not self.zero):
            raise self._error("is negative" if number < 0 else "is zero")
        if number > _LARGEST or (number and number < 1 / _LARGEST):
            raise self._error("is absurdly large or small")
        return number

    def show(self, number: Fraction) -> str:
        """Exact text in the largest unit of `shown` that leaves a number of at least 1."""
        unit = next((u for u in self.shown if number >= self.factors[u]), self.shown[-1])
        return f"{show_number(number / self.factors[unit])}{'' if unit.startswith('/') else ' '}{unit}"

    def _error(self, trouble: str) -> PydanticCustomError:
        return PydanticCustomError(
            "quantity", "{trouble}; give {accepted}", {"trouble": trouble, "accepted": self.accepted}
        )


SIZE = Unit("bytes", _BYTES, ("TB", "GB", "MB", "kB", "B"), "80 GB or 74.5 GiB", zero=True)
DURATION = Unit("time", _SECONDS, ("s", "ms", "us", "ns"), "10 s, 5 us or 2 min", zero=True)
RATE = Unit(
    "rate",
    {f"/{u}": 1 / f for u, f in _SECONDS.items() if u in ("s", "min", "h", "d")},
    ("/s",),
    "3.5/s or 210/min",
)
BANDWIDTH = Unit(
    "bandwidth",
    {f"{u}/s": f for u, f in _BYTES.items()}
    | {f"{p}bit/s": Fraction(f, 8) for p, f in _SI.items()}
    | {f"{p}bps": Fraction(f, 8) for p, f in _SI.items() if p},
    ("TB/s", "GB/s", "MB/s", "kB/s", "B/s"),
    "25 GB/s or 200 Gbit/s",
    hint=" (write Gbit/s for bits, GB/s for bytes)",
)
COMPUTE = Unit(
    "arithmetic rate",
    {f"{u}/s": f for u, f in _FLOP.items()} | {f"{p}FLOPS": Fraction(f) for p, f in _SI.items() if p},
    ("TFLOP/s", "GFLOP/s", "FLOP/s"),
    "312 TFLOP/s",
)
_HOURLY = {"/h": Fraction(1), "/d": Fraction(1, 24)}


def _number(kind: str, accepted: str, low: Fraction | None, high: Fraction | None, *, open_low: bool) -> Any:
    def read(value: object) -> Fraction:
        try:
            number = read_number(value)
        except ValueError as error:
            raise PydanticCustomError(
                "number", "is {error}; give {accepted}", {"error": str(error), "accepted": accepted}
            ) from None
        too_low = low is not None and (number < low or (open_low and number == low))
        if too_low or (high is not None and number > high):
            raise PydanticCustomError("number", "is out of range; give {accepted}", {"accepted": accepted})
        return number

    return (
        PlainValidator(read),
        PlainSerializer(show_number, return_type=str),
        WithJsonSchema(
            {"anyOf": [{"type": "number"}, {"type": "string"}], "description": f"{kind}: {accepted}"}
        ),
    )


def _quantity(unit: Unit) -> Any:
    return (
        PlainValidator(unit.read),
        PlainSerializer(unit.show, return_type=str),
        WithJsonSchema(
            {
                "type": "string",
                "description": f"{unit.kind}: {unit.accepted}",
                "examples": [unit.example.split(" or ")[0].split(",")[0]],
            }
        ),
    )


def _integer(accepted: str, low: int, high: int) -> Any:
    def read(value: object) -> int:
        try:
            number = read_number(value)
        except ValueError as error:
            raise PydanticCustomError(
                "integer", "is {error}; give {accepted}", {"error": str(error), "accepted": accepted}
            ) from None
        if number.denominator != 1 or not low <= number <= high:
            raise PydanticCustomError(
                "integer",
                "is {what}; give {accepted}",
                {
                    "what": "not a whole number" if number.denominator != 1 else "out of range",
                    "accepted": accepted,
                },
            )
        return int(number)

    return PlainValidator(read), WithJsonSchema(
        {"type": "integer", "minimum": low, "maximum": high, "description": accepted}
    )


def _read_price(value: object) -> Price:
    if isinstance(value, Price):
        return value
    text = str(value).strip()
    number, slash, unit = text.rpartition("/") if re.search(r"/\s*[a-z]+$", text) else (text, "", "")
    accepted = "an amount of at least 0, per hour (2.5/h) or without a time (2.5)"
    try:
        amount = read_number(number)
    except ValueError as error:
        raise PydanticCustomError("price", "is {e}; give {a}", {"e": str(error), "a": accepted}) from None
    if amount < 0 or (slash and f"/{unit}" not in _HOURLY):
        raise PydanticCustomError(
            "price", "is {e}; give {a}", {"e": "negative" if amount < 0 else f"per {unit!r}", "a": accepted}
        )
    return Price(amount * (_HOURLY[f"/{unit}"] if slash else 1), hourly=bool(slash))


@dataclass(frozen=True, slots=True)
class Price:
    """An amount of money: per hour, or in any one unit that all prices of the instance share."""

    amount: Fraction
    hourly: bool

    def __str__(self) -> str:
        return show_number(self.amount) + ("/h" if self.hourly else "")


Bytes = Annotated[Fraction, *_quantity(SIZE)]
BytesPerSecond = Annotated[Fraction, *_quantity(BANDWIDTH)]
FlopPerSecond = Annotated[Fraction, *_quantity(COMPUTE)]
Seconds = Annotated[Fraction, *_quantity(DURATION)]
PerSecond = Annotated[Fraction, *_quantity(RATE)]
Money = Annotated[
    Price,
    PlainValidator(_read_price),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number"}, {"type": "string"}],
            "description": "price: 2.5/h, or 2.5 without a time",
        }
    ),
]
Efficiency = Annotated[
    Fraction,
    *_number(
        "efficiency", "a fraction above 0 and at most 1, such as 0.5", Fraction(0), Fraction(1), open_low=True
    ),
]
Share = Annotated[
    Fraction,
    *_number("share", "a number from 0 to 1, such as 0.25 or 1/3", Fraction(0), Fraction(1), open_low=False),
]
Amount = Annotated[Fraction, *_number("amount", "a number of at least 0", Fraction(0), None, open_low=False)]
PositiveAmount = Annotated[Fraction, *_number("amount", "a number above 0", Fraction(0), None, open_low=True)]
Tokens = Annotated[int, *_integer("a whole number of tokens from 1 to 100000000", 1, 10**8)]
CachedTokens = Annotated[int, *_integer("a whole number of tokens from 0 to 100000000", 0, 10**8)]
Count = Annotated[int, *_integer("a whole number from 0 to 10000000", 0, 10**7)]
ServerCount = Annotated[int, *_integer("a whole number from 1 to 1000", 1, 1000)]
PositiveCount = Annotated[int, *_integer("a whole number from 1 to 10000000", 1, 10**7)]
