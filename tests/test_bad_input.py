"""Bad input: one clear message with file, line, field, value and what is accepted; nothing else happens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import inferplan
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inferplan.models.documents import parse_yaml
from inferplan.solver.load import validate

OPENING = (Path(__file__).parent.parent / "instances" / "opening.yaml").read_text()
TOOL = Path(sys.executable).parent / "inferplan"

# (text of the opening, what stands there instead, line, field, words of the message)
CASES = [
    ("rate: 3.5/s", "rate: 3.5", 15, "workload.rate", "has no unit"),
    ("rate: 3.5/s", "rate: 3.5 GB/s", 15, "workload.rate", "no unit of rate"),
    ("rate: 3.5/s", "rate: -1/s", 15, "workload.rate", "is negative"),
    ("rate: 3.5/s", "rate: 0/s", 15, "workload.rate", "is zero"),
    ("rate: 3.5/s", "rate: .nan", 15, "workload.rate", "is not a rate"),
    ("rate: 3.5/s", "rate: inf/s", 15, "workload.rate", "is not a rate"),
    ("rate: 3.5/s", "rate: 1e39/s", 15, "workload.rate", "absurdly large"),
    ("rate: 3.5/s", "rate:", 15, "workload.rate", "is not a rate"),
    ("bandwidth: 25 GB/s", "bandwidth: 25 Gb/s", 12, "links.0.bandwidth", "write Gbit/s for bits"),
    ("bandwidth: 25 GB/s", "bandwidth: 25 GB", 12, "links.0.bandwidth", "no unit of bandwidth"),
    ("startup: 10 s,", "startup: 10,", 20, "goals.startup", "has no unit"),
    ("efficiency: 0.5}", "efficiency: 1.5}", 6, "cards.a100.efficiency", "above 0 and at most 1"),
    ("efficiency: 0.5}", "efficiency: 0}", 6, "cards.a100.efficiency", "above 0 and at most 1"),
    ("efficiency: 0.5}", "efficency: 0.5}", 6, "cards.a100.efficency", "did you mean 'efficiency'?"),
    ("goals:", "gaols:", 20, "gaols", "did you mean 'goals'?"),
    ("catalog: a100-80gb-sxm", "catalog: a100-80g-sxm", 6, "cards.a100.catalog", "did you mean 'a100-80gb-sxm'?"),
    ("model: qwen3-8b", "model: qwen3-8", 4, "model", "did you mean 'qwen3-8b'?"),
    ("model: qwen3-8b", "model: none.json", 4, "model", "cannot be read"),
    ("model: qwen3-8b", "models: {a: qwen3-8b}\nmodel: qwen3-8b", 4, "models", "give either"),
    ("card: h20, cards: 4", "card: h21, cards: 4", 10, "servers.1.card", "did you mean 'h20'?"),
    ("card: h20, cards: 4", "card: h20, cards: 4.5", 10, "servers.1.cards", "not a whole number"),
    ("card: h20, cards: 4", "card: h20, cards: -4", 10, "servers.1.cards", "out of range"),
    ("name: right, card", "name: left, card", 10, "servers.1.name", "its own name"),
    ("name: right, card", "name: a b, card", 10, "servers.1.name", "is no name"),
    ("[left, right]", "[left, rihgt]", 12, "links.0.between", "did you mean 'right'?"),
    ("[left, right]", "[left, left]", 12, "links.0", "joins 'left' with itself"),
    ("[left, right]", "[left]", 12, "links.0.between.1", "is missing"),
    ("one-channel: left-right", "one-channel: other", 13, "handover.one-channel", "names no link"),
    ("handover: {one-channel: left-right}", "handover: direct", 13, "handover", "give routed"),
    ("output_tokens: 1025", "output_tokens: 0", 17, "workload.classes.0.output_tokens", "from 1"),
    ("output_tokens: 1025", "output_tokens: {9: 0.5}", 17, "workload.classes.0.output_tokens", "exactly 1"),
    ("input_tokens: 8192", "input_tokens: 8192.5", 17, "workload.classes.0.input_tokens", "not a whole"),
    ("input_tokens: 8192", "cached_tokens: 9, input_tokens: 9", 17, "workload.classes.0.cached_tokens", "nothing"),
    ("{name: chat,", "{name: chat, share: 0.5,", 16, "workload.classes", "add up to 0.5"),
    ("{name: chat,", "{name: chat, model: x,", 17, "workload.classes.0.model", "is not in `models`"),
    ("decode_batch: 32", "decode_batch: many", 18, "engine.decode_batch", "or auto"),
    ("decode_batch: 32", "decode_batch: [32, 32]", 18, "engine.decode_batch", "twice"),
    ("decode_batch: 32", "shapes: []", 18, "engine.shapes", "not built yet"),
    ("decode_batch: 32", "reserve: vllm", 18, "engine.reserve", "not built yet"),
    ("[disaggregated]", "[split]", 19, "forms.0", "'disaggregated'"),
    ("[disaggregated]", "[]", 19, "forms", "is empty"),
    ("deadline: 60 s", "deadline: 10 s", 20, "goals.deadline", "after `startup`"),
    ("startup: 10 s, deadline: 60 s", "deadline: 60 s", 20, "goals.deadline", "needs `startup`"),
    ("startup: 10 s,", "ttft: 1 s,", 20, "goals.ttft", "not built yet"),
    ("startup: 10 s,", "survive: 1,", 20, "goals.survive", "not built yet"),
    ("name: opening", "rates: rates.csv", 2, "rates", "not built yet"),
    ("name: opening", "cache: {}", 2, "cache", "not built yet"),
    ("name: opening", "objective: max", 2, "objective", "'min-cards'"),
    ("name: opening", "format: inferplan.instance/1", 2, "", "stands twice"),
    ("name: opening", "fix: {up: {prefill: 1}}", 2, "fix.up", "names no server"),
    ("name: opening", "offers: [{name: o, cards: {b200: 1}, at_most: 1}]", 2, "offers.0.cards.b200", "not in `cards`"),
    ("name: opening", "offers: [{name: card, cards: {h20: 1}, at_most: 1}]", 2, "offers.0.name", "reserved"),
    ("name: opening", "offers: [{name: o, cards: {h20: 1}}]", 2, "offers.0.at_most", "is missing"),
    ("name: opening", "engines: {b200: {prefill_rate: 1/s}}", 2, "engines.b200", "not in `cards`"),
    ("efficiency: 0.5}\n  h20", "efficiency: 0.5, price: 2/h}\n  h20", 0, "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "field", "words"), CASES)
def test_one_clear_message(old: str, new: str, line: int, field: str, words: str, tmp_path: Path) -> None:
    assert old in OPENING
    path = tmp_path / "it.yaml"
    path.write_text(OPENING.replace(old, new, 1))
    if not words:
        assert inferplan.load(path)
        return
    with pytest.raises(inferplan.InputError) as raised:
        inferplan.load(path)
    message = str(raised.value)
    assert message.startswith(f"{path}:{line}: {field}"), message
    assert words in message and "\n" not in message


def test_prices_of_two_kinds(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_text(
        OPENING.replace("efficiency: 0.5}", "efficiency: 0.5, price: 2/h}", 1)
        .replace("catalog: h20-96gb-sxm5,", "catalog: h20-96gb-sxm5, price: 2,")
    )  # fmt: skip
    with pytest.raises(inferplan.InputError, match="all in one way"):
        inferplan.load(path)


@pytest.mark.parametrize("case", [CASES[0], CASES[13], CASES[-9]])
def test_the_command_line_says_it_and_leaves(case: tuple[str, str, int, str, str], tmp_path: Path) -> None:
    old, new, _, field, words = case
    path, out = tmp_path / "it.yaml", tmp_path / "plan.json"
    path.write_text(OPENING.replace(old, new, 1))
    ran = subprocess.run(
        [TOOL, "solve", path, "--json", "-o", out], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert field in ran.stderr and words in ran.stderr and ran.stderr.count("\n") == 1
    assert not out.exists()


def test_a_model_that_fits_no_card(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_text(OPENING.replace("qwen3-8b", "llama-3.1-70b", 1))
    ran = subprocess.run([TOOL, "solve", path], capture_output=True, text=True, check=False)
    assert ran.returncode == 3
    assert "GiB short" in ran.stdout and ran.stderr == ""


@settings(derandomize=True, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_odd_values_raise_nothing_else(data: st.DataObject) -> None:
    """A scalar or a subtree of the opening replaced by anything: it loads, or InputError says why not."""
    document = parse_yaml(OPENING)
    at = data.draw(st.sampled_from(sorted(document.lines, key=str)))
    odd = data.draw(
        st.sampled_from(["", "0", "-1", "nan", "1e400", "null", "~", "x" * 500, "ünï", [], {}, [[]], {"a": {}}, [""]])
    )  # fmt: skip
    node = document.tree
    for part in at[:-1]:
        node = node[part]
    if data.draw(st.booleans()) and isinstance(node, dict):
        del node[at[-1]]
    else:
        node[at[-1]] = odd
    try:
        validate(document)
    except inferplan.InputError as error:
        assert str(error)


LEFT, RIGHT = "  - {name: left, card: a100, cards: 4}\n", "  - {name: right, card: h20, cards: 4}\n"
CLASS = "\n    - {name: chat, input_tokens: 8192, output_tokens: 1025}"
KINDS = (
    "  a100: {catalog: a100-80gb-sxm, efficiency: 0.5}\n  h20: {catalog: h20-96gb-sxm5, efficiency: 0.5}\n"
)

# (text of the opening, what stands there instead, line, field, value and what is accepted)
MORE = [
    ("startup: 10 s,", "startup: 60,", 20, "goals.startup", "'60' has no unit; give a number of at least 0"),
    ("startup: 10 s,", "startup: -1 s,", 20, "goals.startup", "'-1 s' is negative; give"),
    ("startup: 10 s,", "startup: nan s,", 20, "goals.startup", "'nan s' is not a time; give"),
    ("startup: 10 s,", "startup: 10 m,", 20, "goals.startup", "'10 m' has the unit 'm'"),
    ("startup: 10 s,", "startup: 1e999 s,", 20, "goals.startup", "'1e999 s' is absurdly large or small; give"),
    ("startup: 5 us", "startup: 5", 12, "links.0.startup", "'5' has no unit; give"),
    ("25 GB/s", "0 GB/s", 12, "links.0.bandwidth", "'0 GB/s' is zero; give a number above 0"),
    ("25 GB/s", "inf", 12, "links.0.bandwidth", "'inf' is not a bandwidth; give"),
    ("25 GB/s", "1e40 GB/s", 12, "links.0.bandwidth", "'1e40 GB/s' is absurdly large or small; give"),
    ("0.5}", ".nan}", 6, "cards.a100.efficiency", "'.nan' is not a finite number; give a fraction"),
    ("0.5}", "0.5, memory: 80 Gb}", 6, "cards.a100.memory", "'80 Gb' has the unit 'Gb'"),
    ("0.5}", "0.5, bf16: 312}", 6, "cards.a100.bf16", "'312' has no unit; give"),
    ("0.5}", "0.5, price: -1}", 6, "cards.a100.price", "'-1' is negative; give an amount"),
    ("0.5}", "0.5, price: 2/w}", 6, "cards.a100.price", "'2/w' is per 'w'; give an amount"),
    ("cards: 4}", "cards: 1e8}", 9, "servers.0.cards", "'1e8' is out of range; give a whole number from 0"),
    ("cards: 4}", "cards: 4, count: 0}", 9, "servers.0.count", "'0' is out of range; give a whole number from 1"),
    ("cards: 4}", "cards: 4, card: h20}", 9, "servers.0", "the key 'card' stands twice"),
    ("[left, right]", "left", 12, "links.0.between", "'left' is no list; give items"),
    ("between: [left, right]", "from: left, to: rigth", 12, "links.0.to", "'rigth' names no server or switch, did you"),
    ("between: [left, right]", "from: left", 12, "links.0", "give `between: [a, b]`, or `from: a` and `to: b`"),
    ("startup: 5 us", "duplex: both", 12, "links.0.duplex", "'both' is not accepted; give 'full' or 'half'"),
    ("input_tokens: 8192", "input_tokens: 0", 17, "workload.classes.0.input_tokens", "'0' is out of range; give"),
    ("input_tokens: 8192, ", "", 17, "workload.classes.0.input_tokens", "is missing"),
    ("output_tokens: 1025", "output_tokens: {9: -1, 8: 2}", 17, "workload.classes.0.output_tokens", "'-1'"),
    ("name: chat,", "name: chat, share: half,", 17, "workload.classes.0.share", "'half' is not a finite number; give"),
    (CLASS, CLASS[:-1] + ", share: 0.5}" + CLASS[:-1] + ", share: 0.5}", 18, "workload.classes.1.name", "'chat' names"),
    ("decode_batch: 32", "decode_batch: 0", 18, "engine.decode_batch", "'0' is out of range; give"),
    ("decode_batch: 32", "reserve: 4", 18, "engine.reserve", "'4' has no unit; give"),
    ("deadline: 60 s", "tpot: 1 s", 20, "goals.tpot", "is not built yet"),
    ("deadline: 60 s", "headroom: 1", 20, "goals.headroom", "is not built yet"),
    ("  rate: 3.5/s\n", "", 19, "goals.deadline", "needs `workload.rate` beside it"),
    (LEFT + RIGHT, "  []\n", 8, "servers", "is empty; give at least one server"),
    (KINDS, "  {}\n", 5, "cards", "is empty; give at least one card"),
    (CLASS, " []", 16, "workload.classes", "is empty; give at least one class"),
    ("name: opening", "switches: [left]", 2, "switches.0", "'left' names two servers or switches"),
    ("instance/1", "instance/2", 1, "format", "'inferplan.instance/2' is not accepted; give 'inferplan.instance/1'"),
    ("name: opening", "offers: [{name: o, cards: {}, at_most: 1}]", 2, "offers.0.cards", "is empty; give the cards"),
    ("name: opening", "offers: [{name: o, cards: {h2: 1}, at_most: 1}]", 2, "offers.0.cards.h2", "did you mean 'h20'?"),
    ("name: opening", "engines: {h20: {prefill_rate: 1}}", 2, "engines.h20.prefill_rate", "'1' has no unit; give"),
    ("handover: {one-channel", "handover: {one-chanel", 13, "handover", "give routed, or {one-channel: LINK}"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "field", "words"), MORE)
def test_value_and_what_is_accepted(
    old: str, new: str, line: int, field: str, words: str, tmp_path: Path
) -> None:
    test_one_clear_message(old, new, line, field, words, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("output_tokens: 1025", "output_tokens: nan", "'nan'"),
        ("decode_batch: 32", "decode_batch: nan", "'nan'"),
        ("deadline: 60 s", "deadline: 5 s", "'5 s'"),
        ("name: opening", "fix: {left: {prefil: 1}}", "did you mean 'prefill'?"),
    ],
)
def test_the_value_is_shown(old: str, new: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_text(OPENING.replace(old, new, 1))
    with pytest.raises(inferplan.InputError) as raised:
        inferplan.load(path)
    assert words in str(raised.value)


def test_a_message_is_one_line_whatever_the_key(tmp_path: Path) -> None:
    path = tmp_path / "it.yaml"
    path.write_text(OPENING + '"a\\nb": 1\n')
    with pytest.raises(inferplan.InputError) as raised:
        inferplan.load(path)
    assert "\n" not in str(raised.value)
