"""Recorded requests (Azure CSV, Mooncake JSON lines), read exactly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

_AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_MOONCAKE = ("timestamp", "input_length", "output_length")
_QWEN_BAILIAN = ("chat_id", "parent_chat_id")
_FORMATS = (
    f"a CSV file with the header {','.join(_AZURE)} (Azure 2023), "
    f"or JSON lines with the keys {', '.join(_MOONCAKE)} (Mooncake)"
)
_MOST_BYTES = 256 * 2**20
_DIGITS = 18  # decimals of a second: arrivals are whole numbers of ticks of 1e-18 s while a file is read
_TICKS = 10**18
_STAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[ T]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,18}))?(?:Z|\+00:00)?", re.ASCII
)
_MILLISECONDS = re.compile(r"(\d{1,18})(?:\.(\d{1,15}))?", re.ASCII)
_TOKENS = re.compile(r"\d{1,9}", re.ASCII)


class TraceError(ValueError):
    """A trace cannot be used: the line, the field, the value found and what is accepted."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests with at least one output token; the three tuples have one entry per request.

    ``arrivals``: seconds after the earliest request kept, exact. ``inputs``, ``outputs``: tokens, from 1.
    ``dropped``: requests of the file without any output token (failed or cancelled), which are left out.
    ``read_trace`` sorts by arrival (requests that arrive together stay in the order of the file); a trace
    made by hand may be in any order. Raises TraceError if the tuples differ in length, are empty or hold less
    than 1 token.
    """

    arrivals: tuple[Fraction, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    dropped: int = 0

    def __post_init__(self) -> None:
        lengths = (len(self.arrivals), len(self.inputs), len(self.outputs))
        if len(set(lengths)) > 1 or not lengths[0]:
            raise TraceError(f"arrivals, inputs, outputs have {lengths} entries; give equally many, from 1")
        for name, tokens in (("inputs", self.inputs), ("outputs", self.outputs)):
            if min(tokens) < 1:
                raise TraceError(f"{name}: {min(tokens)} is not accepted; give at least 1 token per request")

    @property
    def requests(self) -> int:
        """How many requests there are."""
        return len(self.inputs)

    @property
    def seconds(self) -> Fraction:
        """From the first arrival to the last, in seconds."""
        return max(self.arrivals) - min(self.arrivals)

    @property
    def rate(self) -> Fraction:
        """Mean requests per second, from the gaps between arrivals. Raises TraceError if there is no gap."""
        if not self.seconds:
            raise TraceError(
                f"seconds: 0 from the first to the last of {self.requests} request(s), so the trace has no "
                "rate of its own: `rate` must be given (requests per second)"
            )
        return (self.requests - 1) / self.seconds


def read_trace(path: Path) -> Trace:
    """Read an Azure 2023 CSV or Mooncake JSON lines file (told apart by the first non-empty line).

    Azure timestamps are dates in UTC, Mooncake's are milliseconds; both are kept exactly. Raises TraceError.
    """
    lines = [(n, line.strip()) for n, line in enumerate(_text(path).split("\n"), start=1) if line.strip()]
    if not lines:
        raise TraceError(f"{path}: is empty; give {_FORMATS}")
    rows = _mooncake(lines) if lines[0][1].startswith("{") else _azure(lines)
    try:
        found = list(rows)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None
    kept = sorted((row for row in found if row[2]), key=lambda row: row[0])
    if not kept:
        what = "every request has 0 output tokens" if found else "has a header only"
        raise TraceError(f"{path}: {what}; give at least one request with output tokens")
    first = kept[0][0]
    return Trace(
        arrivals=tuple(Fraction(tick - first, _TICKS) for tick, _, _ in kept),
        inputs=tuple(tokens for _, tokens, _ in kept),
        outputs=tuple(tokens for _, _, tokens in kept),
        dropped=len(found) - len(kept),
    )


def _text(path: Path) -> str:
    """The text of a file without byte order mark, every line ending being a line feed."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)  # bounded here, since a pipe or device tells no size
    except IsADirectoryError:
        raise TraceError(f"{path}: is a folder; give {_FORMATS}") from None
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}; give {_FORMATS}") from None
    except ValueError:
        raise TraceError(f"{str(path)!r}: is no usable file name; give {_FORMATS}") from None
    if len(data) > _MOST_BYTES:
        raise TraceError(f"{path}: has more than the {_MOST_BYTES} bytes that are read; give a part of it")
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise TraceError(f"{path}: line {line}: is a binary file; give {_FORMATS}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, byte = data.count(b"\n", 0, error.start) + 1, data[error.start]
        raise TraceError(
            f"{path}: line {line}: the byte 0x{byte:02x} is not UTF-8; save the file as UTF-8 text"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


_Row = tuple[int, int, int]  # arrival in ticks, input tokens, output tokens


def _azure(lines: Sequence[tuple[int, str]]) -> Iterator[_Row]:
    number, header = lines[0]
    if tuple(cell.strip() for cell in header.split(",")) != _AZURE:
        raise TraceError(
            f"line {number}: header: {_short(header)} is not accepted; "
            f"the columns {', '.join(_AZURE)} are needed, in this order: give {_FORMATS}"
        )
    for number, line in lines[1:]:
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(_AZURE):
            raise TraceError(
                f"line {number}: {_short(line)} has {len(cells)} column(s); "
                f"give {len(_AZURE)}: {', '.join(_AZURE)}"
            )
        yield (
            _date_ticks(number, cells[0]),
            _tokens(number, _AZURE[1], _Number(cells[1]), 1),
            _tokens(number, _AZURE[2], _Number(cells[2]), 0),
        )


def _date_ticks(number: int, cell: str) -> int:
    """A date in ticks. By hand: datetime would drop the seventh digit that Azure writes."""
    match = _STAMP.fullmatch(cell)
    try:
        if match is None:
            raise ValueError
        year, month, day, hour, minute, second = map(int, match.groups()[:6])
        days = date(year, month, day).toordinal()
    except ValueError:
        accepted = "give a date in UTC as 2023-11-16 18:17:03.9799600 (or with T, Z, +00:00)"
        raise _refused(number, _AZURE[0], cell, accepted) from None
    whole = ((days * 24 + hour) * 60 + minute) * 60 + second
    return whole * _TICKS + int((match[7] or "").ljust(_DIGITS, "0"))


class _Number(str):
    """A number as written: no digit is lost, and it is not mistaken for a JSON string."""

    __slots__ = ()


def _mooncake(lines: Sequence[tuple[int, str]]) -> Iterator[_Row]:
    for number, line in lines:
        item = _json_object(number, line)
        for key in _QWEN_BAILIAN:
            if key in item:
                raise TraceError(
                    f"line {number}: {key}: {_short(item[key])} marks a Qwen-Bailian trace, whose timestamps "
                    "are seconds; Mooncake's are milliseconds. Multiply `timestamp` by 1000 and remove "
                    f"{' and '.join(_QWEN_BAILIAN)}"
                )
        missing = [key for key in _MOONCAKE if key not in item]
        if missing:
            raise TraceError(
                f"line {number}: {', '.join(missing)}: missing; the keys {', '.join(_MOONCAKE)} are needed"
            )
        stamp, inputs, outputs = (item[key] for key in _MOONCAKE)
        match = _MILLISECONDS.fullmatch(stamp) if isinstance(stamp, _Number) else None
        if match is None:
            raise _refused(number, _MOONCAKE[0], stamp, "give milliseconds from 0, as 27 or 27.5")
        after = _DIGITS - 3  # decimals of a millisecond
        yield (
            int(match[1]) * (_TICKS // 1000) + int((match[2] or "").ljust(after, "0")),
            _tokens(number, _MOONCAKE[1], inputs, 1),
            _tokens(number, _MOONCAKE[2], outputs, 0),
        )


def _json_object(number: int, line: str) -> dict[str, Any]:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in items:
            if key in seen:
                raise TraceError(
                    f"line {number}: {key}: stands twice, with {_short(seen[key])} and {_short(value)}; "
                    "give each key once"
                )
            if isinstance(value, float):  # only NaN and Infinity: all other numbers stay text
                raise _refused(number, key, _Number(json.dumps(value)), "give a JSON number")
            seen[key] = value
        return seen

    try:
        item = json.loads(line, object_pairs_hook=pairs, parse_int=_Number, parse_float=_Number)
    except json.JSONDecodeError as error:
        raise TraceError(
            f"line {number}: {_short(line)} is not valid JSON: {error.msg} (column {error.colno}); "
            "give one JSON object per line"
        ) from None
    except RecursionError:
        raise TraceError(f"line {number}: {_short(line)} is nested too deeply; give plain values") from None
    if not isinstance(item, dict):
        raise TraceError(f"line {number}: {_short(line)} is no JSON object; give one JSON object per line")
    return item


def _tokens(number: int, name: str, found: object, least: int) -> int:
    if not isinstance(found, _Number) or _TOKENS.fullmatch(found) is None or int(found) < least:
        raise _refused(number, name, found, f"give a whole number of tokens from {least} to 999999999")
    return int(found)


def _refused(number: int, name: str, value: object, accepted: str) -> TraceError:
    return TraceError(f"line {number}: {name}: {_short(value)} is not accepted; {accepted}")


def _short(value: object) -> str:
    text = str(value) if isinstance(value, _Number) and value else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
