"""Traces: what is read exactly, what is refused and why, and that classes keep what the trace holds."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inferplan.models.classes import TraceClass, class_errors, form_classes
from inferplan.models.trace import Trace, TraceError, read_trace

REPOSITORY = Path(__file__).resolve().parents[1]
SAMPLE = REPOSITORY / "instances" / "azure-conv-sample.csv"
SHARED = REPOSITORY.parent / "shared" / "data"
HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(content: str | bytes) -> Path:
        path = tmp_path / "some.trace"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return to_file


def trace_of(pairs: list[tuple[int, int]]) -> Trace:
    return Trace(
        arrivals=tuple(Fraction(i) for i in range(len(pairs))),
        inputs=tuple(tokens for tokens, _ in pairs),
        outputs=tuple(output for _, output in pairs),
    )


def bounds(one: TraceClass) -> tuple[int, int]:
    match = re.fullmatch(r"in-(\d{4,})-(\d{4,})", one.name)
    assert match is not None
    return int(match[1]), int(match[2])


def members(trace: Trace, one: TraceClass) -> list[tuple[int, int]]:
    low, high = bounds(one)
    return [pair for pair in zip(trace.inputs, trace.outputs, strict=True) if low <= pair[0] <= high]


# ---------------------------------------------------------------------------------------------- reading


def test_azure_keeps_the_seventh_digit(write: Write) -> None:
    trace = read_trace(
        write(HEADER + "2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319601,3180,8\n")
    )
    assert trace.arrivals == (Fraction(0), Fraction(520001, 10**7))
    assert (trace.inputs, trace.outputs, trace.dropped) == ((4808, 3180), (10, 8), 0)
    assert (trace.requests, trace.seconds) == (2, Fraction(520001, 10**7))
    assert trace.rate == Fraction(10**7, 520001)


@pytest.mark.parametrize(
    "stamp",
    [
        "2024-03-01 00:00:01.5",
        "2024-03-01T00:00:01.5",
        "2024-03-01T00:00:01.5Z",
        "2024-03-01 00:00:01.500000+00:00",
        "2024-03-01T00:00:01.500000000000000000+00:00",
    ],
)
def test_azure_dates(write: Write, stamp: str) -> None:
    trace = read_trace(write(f"{HEADER}2024-02-29 23:59:59,1,1\n{stamp},1,1\n"))
    assert trace.seconds == Fraction(5, 2)


def test_mooncake_is_in_milliseconds(write: Write) -> None:
    trace = read_trace(
        write(
            '{"timestamp": 3000, "input_length": 6758, "output_length": 500, "hash_ids": [0], "m": null}\n'
            '{"output_length": 1, "input_length": 7, "timestamp": 3027.25}\n'
        )
    )
    assert trace.arrivals == (Fraction(0), Fraction(109, 4000))
    assert (trace.inputs, trace.outputs) == ((6758, 7), (500, 1))


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_endings_blank_lines_and_byte_order_mark(write: Write, ending: str, mark: bytes) -> None:
    azure = f"\n{HEADER}\n2024-01-01 00:00:00, 5 ,6\n\n2024-01-01 00:00:02,7,8".replace("\n", ending)
    mooncake = '\n{"timestamp":0,"input_length":5,"output_length":6}\n\n'
    mooncake += '{"timestamp":2000,"input_length":7,"output_length":8}\n'
    read = read_trace(write(mark + azure.encode()))
    assert read == read_trace(write(mark + mooncake.replace("\n", ending).encode()))
    assert read == Trace((Fraction(0), Fraction(2)), (5, 7), (6, 8))


def test_requests_are_sorted_by_arrival_and_ties_keep_their_order(write: Write) -> None:
    rows = ["09,1,1", "07,2,2", "09,3,3", "08,4,4", "07,5,5"]
    trace = read_trace(write(HEADER + "".join(f"2024-01-01 00:00:{row}\n" for row in rows)))
    assert [float(arrival) for arrival in trace.arrivals] == [0, 0, 1, 2, 2]
    assert trace.inputs == (2, 5, 4, 1, 3)


def test_requests_without_output_are_dropped_and_counted(write: Write) -> None:
    rows = ["00,9,0", "01,5,6", "03,7,8", "09,7,0"]
    trace = read_trace(write(HEADER + "".join(f"2024-01-01 00:00:{row}\n" for row in rows)))
    assert trace == Trace((Fraction(0), Fraction(2)), (5, 7), (6, 8), dropped=2)
    assert trace.rate == Fraction(1, 2)


def test_no_rate_without_a_gap(write: Write) -> None:
    for rows in ("2024-01-01 00:00:00,9,1\n", "2024-01-01 00:00:00,9,1\n" * 3):
        trace = read_trace(write(HEADER + rows))
        assert trace.seconds == 0
        with pytest.raises(TraceError, match="`rate` must be given"):
            _ = trace.rate


DATE = "2024-01-01 00:00:00"
LINE = '{"timestamp": 0, "input_length": 5, "output_length": 6}\n'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is empty", "TIMESTAMP,ContextTokens,GeneratedTokens", "input_length"]),
        (b"\xef\xbb\xbf\r\n \r\n", ["is empty"]),
        (HEADER, ["header only"]),
        (HEADER + f"{DATE},5,0\n", ["0 output tokens", "at least one"]),
        (b"PK\x03\x04\n\x00\x00", ["line 2", "binary"]),
        (HEADER.encode() + f"{DATE},5,6\n".encode() + b"caf\xe9", ["line 3", "0xe9", "UTF-8"]),
        (HEADER.encode("utf-16"), ["binary"]),
        ("Timestamp,Model,Request tokens\n1,2,3\n", ["line 1", "header", "'Timestamp,Model", "are needed"]),
        ("\nTIMESTAMP,GeneratedTokens,ContextTokens\n", ["line 2", "header", "in this order"]),
        (f"{DATE},5,6\n", ["line 1", "header", "ContextTokens"]),
        ("[" + LINE.strip() + "]", ["line 1", "header", "JSON lines"]),
        (HEADER + f"{DATE},5\n", ["line 2", "2 column(s)", "give 3"]),
        (HEADER + f"{DATE},5,6,7\n", ["line 2", "4 column(s)", "GeneratedTokens"]),
        (HEADER + f"{DATE},5,6\n{DATE},5.5,6\n", ["line 3", "ContextTokens", "5.5", "whole number"]),
        (HEADER + f"{DATE},-5,6\n", ["line 2", "ContextTokens", "-5", "whole number"]),
        (HEADER + f"{DATE},0,6\n", ["line 2", "ContextTokens", "0 is not accepted", "from 1"]),
        (HEADER + f"{DATE},NaN,6\n", ["line 2", "ContextTokens", "NaN"]),
        (HEADER + f"{DATE},٣,6\n", ["line 2", "ContextTokens", "whole number"]),
        (HEADER + f"{DATE},5,-1\n", ["line 2", "GeneratedTokens", "-1", "from 0"]),
        (HEADER + f"{DATE},5,1e3\n", ["line 2", "GeneratedTokens", "1e3"]),
        (HEADER + f"{DATE},5,\n", ["line 2", "GeneratedTokens", "''"]),
        (HEADER + f"{DATE},5,1000000000\n", ["line 2", "GeneratedTokens", "999999999"]),
        (HEADER + f"{DATE},5,{'9' * 5000}\n", ["line 2", "GeneratedTokens", "..."]),
        (HEADER + "1700158623.97,5,6\n", ["line 2", "TIMESTAMP", "'1700158623.97'", "18:17:03.9799600"]),
        (HEADER + "2023-02-29 00:00:00,5,6\n", ["line 2", "TIMESTAMP", "2023-02-29"]),
        (HEADER + "2023-02-28 24:00:00,5,6\n", ["line 2", "TIMESTAMP", "24:00:00"]),
        (HEADER + "2023-02-28 00:00:00+02:00,5,6\n", ["line 2", "TIMESTAMP", "+02:00", "UTC"]),
        (HEADER + "NaN,5,6\n", ["line 2", "TIMESTAMP", "NaN"]),
        (LINE + '{"timestamp": 0,\n', ["line 2", "not valid JSON", "one JSON object per line"]),
        (LINE + "7\n", ["line 2", "no JSON object"]),
        ('{"a": ' * 100_000, ["line 1", "nested too deeply"]),
        (LINE + '{"timestamp": 0, "input_length": 5}\n', ["line 2", "output_length", "missing", "needed"]),
        (LINE.replace("{", '{"timestamp": 1, '), ["line 1", "timestamp", "twice", "1 and 0"]),
        (LINE.replace("5", "NaN"), ["line 1", "input_length", "NaN"]),
        (LINE.replace("0", "-Infinity"), ["line 1", "timestamp", "-Infinity"]),
        (LINE.replace("5", "0"), ["line 1", "input_length", "0 is not accepted", "from 1"]),
        (LINE.replace("5", "5.0"), ["line 1", "input_length", "5.0", "whole number"]),
        (LINE.replace("5", '"5"'), ["line 1", "input_length", "'5'", "whole number"]),
        (LINE.replace("5", "true"), ["line 1", "input_length", "True"]),
        (LINE.replace("6", "-6"), ["line 1", "output_length", "-6", "from 0"]),
        (LINE.replace("6", "null"), ["line 1", "output_length", "None"]),
        (LINE.replace(": 0", ": -1"), ["line 1", "timestamp", "-1", "milliseconds"]),
        (LINE.replace(": 0", ": 1e999999999"), ["line 1", "timestamp", "1e999999999", "milliseconds"]),
        (LINE.replace(": 0", f': "{DATE}"'), ["line 1", "timestamp", DATE, "milliseconds"]),
        (
            '{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 521, '
            '"output_length": 132, "type": "text", "turn": 1, "hash_ids": [1089]}',
            ["line 1", "chat_id", "159", "Qwen-Bailian", "seconds", "milliseconds", "Multiply"],
        ),
        (LINE + LINE.replace("{", '{"parent_chat_id": -1, '), ["line 2", "parent_chat_id", "-1", "seconds"]),
    ],
)
def test_refused(write: Write, content: str | bytes, words: list[str]) -> None:
    path = write(content)
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert len(message) < len(str(path)) + 500
    for word in words:
        assert word in message, message


def test_refused_places(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path, "is a folder"),
        (tmp_path / "absent.csv", "cannot be read: No such file"),
        (Path("a\0b"), "no usable file name"),
    ):
        with pytest.raises(TraceError, match=words):
            read_trace(path)


def test_too_large_is_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferplan.models.trace._MOST_BYTES", 50)
    with pytest.raises(TraceError, match=r"more than the 50 bytes.*give a part"):
        read_trace(write(HEADER + f"{DATE},5,6\n" * 2))


def test_traces_made_by_hand_are_checked() -> None:
    one = (Fraction(0),)
    for arguments, words in (
        (((), (), ()), "entries"),
        ((one, (1, 2), (1,)), "entries"),
        ((one, (0,), (1,)), "inputs: 0"),
        ((one, (1,), (0,)), "outputs: 0"),
    ):
        with pytest.raises(TraceError, match=words):
            Trace(*arguments)


# ---------------------------------------------------------------------------------------------- classes


def test_equal_inputs_share_a_class_and_names_tell_the_interval() -> None:
    trace = trace_of([(512, 3), (10, 1), (512, 900), (20, 2), (511, 4)])
    two = form_classes(trace, 2)
    assert [one.name for one in two] == ["in-0001-0020", "in-0021-0512"]
    assert [one.share for one in two] == [Fraction(2, 5), Fraction(3, 5)]
    assert two[0].output_tokens == {1: Fraction(1, 2), 2: Fraction(1, 2)}
    assert two[1].output_tokens == {3: Fraction(1, 3), 4: Fraction(1, 3), 900: Fraction(1, 3)}
    every = form_classes(trace, 99)
    assert [one.input_tokens for one in every] == [10, 20, 511, 512]
    assert class_errors(trace, every) == {"prefill": 0, "decode": 0, "requests": 0}
    assert len({*two, *every}) == 6  # classes can be hashed


def test_wide_names_stay_sorted() -> None:
    names = [one.name for one in form_classes(trace_of([(5, 1), (123_456, 1)]), 2)]
    assert names == ["in-000001-000005", "in-000006-123456"]
    assert names == sorted(names)


@pytest.mark.parametrize("classes", [0, -1])
def test_number_of_classes_is_checked(classes: int) -> None:
    with pytest.raises(TraceError, match=f"classes: {classes} .*from 1"):
        form_classes(trace_of([(5, 1)]), classes)


def test_one_output_only_costs_no_decode() -> None:
    trace = trace_of([(5, 1), (100, 1), (1000, 1)])
    (one,) = form_classes(trace, 1)
    assert one.output_tokens == {1: 1}
    errors = class_errors(trace, (one,))
    assert errors["decode"] == 0 and errors["prefill"] < 0.002
    assert class_errors(trace, [replace(one, output_tokens={2: Fraction(1)})])["decode"] == float("inf")


def test_errors_take_the_constants() -> None:
    trace = trace_of([(10, 3), (30, 3)])
    one = TraceClass("in-0001-0030", Fraction(1), 20, {5: Fraction(1)})
    errors = class_errors(trace, (one,), alpha=1, beta=0, w=1, k=0)
    assert errors == {"prefill": 0, "decode": 1, "requests": 0}
    errors = class_errors(trace, (replace(one, share=Fraction(1, 2)),), alpha=0, beta=1, w=0, k=1)
    assert errors["prefill"] == pytest.approx(0.6)  # 400 for 10^2 + 30^2
    assert errors["decode"] == pytest.approx(4 * (20 + 2) / (2 * (10 + 1) + 2 * (30 + 1)) - 1)
    assert errors["requests"] == 0.5


def spread(trace: Trace, parts: list[list[int]]) -> float:
    inputs = [[tokens for tokens in trace.inputs if tokens in part] for part in parts]
    return sum(sum((tokens - sum(part) / len(part)) ** 2 for tokens in part) for part in inputs)


def test_intervals_are_optimal() -> None:
    rng = random.Random(7)
    for _ in range(40):
        trace = trace_of([(round(rng.lognormvariate(4, 1)) + 1, 2) for _ in range(30)])
        lengths = sorted(set(trace.inputs))[:12]
        trace = trace_of([(tokens, 2) for tokens in trace.inputs if tokens in lengths])
        for classes in (2, 3, 4):
            ways = (
                [lengths[i:j] for i, j in pairwise([0, *cuts, len(lengths)])]
                for cuts in combinations(range(1, len(lengths)), classes - 1)
            )
            found = [
                [tokens for tokens in lengths if low <= tokens <= high]
                for low, high in map(bounds, form_classes(trace, classes))
            ]
            assert spread(trace, found) == pytest.approx(min(spread(trace, way) for way in ways), abs=1e-6)


def test_representative_is_the_best_whole_number() -> None:
    rng = random.Random(8)
    for _ in range(20):
        trace = trace_of([(rng.randint(1, 99), rng.randint(1, 60)) for _ in range(40)])
        for one in form_classes(trace, 3):
            part = trace_of(members(trace, one))

            def worst(tokens: int, one: TraceClass = one, part: Trace = part) -> float:
                whole = replace(one, share=Fraction(1), input_tokens=tokens)
                errors = class_errors(part, (whole,))
                return max(errors["prefill"], errors["decode"])

            least = min(map(worst, range(min(part.inputs), max(part.inputs) + 1)))
            assert worst(one.input_tokens) == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("smallest", [1, 2])
def test_long_distributions_keep_their_moments_exactly(smallest: int) -> None:
    rng = random.Random(9)
    outputs = [smallest + int(rng.lognormvariate(4.5, 1.2)) for _ in range(3000)] + [smallest] * 40
    trace = trace_of([(100, output) for output in outputs])
    assert len(set(outputs)) > 64
    (one,) = form_classes(trace, 1)
    assert len(one.output_tokens) <= 16
    assert set(one.output_tokens) <= set(outputs)
    assert list(one.output_tokens) == sorted(one.output_tokens)
    assert min(one.output_tokens.values()) > 0
    for power in (0, 1, 2):
        kept = sum(share * (output - 1) ** power for output, share in one.output_tokens.items())
        assert kept == Fraction(sum((output - 1) ** power for output in outputs), len(outputs))
    assert one.output_tokens.get(1, 0) == Fraction(outputs.count(1), len(outputs))


def test_64_points_are_kept_as_they_are() -> None:
    outputs = [*range(1, 65), *range(1, 65, 2)]
    (one,) = form_classes(trace_of([(9, output) for output in outputs]), 1)
    assert one.output_tokens == {g: Fraction(n, len(outputs)) for g, n in Counter(outputs).items()}


pair = st.tuples(st.integers(1, 400), st.integers(1, 300))


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(st.lists(pair, min_size=1, max_size=60), st.lists(pair, min_size=100, max_size=300)),
    st.integers(1, 9),
    st.randoms(use_true_random=False),
)
def test_classes_split_the_requests(pairs: list[tuple[int, int]], most: int, rng: random.Random) -> None:
    trace = trace_of(pairs)
    classes = form_classes(trace, most)
    assert len(classes) == min(most, len(set(trace.inputs)))
    assert sum(one.share for one in classes) == 1
    edges = [bounds(one) for one in classes]
    assert edges[0][0] == 1 and edges[-1][1] == max(trace.inputs)
    assert all(high + 1 == low for (_, high), (low, _) in pairwise(edges))  # so one class per request
    for one, (low, high) in zip(classes, edges, strict=True):
        inside = members(trace, one)
        outputs = [output for _, output in inside]
        assert re.fullmatch(r"[A-Za-z0-9._-]+", one.name)
        assert one.share == Fraction(len(inside), trace.requests)
        assert low <= min(inside)[0] <= one.input_tokens <= high
        assert sum(one.output_tokens.values()) == 1 and min(one.output_tokens.values()) > 0
        assert one.output_tokens.get(1, 0) == Fraction(outputs.count(1), len(outputs))
        for power in (1, 2):
            kept = sum(share * (output - 1) ** power for output, share in one.output_tokens.items())
            assert kept * len(outputs) == sum((output - 1) ** power for output in outputs)
    shuffled = pairs.copy()
    rng.shuffle(shuffled)
    assert form_classes(trace_of(shuffled), most) == classes


# ---------------------------------------------------------------------------------------------- whole files


def test_sample_of_the_repository() -> None:
    trace = read_trace(SAMPLE)
    rows = SAMPLE.read_text(encoding="utf-8").splitlines()[1:]
    assert trace.requests == len(rows) and trace.dropped == 0
    assert sum(trace.inputs) == sum(int(row.split(",")[1]) for row in rows)
    assert sum(trace.outputs) == sum(int(row.split(",")[2]) for row in rows)
    assert 110 < trace.seconds < 120 and 3 < trace.rate < 3.6
    assert max(trace.inputs) < 14_000
    for most in (1, 2, 4, 8, 12, 24):
        classes = form_classes(trace, most)
        errors = class_errors(trace, classes)
        assert errors["requests"] == 0
        assert max(errors.values()) < (0.005 if most >= 4 else 0.02)
        handed = sum(one.share * share * (g - 1) for one in classes for g, share in one.output_tokens.items())
        assert handed * trace.requests == sum(trace.outputs) - trace.requests
        squares = sum(
            one.share * share * (g - 1) ** 2 for one in classes for g, share in one.output_tokens.items()
        )
        assert squares * trace.requests == sum((g - 1) ** 2 for g in trace.outputs)


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is absent: the public trace is not part of the repository")
    return path


@pytest.mark.parametrize(
    ("name", "requests"),
    [("AzureLLMInferenceTrace_conv.csv", 19_366), ("AzureLLMInferenceTrace_code.csv", 8_819)],
)
def test_azure_in_twelve_classes(name: str, requests: int) -> None:
    trace = read_trace(shared(name))
    assert (trace.requests, trace.dropped) == (requests, 0)
    start = time.process_time()
    classes = form_classes(trace, 12)
    assert time.process_time() - start < 1
    assert len(classes) == 12
    errors = class_errors(trace, classes)
    assert errors["prefill"] < 0.001 and errors["decode"] < 0.001 and errors["requests"] == 0
    assert sum(one.share for one in classes) == 1


@pytest.mark.parametrize(
    ("name", "requests"),
    [("mooncake_conversation_10min.jsonl", 1750), ("mooncake_synthetic_3min.jsonl", 645)],
)
def test_mooncake_in_twelve_classes(name: str, requests: int) -> None:
    trace = read_trace(shared(name))
    assert trace.requests + trace.dropped == requests
    assert 2 < trace.rate < 4  # milliseconds, not seconds
    errors = class_errors(trace, form_classes(trace, 12))
    assert max(errors.values()) < 0.005
