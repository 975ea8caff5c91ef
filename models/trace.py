"""Recorded requests (Azure CSV, Mooncake JSON lines) and the few request classes a planner needs of them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from itertools import accumulate, combinations, pairwise
from pathlib import Path
from typing import Any

# Costs of Qwen3-8B at BF16, the default weights of what the classes must keep (only their ratios matter).
ALPHA = 2 * 6_945_767_424  # prefill FLOP per input token
BETA = 589_824 // 2  # prefill FLOP per squared input token
WEIGHT_BYTES = 15_136_194_560 // 32  # decode bytes per output token: the weights, shared by a batch of 32
KV_BYTES = 147_456  # decode bytes per output token and token of context

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
_MOST_OUTPUTS = 64  # a class keeps its complete distribution of outputs up to this many points ...
_OUTPUT_GROUPS = 5  # ... and beyond it at most 3 points in each of these groups, and G = 1


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


@dataclass(frozen=True, slots=True)
class TraceClass:
    """The requests of one interval of input lengths, which a router can see on arrival.

    ``name``: the interval, as ``in-0001-0512`` (both ends belong to it; the intervals of a trace leave no
    gap from 1 to its longest input). ``share``: its part of all requests. ``input_tokens``: the length that
    stands for all of them, in tokens. ``output_tokens``: the share of each number of output tokens (from 1);
    the shares add to exactly 1.
    """

    name: str
    share: Fraction
    input_tokens: int
    output_tokens: Mapping[int, Fraction] = field(hash=False)


# ---------------------------------------------------------------------------------------------- reading


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


# ---------------------------------------------------------------------------------------------- classes


def form_classes(trace: Trace, classes: int) -> tuple[TraceClass, ...]:
    """At most ``classes`` classes that stand for a trace, by rising input length; equal inputs share a class.

    The intervals minimise the sum over all requests of (L - mean L of the class)^2. This is exactly what the
    sum of L^2 loses when the classes keep the sum of L, and it bounds what the sum of (G-1)*L loses, so it is
    good for any model and card. Within a class the representative L balances the relative errors of prefill
    and decode cost at the constants of this module, and the outputs keep the exact means of G-1 and (G-1)^2.
    The order of the requests does not matter. Raises TraceError if ``classes`` is less than 1.
    """
    if classes < 1:
        raise TraceError(f"classes: {classes} is not accepted; give a whole number from 1")
    outputs_of: dict[int, Counter[int]] = {}
    for tokens, output in zip(trace.inputs, trace.outputs, strict=True):
        outputs_of.setdefault(tokens, Counter())[output] += 1
    lengths = sorted(outputs_of)
    width = max(4, len(str(lengths[-1])))
    ends = _intervals(lengths, [outputs_of[tokens].total() for tokens in lengths], classes)
    formed: list[TraceClass] = []
    low = 1
    for begin, end in pairwise([0, *ends]):
        members = lengths[begin:end]
        outputs: Counter[int] = Counter()
        for tokens in members:
            outputs.update(outputs_of[tokens])
        formed.append(
            TraceClass(
                name=f"in-{low:0{width}d}-{members[-1]:0{width}d}",
                share=Fraction(outputs.total(), trace.requests),
                input_tokens=_representative({tokens: outputs_of[tokens] for tokens in members}),
                output_tokens=_distribution(outputs),
            )
        )
        low = members[-1] + 1
    return tuple(formed)


def _intervals(values: Sequence[int], counts: Sequence[int], most: int) -> list[int]:
    """Cut rising ``values`` into at most ``most`` intervals of least squared deviation from their means.

    Returns the end index of every interval, the last being len(values). Dynamic programming over the number
    of intervals; the best last cut never moves left as the end moves right: a layer is solved by halving.
    """
    size = len(values)
    most = min(most, size)
    centre = values[size // 2]  # near 0 the floats below lose fewer digits
    pairs = [(v - centre, n) for v, n in zip(values, counts, strict=True)]
    number = [0.0, *map(float, accumulate(counts))]
    first = [0.0, *map(float, accumulate(n * v for v, n in pairs))]
    second = [0.0, *map(float, accumulate(n * v * v for v, n in pairs))]
    best = [0.0] + [second[j] - first[j] * first[j] / number[j] for j in range(1, size + 1)]
    layers: list[list[int]] = []
    for parts in range(2, most + 1):
        before, best, cuts = best, [0.0] * (size + 1), [0] * (size + 1)
        waiting = [(parts, size, parts - 1, size - 1)]
        while waiting:
            low, high, left, right = waiting.pop()
            if low > high:
                continue
            j = (low + high) // 2
            n_j, first_j, second_j = number[j], first[j], second[j]
            least, at = float("inf"), left
            for i in range(min(right, j - 1), left - 1, -1):
                step = first_j - first[i]
                spread = second_j - second[i] - step * step / (n_j - number[i])
                if spread >= least:
                    break  # a longer last interval only spreads more
                if before[i] + spread < least:
                    least, at = before[i] + spread, i
            best[j], cuts[j] = least, at
            waiting += [(low, j - 1, left, at), (j + 1, high, at, right)]
        layers.append(cuts)
    ends = [size]
    for cuts in reversed(layers):
        ends.append(cuts[ends[-1]])
    return ends[::-1]


def _representative(members: Mapping[int, Counter[int]]) -> int:
    """The whole input length whose larger relative error, of prefill or of decode cost, is least.

    ``members``: for each input length of the class, how many requests have each number of outputs.
    """
    requests = prefill = handed = context = squares = 0
    for tokens, outputs in members.items():
        count, later = outputs.total(), sum((g - 1) * n for g, n in outputs.items())
        requests += count
        prefill += count * (ALPHA * tokens + BETA * tokens**2)
        handed += later
        context += later * tokens
        squares += sum((g - 1) ** 2 * n for g, n in outputs.items())
    decode = 2 * WEIGHT_BYTES * handed + KV_BYTES * (2 * context + squares)  # doubled: whole numbers only

    def errors(tokens: int) -> tuple[int, int]:  # relative, times prefill * decode; both rise with tokens
        of_prefill = requests * (ALPHA * tokens + BETA * tokens**2) - prefill
        return of_prefill * max(decode, 1), 2 * KV_BYTES * (tokens * handed - context) * prefill

    low, high = min(members), max(members)
    while low < high:  # the errors have opposite signs between their zeros: equal sizes where they add to 0
        middle = (low + high) // 2
        low, high = (low, middle) if sum(errors(middle)) >= 0 else (middle + 1, high)
    return min((max(low - 1, min(members)), low), key=lambda tokens: max(map(abs, errors(tokens))))


def _distribution(outputs: Counter[int]) -> dict[int, Fraction]:
    """The share of each number of outputs; a long distribution on at most 16 of its own points.

    The means of G-1 and (G-1)^2 and the share of G = 1 (requests without hand-over) are exact in either case.
    """
    total = outputs.total()
    points = sorted(outputs)
    weights: dict[int, Fraction] = {g: Fraction(n) for g, n in outputs.items()}
    if len(points) > _MOST_OUTPUTS:
        weights = {1: weights[1]} if 1 in weights else {}
        points = [g for g in points if g > 1]
        for begin, end in pairwise([0, *_intervals(points, [outputs[g] for g in points], _OUTPUT_GROUPS)]):
            weights |= _three_points({g: outputs[g] for g in points[begin:end]})
    return {g: weights[g] / total for g in sorted(weights)}


def _three_points(counts: Mapping[int, int]) -> dict[int, Fraction]:
    """Weights on at most 3 of the points with the same sums of 1, x and x^2 as all of them (Carathéodory).

    Points come one by one; of any 4, 3 can carry the three sums so far with no negative weight.
    """
    nodes: tuple[int, ...] = ()
    zeroth = first = second = 0

    def weights(three: tuple[int, ...]) -> dict[int, Fraction]:
        found = {}
        for x in three:
            y, z = (other for other in three if other != x)
            found[x] = Fraction(second - (y + z) * first + y * z * zeroth, (x - y) * (x - z))
        return found

    for x, n in counts.items():
        zeroth, first, second = zeroth + n, first + n * x, second + n * x * x
        nodes = (*nodes, x)
        if len(nodes) == 4:
            nodes = next(three for three in combinations(nodes, 3) if min(weights(three).values()) >= 0)
    if len(nodes) < 3:
        return {x: Fraction(counts[x]) for x in nodes}
    return {x: weight for x, weight in weights(nodes).items() if weight}


def class_errors(
    trace: Trace,
    classes: Sequence[TraceClass],
    alpha: float = ALPHA,
    beta: float = BETA,
    w: float = WEIGHT_BYTES,
    k: float = KV_BYTES,
) -> dict[str, float]:
    """How far the totals of the classes are from those of the trace: relative, not negative (0.005 is 0.5 %).

    ``prefill``: sum of alpha*L + beta*L^2 (alpha in FLOP per input token, beta in FLOP per squared token).
    ``decode``: sum of (G-1)*(w + k*(L + (G-1)/2)) (w in bytes per output token, k in bytes per output token
    and token of context). ``requests``: their number. Of a total that is 0 in the trace: 0 or infinite.
    """

    def totals(rows: Iterable[tuple[Fraction | int, int, int]]) -> dict[str, Fraction]:
        sums: list[Fraction | int] = [0] * 6  # whole numbers of a trace stay fast ints
        for weight, tokens, output in rows:
            later = weight * (output - 1)
            terms = (weight, weight * tokens, weight * tokens**2, later, later * tokens, later * (output - 1))
            sums = [total + term for total, term in zip(sums, terms, strict=True)]
        number, first, second, handed, context, squares = map(Fraction, sums)
        return {
            "prefill": Fraction(alpha) * first + Fraction(beta) * second,
            "decode": Fraction(w) * handed + Fraction(k) * (context + squares / 2),
            "requests": number,
        }

    true = totals((1, tokens, output) for tokens, output in zip(trace.inputs, trace.outputs, strict=True))
    kept = totals(
        (trace.requests * one.share * share, one.input_tokens, output)
        for one in classes
        for output, share in one.output_tokens.items()
    )
    return {
        name: float(abs(kept[name] / total - 1)) if total else float("inf" if kept[name] else 0)
        for name, total in true.items()
    }
