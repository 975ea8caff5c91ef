"""The chapter's computed claims, each computed by the product: claim id -> a small function.

Stage times come from the roofline, rates and optima from the solver, drain instants from `drain`. A pool's
own rate is the solver's rate with everything else ample. What stays here are unit conversions and ratios.

    python tests/chapter_functions.py      # writes reports/chapter.md from tests/chapter.yaml
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from inferplan.models import drain, reuse, roofline
from inferplan.models.case import Case, build
from inferplan.models.engines import CardEngine, Memory
from inferplan.models.hardware import Card
from inferplan.models.instance import Instance
from inferplan.models.llm import LLM
from inferplan.models.plan import Plan
from inferplan.models.quantities import BANDWIDTH, COMPUTE, DURATION, RATE, SIZE, Unit
from inferplan.models.roofline import Stage, Work
from inferplan.models.shape import Shape
from inferplan.models.workload import RequestClass
from inferplan.solver.answer import min_cards
from inferplan.solver.optimize import Optimum, Solver
from inferplan.solver.requirement import Aim
from inferplan.solver.routes import Point, used

TESTS = Path(__file__).resolve().parent
CHAPTER = TESTS / "chapter.yaml"
REPORT = TESTS.parent / "reports" / "chapter.md"

Value = Fraction | int | bool
Cell = tuple[int, int]  # cards of each kind, (A100, H20), that do prefill

GB, GIB, MIB, KIB = (SIZE.factors[u] for u in ("GB", "GiB", "MiB", "KiB"))
MS, US = DURATION.factors["ms"], DURATION.factors["us"]
TFLOP, GFLOP = COMPUTE.factors["TFLOP/s"], COMPUTE.factors["GFLOP/s"]

ARRIVAL, LAUNCH, DEADLINE = RATE.read("3.5/s"), DURATION.read("10 s"), DURATION.read("60 s")
LINK, FAST_LINK, PORT = (BANDWIDTH.read(text) for text in ("200 Gbit/s", "400 Gbit/s", "100 Gbit/s"))
START = DURATION.read("5 us")
SPLIT = "disaggregated"
CHANNEL = "left-right"
AIMS: tuple[Aim, ...] = ("sustain", "deadline")
AMPLE = 1000  # cards: far more than any other part of the bench can use

QWEN, DEEPSEEK, QWEN_235B = (LLM.model_validate(n) for n in ("qwen3-8b", "deepseek-v3", "qwen3-235b-a22b"))
TP2_EP4 = Shape(tp=2, ep=4)


# ------------------------------------------------------------------------------------------- the bench


@dataclass(frozen=True)
class Bench:
    """Four A100 on the left, four H20 on the right, one channel between them; the fields vary it."""

    a100: int = 4
    h20: int = 4
    outputs: int | tuple[tuple[int, str], ...] = 1025
    cached_tokens: int = 0
    efficiency: Fraction = Fraction(1, 2)
    link: Fraction = LINK
    handover_bytes_per_token: int | None = None
    extra_decode_flops: Fraction | int = 0
    measured: tuple[str, str] | None = None  # prefills and answers per second of one replica

    @cached_property
    def instance(self) -> Instance:
        outputs = self.outputs if isinstance(self.outputs, int) else dict(self.outputs)
        cards = {"a100": "a100-80gb-sxm", "h20": "h20-96gb-sxm5"}
        prefill, decode = self.measured or (None, None)
        rates = {"prefill_rate": prefill, "decode_rate": decode}
        return Instance.model_validate({
            "name": "bench",
            "model": "qwen3-8b",
            "cards": {card: {"catalog": it, "efficiency": self.efficiency} for card, it in cards.items()},
            "servers": [
                {"name": "left", "card": "a100", "cards": self.a100},
                {"name": "right", "card": "h20", "cards": self.h20},
            ],
            "links": [
                {"name": CHANNEL, "between": ["left", "right"], "bandwidth": self.link, "startup": START},
            ],
            "handover": {"one-channel": CHANNEL},
            "workload": {
                "rate": ARRIVAL,
                "classes": [{
                    "name": "chat",
                    "input_tokens": 8192,
                    "output_tokens": outputs,
                    "cached_tokens": self.cached_tokens,
                }],
            },
            "engine": {
                "decode_batch": 32,
                "handover_bytes_per_token": self.handover_bytes_per_token,
                "extra_decode_flops": self.extra_decode_flops,
            },
            "engines": dict.fromkeys(cards, rates) if self.measured else {},
            "forms": [SPLIT],
            "goals": {"startup": LAUNCH, "deadline": DEADLINE},
            "offers": [{"name": "pair", "cards": {"a100": 1, "h20": 1}, "at_most": 100}],
        })  # fmt: skip

    @property
    def request(self) -> RequestClass:
        return self.instance.workload.classes[0]

    def engine(self, card: str) -> CardEngine:
        it = self.instance
        return CardEngine(it.cards[card], it.llms["qwen3-8b"], it.engine, it.engines.get(card))

    def memory(self, card: str, role: str) -> Memory:
        """What a card of a role holds when KV is handed over."""
        batch = 32 if role == "decode" else None
        return self.engine(card).memory(role, batch, [self.request], handed_over=True)

    def pinned(self, fix: dict[str, dict[str, int]]) -> Solver:
        """The split with counts pinned in the instance itself."""
        instance = Instance.model_validate({**self.instance.resolved, "fix": fix})
        return Solver(build(instance, Case(forms=(SPLIT,))))

    def solver(self, form: str = SPLIT) -> Solver:
        return _solver(self, form)

    def optimum(self, form: str = SPLIT) -> Optimum:
        """The best plan of one form, proven."""
        return _optimum(self, form)

    def best(self, form: str = SPLIT) -> Point:
        return self.optimum(form).point

    def rate(self, form: str = SPLIT) -> Fraction:
        return self.best(form).rate

    @property
    def best_cell(self) -> Cell:
        """The cards that do prefill in the best split."""
        found = self.best().counts
        return found.get("prefill@left/a100", 0), found.get("prefill@right/h20", 0)

    @property
    def best_cells(self) -> list[Cell]:
        """Every role assignment that reaches the proven optimum."""
        return [cell for cell, rate in self.cells.items() if rate >= self.rate()]

    @cached_property
    def lp_bound(self) -> Fraction:
        """The proven bound of the relaxation in which counts need not be whole."""
        return self.solver().prove(lambda bound, boxes: True).bound

    def counts(
        self, a100_p: int, h20_p: int, a100_d: int | None = None, h20_d: int | None = None
    ) -> dict[str, int]:
        """Counts by pool; cards that do not prefill decode."""
        counts = {
            "prefill@left/a100": a100_p,
            "prefill@right/h20": h20_p,
            "decode@left/a100": self.a100 - a100_p if a100_d is None else a100_d,
            "decode@right/h20": self.h20 - h20_p if h20_d is None else h20_d,
        }
        return {pool: n for pool, n in counts.items() if n}

    def cell(self, a100_p: int, h20_p: int) -> Fraction:
        """The rate of one role assignment."""
        return self.solver().at(self.counts(a100_p, h20_p)).rate

    @cached_property
    def cells(self) -> dict[Cell, Fraction]:
        return {(a, h): self.cell(a, h) for a, h in product(range(self.a100 + 1), range(self.h20 + 1))}

    def _ample(self, **case: Any) -> Solver:
        """AMPLE more cards on both sides."""
        more = {"left": AMPLE, "right": AMPLE}
        return Solver(build(self.instance, Case(forms=(SPLIT,), more_cards=more, **case)))

    @cached_property
    def _free(self) -> Solver:
        """And no limit on the link."""
        return self._ample(bandwidth={CHANNEL: None})

    def prefill_pool(self, a100_p: int, h20_p: int) -> Fraction:
        """What these prefill cards supply when nothing else limits them."""
        return self._free.at(self.counts(a100_p, h20_p, AMPLE, AMPLE)).rate

    def decode_pool(self, a100_p: int, h20_p: int) -> Fraction:
        """What the cards left for decode supply when nothing else limits them."""
        return self._free.at(self.counts(AMPLE, AMPLE, self.a100 - a100_p, self.h20 - h20_p)).rate

    @cached_property
    def link_rate(self) -> Fraction:
        """Hand-overs per second of the link when there are cards enough."""
        return self._ample().at(self.counts(AMPLE, 0, 0, AMPLE)).rate

    def fewest(self, unit: str, aim: Aim) -> Plan:
        """The fewest cards for an aim: bought one by one, in pairs, or as copies of this bench."""
        plan = min_cards(self.instance, unit=unit, aim=aim, explain=False)
        if plan.status != "optimal":
            raise AssertionError(f"{unit} for {aim}: {plan.status}")
        return plan


@cache
def _solver(it: Bench, form: str) -> Solver:
    return Solver(build(it.instance, Case.model_validate({"forms": [form]})))


@cache
def _optimum(it: Bench, form: str) -> Optimum:
    optimum = _solver(it, form).highest_rate()
    if not optimum.closed:
        raise AssertionError(f"the proof for {it} is not complete")
    return optimum


@cache
def bench(**changes: Any) -> Bench:
    """One shared bench per set of changes, so that each program is built and solved once."""
    return Bench(**changes)


MIXED = ((1025, "0.5"), (4097, "0.5"))
MLA: dict[str, Any] = {"handover_bytes_per_token": DEEPSEEK.kv_bytes_per_token}
MLA_WORK: dict[str, Any] = {**MLA, "extra_decode_flops": DEEPSEEK.query_absorption_flops}


def cleared(rate: Fraction) -> Fraction | None:
    """When the launch's backlog is gone."""
    return drain.cleared_at(rate, ARRIVAL, LAUNCH)


def sustained(rate: Fraction) -> bool:
    return drain.sustains(rate, ARRIVAL)


def in_time(rate: Fraction) -> bool:
    return rate >= drain.required_rate(ARRIVAL, LAUNCH, DEADLINE)


def instant(rate: Fraction) -> Fraction:
    """`cleared` where the backlog does go away."""
    found = cleared(rate)
    if found is None:
        raise AssertionError("this rate never clears the backlog")
    return found


# ---------------------------------------------------------------------------------------- the registry


@dataclass(frozen=True)
class Entry:
    """How one claim is computed, and the product's functions that do it."""

    compute: Callable[[], Value | dict[str, Value]]
    by: tuple[str, ...]


REGISTRY: dict[str, Entry] = {}


def _name(thing: Any) -> str:
    """`models.llm.LLM.kv_bytes_per_token` for a function, a property or a class of the product."""
    for inner in ("fget", "func", "__func__"):
        thing = getattr(thing, inner, thing)
    return f"{thing.__module__}.{thing.__qualname__}".removeprefix("inferplan.")


def claim(name: str, *by: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a function under a claim's id. `by`: the product's functions whose result it is."""

    def register(function: Callable[[], Any]) -> Callable[[], Any]:
        if name in REGISTRY:
            raise ValueError(f"{name} is registered twice")
        REGISTRY[name] = Entry(function, tuple(_name(thing) for thing in by))
        return function

    return register


def simple(name: str, value: Callable[[], Any], *by: Any) -> None:
    """Register a claim that is one expression."""
    claim(name, *by)(value)


BEST, AT = Solver.highest_rate, Solver.at

# -------------------------------------------------------------- design bench, capacity, request lifecycle

simple("pd-opening-link-bandwidth", lambda: BANDWIDTH.read("200 Gbit/s") / GB, Unit.read)
simple("pd-mean-context", lambda: bench().request.mean_context, RequestClass.mean_context)


@claim("pd-opening-no-tp-needed", LLM.weight_bytes, Card)
def _() -> bool:
    return all(QWEN.weight_bytes < card.memory for card in bench().instance.cards.values())


@claim("mix-capacity-example", BEST, used)
def _() -> Fraction:
    """Ten cards that need half a second per request: how many of them four requests per second keep busy."""
    point = bench(a100=10, h20=0, outputs=1, measured=("2/s", "1/s")).best("colocated")
    busy = used(point.routes)["seconds of colocated@left/a100"]
    return 4 * busy / point.rate


@claim("mix-capacity-equality-never-drains", drain.cleared_at)
def _() -> bool:
    return drain.cleared_at(Fraction(2), Fraction(2), LAUNCH) is None


simple("mix-colocated-formula", lambda: bench(a100=8, h20=0).rate("colocated"), BEST)
simple("kv-decode-steps", lambda: bench().request.decode_steps, RequestClass.decode_steps)
simple("kv-covered-after-generation", lambda: bench().request.resident_context, RequestClass.resident_context)


@claim("kv-last-token-uncovered", RequestClass.resident_context)
def _() -> Fraction:
    return 8192 + 1025 - bench().request.resident_context


simple("kv-235b-cards", lambda: TP2_EP4.cards, Shape.cards)
simple("kv-235b-per-token", lambda: QWEN_235B.kv_bytes_per_token / KIB, LLM.kv_bytes_per_token)
simple("kv-235b-single-copy", lambda: 8192 * QWEN_235B.kv_bytes_per_token / GIB, LLM.kv_bytes_per_token)
simple("kv-235b-copies", lambda: TP2_EP4.kv_copies, Shape.kv_copies)


@claim("kv-235b-ep4-instance", Shape.kv_copies, LLM.kv_bytes_per_token)
def _() -> Fraction:
    return TP2_EP4.kv_copies * 8192 * QWEN_235B.kv_bytes_per_token / GIB


# ----------------------------------------------------------------------------------- KV size and handoff


def gqa_state() -> Fraction:
    """Bytes of the state of the whole prompt, Qwen3-8B."""
    return bench().engine("a100").handover_bytes(bench().request)


def mla_state() -> Fraction:
    """The same with DeepSeek-V3's compact latent."""
    return bench(**MLA).engine("a100").handover_bytes(bench().request)


HANDOVER, TRANSFER = CardEngine.handover_bytes, drain.transfer_seconds
EXPANDED = LLM.expanded_kv_bytes_per_token


def handover_s(state: Fraction, link: Fraction) -> Fraction:
    return drain.transfer_seconds(state, link, START)


simple("kv-gqa-per-token", lambda: QWEN.kv_bytes_per_token / KIB, LLM.kv_bytes_per_token)
simple("kv-gqa-8192", lambda: gqa_state() / GIB, HANDOVER)
simple("link-gqa-25", lambda: handover_s(gqa_state(), LINK) / MS, TRANSFER, HANDOVER)
simple("link-gqa-50", lambda: handover_s(gqa_state(), FAST_LINK) / MS, TRANSFER, HANDOVER)
simple("mla-per-token", lambda: DEEPSEEK.kv_bytes_per_token / KIB, LLM.kv_bytes_per_token)
simple("mla-8192", lambda: mla_state() / MIB, HANDOVER)
simple("mla-handoff-25", lambda: handover_s(mla_state(), LINK) / MS, TRANSFER, HANDOVER)
simple("mla-handoff-50", lambda: handover_s(mla_state(), FAST_LINK) / MS, TRANSFER, HANDOVER)
simple("mla-expanded-per-token", lambda: DEEPSEEK.expanded_kv_bytes_per_token / MIB, EXPANDED)


@claim("mla-expanded-ratio", EXPANDED, LLM.kv_bytes_per_token)
def _() -> Fraction:
    return Fraction(DEEPSEEK.expanded_kv_bytes_per_token, DEEPSEEK.kv_bytes_per_token)


@claim("mla-vs-gqa-ratio", LLM.kv_bytes_per_token)
def _() -> Fraction:
    return Fraction(DEEPSEEK.kv_bytes_per_token, QWEN.kv_bytes_per_token)


@claim("link-startup-share", TRANSFER)
def _() -> Fraction:
    return START / handover_s(gqa_state(), LINK)


@claim("link-double-buffer-residency", CardEngine.memory)
def _() -> dict[str, Value]:
    """The copy that leaves a prefill card and the one that lands on a decode card."""
    held = bench().memory("a100", "prefill").transfer + bench().memory("h20", "decode").transfer
    return {"peak_copies": held / gqa_state(), "peak_GiB": held / GIB}


simple("link-100gbe-bandwidth", lambda: PORT / GB, Unit.read)
simple("link-100gbe-gqa-rate", lambda: bench(link=PORT).link_rate, AT)
simple("link-100gbe-mla-rate", lambda: bench(link=PORT, **MLA).link_rate, AT)


@claim("link-100gbe-gqa-16-overloaded", AT, drain.cleared_at)
def _() -> bool:
    return drain.cleared_at(bench(link=PORT).link_rate, Fraction(16), LAUNCH) is None


@claim("link-100gbe-mla-16-ok", AT, drain.sustains)
def _() -> bool:
    return drain.sustains(bench(link=PORT, **MLA).link_rate, Fraction(16))


@claim("link-100gbe-16-demand", HANDOVER)
def _() -> dict[str, Value]:
    return {"gqa_GBps": 16 * gqa_state() / GB, "mla_GBps": 16 * mla_state() / GB}


# ------------------------------------------------------------------------------------- two opposite cards


def prompt() -> Work:
    return roofline.prefill_work(QWEN, 8192)


def step() -> Work:
    """One decode step of a full batch at the mean context."""
    return roofline.step_work(QWEN, 32, bench().request.mean_context)


def prompt_stage(card: str) -> Stage:
    return roofline.prefill(bench().instance.cards[card], QWEN, bench().request)


def step_stage(card: str) -> Stage:
    return roofline.decode_step(bench().instance.cards[card], QWEN, 32, bench().request.mean_context)


def effective(card: str) -> dict[str, Value]:
    it = bench().instance.cards[card]
    return {"TFLOPps": it.arithmetic / TFLOP, "GBps": it.streaming / GB}


simple("pd-a100-effective", lambda: effective("a100"), Card.arithmetic, Card.streaming)
simple("pd-h20-effective", lambda: effective("h20"), Card.arithmetic, Card.streaming)
simple("pd-prefill-flops", lambda: prompt().flops / TFLOP, roofline.prefill_work, Work.flops)


@claim("pd-prefill-flops-parts", roofline.prefill_work, LLM.head_parameters)
def _() -> dict[str, Value]:
    work, head = prompt(), 2 * QWEN.head_parameters
    attention = work.other_flops - head
    parts: dict[str, Fraction | int] = {"linear": work.block_flops, "attention": attention, "head": head}
    return {f"{name}_TFLOP": flops / TFLOP for name, flops in parts.items()}


@claim("pd-parameter-count", LLM.parameters)
def _() -> dict[str, Value]:
    p = QWEN.parameters
    return {"blocks": p.blocks, "embedding": p.embedding, "head": p.head, "norms": p.small, "total": p.total}


simple("pd-prefill-weight-read", lambda: prompt().moved_bytes / GB, roofline.prefill_work)
simple("pd-decode-weight-bytes", lambda: QWEN.streamed_bytes(32) / GB, LLM.streamed_bytes)
simple("pd-decode-step-bytes", lambda: step().moved_bytes / GB, roofline.step_work)
simple("pd-decode-flops", lambda: step().flops / TFLOP, roofline.step_work, Work.flops)


@claim("pd-decode-kv-bytes", roofline.step_work, LLM.streamed_bytes)
def _() -> Fraction:
    return (step().moved_bytes - QWEN.streamed_bytes(32)) / GB


@claim("pd-prefill-compute-bound", roofline.prefill, Stage.bound)
def _() -> bool:
    return {prompt_stage(card).bound for card in ("a100", "h20")} == {"arithmetic"}


@claim("pd-decode-bandwidth-bound", roofline.decode_step, Stage.bound)
def _() -> bool:
    return {step_stage(card).bound for card in ("a100", "h20")} == {"bandwidth"}


# ------------------------------------------------------------------------------ GPU-seconds, eight A100


def prefill_s(card: str, **changes: Any) -> Fraction:
    return bench(**changes).engine(card).prefill_seconds(bench(**changes).request)


def decode_s(card: str, **changes: Any) -> Fraction:
    return bench(**changes).engine(card).decode_seconds(bench(**changes).request, 32)


PREFILL_S, DECODE_S = CardEngine.prefill_seconds, CardEngine.decode_seconds

simple("pd-a100-prefill-s", lambda: prefill_s("a100"), PREFILL_S, roofline.prefill)
simple("pd-h20-prefill-s", lambda: prefill_s("h20"), PREFILL_S, roofline.prefill)
simple("pd-a100-decode-s", lambda: decode_s("a100"), DECODE_S, roofline.decode)
simple("pd-h20-decode-s", lambda: decode_s("h20"), DECODE_S, roofline.decode)
simple("pd-a100-colocated-s", lambda: 1 / bench(a100=1, h20=0).rate("colocated"), BEST)
simple("pd-h20-colocated-s", lambda: 1 / bench(a100=0, h20=1).rate("colocated"), BEST)
simple("pd-prefill-advantage", lambda: prefill_s("h20") / prefill_s("a100"), PREFILL_S)
simple("pd-decode-advantage", lambda: decode_s("a100") / decode_s("h20"), DECODE_S)
simple("mix-colocated-rate", lambda: bench().rate("colocated"), BEST)
simple("mix-colocated-shortfall", lambda: ARRIVAL - bench().rate("colocated"), BEST)


def eight_a100() -> Bench:
    return bench(a100=8, h20=0)


simple("mix-homog-colocated", lambda: eight_a100().rate("colocated"), BEST)
simple("mix-homog-p3", lambda: eight_a100().prefill_pool(3, 0), AT)
simple("mix-homog-d5", lambda: eight_a100().decode_pool(3, 0), AT)
simple("mix-homog-split-bound", lambda: eight_a100().rate(), BEST)
simple("mix-homog-split-best-p", lambda: eight_a100().best_cell[0], BEST)
simple("mix-homog-split-loss", lambda: 100 * (1 - eight_a100().rate() / eight_a100().rate("colocated")), BEST)

# ---------------------------------------------------------------------------------------- chunked prefill


def idle_tokens(card: str) -> Fraction:
    return roofline.idle_prefill_tokens(bench().instance.cards[card], QWEN, bench().request, 32)


simple("pd-a100-step-ms", lambda: step_stage("a100").traffic / MS, roofline.decode_step)
simple("pd-h20-step-ms", lambda: step_stage("h20").traffic / MS, roofline.decode_step)
simple("pd-a100-step-compute-ms", lambda: step_stage("a100").arithmetic / MS, roofline.decode_step)
simple("pd-a100-idle-prefill-tokens", lambda: idle_tokens("a100"), roofline.idle_prefill_tokens)
simple("pd-h20-idle-prefill-tokens", lambda: idle_tokens("h20"), roofline.idle_prefill_tokens)


@claim("pd-chunks-per-prefill", roofline.chunk_steps)
def _() -> int:
    return roofline.chunk_steps(bench().instance.cards["a100"], QWEN, bench().request, 32)


simple("pd-chunk-handoff-drawn-ms", lambda: (handover_s(gqa_state(), LINK) - START) / MS, TRANSFER)
simple("mix-chunked-rate", lambda: bench().rate("chunked"), BEST)
simple("mix-chunked-below-split", lambda: bench().rate("chunked") < bench().rate(), BEST)
simple("mix-chunked-homog", lambda: eight_a100().rate("chunked"), BEST)


@claim("mix-chunked-naive", roofline.ideal_chunks, LLM.streamed_bytes)
def _() -> Fraction:
    """The product charges one more pass over the weights; this takes it off again."""
    rate = Fraction(0)
    for card in bench().instance.cards.values():
        stage = roofline.ideal_chunks(card, QWEN, bench().request, 32)
        rate += 4 / replace(stage, traffic=stage.traffic - QWEN.streamed_bytes(32) / card.streaming).seconds
    return rate


# ----------------------------------------------------------------------- heterogeneous split and its link


def pools(it: Bench, cell: Cell) -> dict[str, Value]:
    """What both pools of a cell supply, each alone."""
    return {"mu_p": it.prefill_pool(*cell), "mu_d": it.decode_pool(*cell)}


simple("mix-4p4d-mu-p", lambda: bench().prefill_pool(4, 0), AT)
simple("mix-4p4d-mu-d", lambda: bench().decode_pool(4, 0), AT)
simple("mix-4p4d-mu-link", lambda: bench().link_rate, AT)
simple("mix-4p4d-bound", lambda: bench().cell(4, 0), AT)
simple("mix-cell-count", lambda: len(bench().cells), AT)
simple("mix-split-gain", lambda: bench().rate() / bench().rate("colocated"), BEST)
simple("mix-lp-bound", lambda: bench().lp_bound, Solver.prove)
simple("mix-swapped-mu-p", lambda: bench().prefill_pool(0, 4), AT)
simple("mix-swapped-bound", lambda: bench().cell(0, 4), AT)
simple("mix-move-a100-to-d", lambda: {**pools(bench(), (3, 0)), "mu": bench().cell(3, 0)}, AT)
simple("mix-move-h20-to-p", lambda: bench().cell(4, 1), AT)
simple("mix-move-h20-to-p-pools", lambda: pools(bench(), (4, 1)), AT)


@claim("mix-4p4d-is-optimal", BEST, AT)
def _() -> bool:
    """The proven optimum is that cell, and no other cell reaches it."""
    return bench().best_cell == (4, 0) and bench().best_cells == [(4, 0)]


@claim("mix-chunked-other-loads", BEST)
def _() -> dict[str, Value]:
    loads: dict[str, dict[str, Any]] = {
        "prefix_hit": {"cached_tokens": 6144},
        "g129": {"outputs": 129},
        "g4097": {"outputs": 4097},
        "half_half": {"outputs": MIXED},
    }
    forms = {"chunked": "chunked", "split": SPLIT}
    return {
        f"{load}_{name}": bench(**changes).rate(form)
        for load, changes in loads.items()
        for name, form in forms.items()
    }


simple("link-min-gqa", lambda: used(bench().best().routes)[CHANNEL] / GB, BEST, used)
simple("link-min-mla", lambda: used(bench(**MLA).best().routes)[CHANNEL] / GB, BEST, used)


@claim("link-flatten-rule", AT, BEST)
def _() -> Fraction:
    """With a link of three hand-overs per second each cell keeps the lesser of its own rate and three."""
    narrow = bench(link=3 * gqa_state())
    if narrow.cells != {cell: min(rate, narrow.link_rate) for cell, rate in bench().cells.items()}:
        raise AssertionError("some cell is not cut to the link's rate")
    return narrow.rate()


# ------------------------------------------------------------------------------ compact MLA, extra compute

H20_LIMIT = 4  # cards

simple("mla-extra-flops", lambda: DEEPSEEK.query_absorption_flops / GFLOP, LLM.query_absorption_flops)
simple("mla-d-h20-s", lambda: decode_s("h20", **MLA_WORK), DECODE_S, LLM.query_absorption_flops)
simple("mla-d-pool", lambda: bench(**MLA_WORK).decode_pool(4, 0), AT)
simple("mla-d-pool-sufficient", lambda: sustained(bench(**MLA_WORK).rate()), BEST, drain.sustains)
simple("mla-link-rate-25", lambda: bench(**MLA).link_rate, AT)


@claim("mla-extra-request-ms", DECODE_S, LLM.query_absorption_flops)
def _() -> Fraction:
    return (decode_s("h20", **MLA_WORK) - decode_s("h20")) / MS


@claim("mla-extra-h20-us", Work.on, LLM.query_absorption_flops)
def _() -> Fraction:
    extra = Work(Fraction(0), Fraction(DEEPSEEK.query_absorption_flops), Fraction(0))
    return extra.on(bench().instance.cards["h20"], fp8=False).arithmetic / US


@claim("mla-extra-threshold-us", DECODE_S, AT)
def _() -> Fraction:
    """With that much more work per step, four H20 serve exactly what arrives."""
    h20 = bench().instance.cards["h20"]
    extra = (H20_LIMIT / ARRIVAL - decode_s("h20")) / bench().request.decode_steps
    if bench(extra_decode_flops=extra * h20.arithmetic).decode_pool(4, 0) != ARRIVAL:
        raise AssertionError("the threshold is not where the decode pool meets the arrival rate")
    return extra / US


@claim("mla-latent-attention-intensity", LLM.decode_pair_flops, LLM.kv_bytes_per_token, Card.ridge)
def _() -> dict[str, Value]:
    ridge = {f"{name}_ridge": card.ridge for name, card in bench().instance.cards.items()}
    return {"flop_per_byte": Fraction(DEEPSEEK.decode_pair_flops, DEEPSEEK.kv_bytes_per_token), **ridge}


# -------------------------------------------------------------------------------------------- request mix


def hit() -> Bench:
    return bench(cached_tokens=6144)


def hit_prompt() -> Work:
    return roofline.prefill_work(QWEN, hit().request.new_tokens, hit().request.cached_tokens)


def short() -> Bench:
    return bench(outputs=129)


def long() -> Bench:
    return bench(outputs=4097)


def best_cell(it: Bench) -> dict[str, Value]:
    return {"a100_p": it.best_cell[0], "h20_p": it.best_cell[1]}


@claim("mix-best-p-counts", BEST)
def _() -> dict[str, Value]:
    cases = {"base": bench(), "prefix_hit": hit(), "output_129": short()}
    return {name: sum(it.best_cell) for name, it in cases.items()}


simple("mix-hit-handoff-gib", lambda: hit().engine("a100").handover_bytes(hit().request) / GIB, HANDOVER)
simple("mix-hit-prefill-flops", lambda: hit_prompt().flops / TFLOP, roofline.prefill_work, Work.flops)
simple("mix-hit-best-cell", lambda: best_cell(hit()), BEST)
simple("mix-129-colocated", lambda: short().rate("colocated"), BEST)
simple("mix-129-gain", lambda: 100 * (short().rate() / short().rate("colocated") - 1), BEST)
simple("mix-129-split", lambda: short().rate(), BEST)
simple("mix-129-best-cell", lambda: best_cell(short()), BEST)

# ------------------------------------------------------------------------ start-up, integrated comparison


simple("start-reuse-1008", lambda: reuse.reusable_tokens(1024, page=16), reuse.reusable_tokens)
simple("start-prefetch-limit-tokens", lambda: reuse.registered_tokens(4, 1024), reuse.registered_tokens)


def derated() -> Bench:
    return bench(efficiency=Fraction("0.45"))


simple("start-backlog", lambda: drain.backlog(ARRIVAL, LAUNCH), drain.backlog)
simple("drain-derated-d", lambda: derated().decode_pool(4, 0), AT)
simple("drain-derated-misses", lambda: not in_time(derated().rate()), BEST, drain.required_rate)
simple("drain-derated-instant", lambda: instant(derated().rate()), BEST, drain.cleared_at)


@claim("drain-net-rates", BEST)
def _() -> dict[str, Value]:
    rates = {"chunked": bench().rate("chunked"), "pd": bench().rate(), "pd_derated": derated().rate()}
    return {name: rate - ARRIVAL for name, rate in rates.items()}


simple("cost-deadline-rate", lambda: drain.required_rate(ARRIVAL, LAUNCH, DEADLINE), drain.required_rate)
simple("drain-colocated-never", lambda: cleared(bench().rate("colocated")) is None, BEST, drain.cleared_at)
simple("drain-chunked", lambda: instant(bench().rate("chunked")), BEST, drain.cleared_at)
simple("drain-4p4d", lambda: instant(bench().cell(4, 0)), AT, drain.cleared_at)


@claim("cost-plan-rates", BEST)
def _() -> dict[str, Value]:
    forms = {"replicas": "colocated", "chunked": "chunked", "pd_direct": SPLIT}
    return {name: bench().rate(form) for name, form in forms.items()}


@claim("cost-drain-plans", BEST, drain.cleared_at)
def _() -> dict[str, Value]:
    rates = {"chunked": bench().rate("chunked"), "pd_direct": bench().rate()}
    return {name: instant(rate) for name, rate in (rates | {"pd_mla": bench(**MLA_WORK).rate()}).items()}


simple("cost-mem-kv-gib", lambda: bench().memory("h20", "decode").requests / GIB, CardEngine.memory)
simple("cost-mem-weights-gib", lambda: QWEN.weight_bytes / GIB, LLM.weight_bytes)
simple("cost-mem-total-gib", lambda: bench().memory("h20", "decode").need / GIB, Memory.need)
simple("cost-mem-h20-gib", lambda: bench().memory("h20", "decode").have / GIB, CardEngine.memory)
simple("cost-mem-fits", lambda: bench().memory("h20", "decode").short <= 0, Memory.short)
simple("cost-mem-p-side-gib", lambda: bench().memory("a100", "prefill").need / GIB, Memory.need)


@claim("cost-mem-4097-gib", Memory.need)
def _() -> dict[str, Value]:
    a100, h20 = (long().memory(card, "decode") for card in ("a100", "h20"))
    return {"d_card_GiB": h20.need / GIB, "a100_GiB": a100.have / GIB, "h20_GiB": h20.have / GIB}


@claim("pd-batch-at-arrival-rate", roofline.steady_batch, BEST)
def _() -> dict[str, Value]:
    def batch(rate: Fraction) -> Fraction:
        return roofline.steady_batch(bench().instance.cards["h20"], QWEN, bench().request, rate / H20_LIMIT)

    return {"per_card": batch(ARRIVAL), "at_capacity_total": H20_LIMIT * batch(bench().rate())}


# ------------------------------------------------------------------------------------------- load changes


@claim("mix-hit-rates", BEST, AT)
def _() -> dict[str, Value]:
    return {"replicas": hit().rate("colocated"), "pd_4p4d": hit().cell(4, 0), "pd_2p6d": hit().cell(2, 0)}


@claim("drain-hit-instants", BEST, AT, drain.cleared_at)
def _() -> dict[str, Value]:
    rates = {"replicas": hit().rate("colocated"), "pd_4p4d": hit().cell(4, 0), "pd_2p6d": hit().cell(2, 0)}
    return {name: instant(rate) for name, rate in rates.items()}


@claim("drain-hit-replicas-earlier", BEST, AT, drain.cleared_at)
def _() -> bool:
    return instant(hit().rate("colocated")) < instant(hit().cell(4, 0))


simple("mix-4097-bound", lambda: long().rate(), BEST)
simple("mix-4097-best-cell", lambda: best_cell(long()), BEST)
simple("mix-4097-three-groups", lambda: 3 * long().rate(), BEST)
simple("mix-4097-four-groups", lambda: 4 * long().rate(), BEST)
simple("mix-4097-cards-sustained", lambda: long().fewest("copies", "sustain").cards, min_cards)
simple("mix-4097-cards-deadline", lambda: long().fewest("copies", "deadline").cards, min_cards)
simple("drain-4097-three-groups", lambda: instant(3 * long().rate()), BEST, drain.cleared_at)
simple("drain-4097-four-groups", lambda: instant(4 * long().rate()), BEST, drain.cleared_at)


@claim("mix-4097-joint", BEST)
def _() -> dict[str, Value]:
    found: dict[str, Value] = {}
    for cards in (24, 32):
        it = bench(a100=cards // 2, h20=cards // 2, outputs=4097)
        found |= {f"cards{cards}_mu": it.rate()} | {f"cards{cards}_{k}": v for k, v in best_cell(it).items()}
    return found


@claim("mix-4097-fewest-any", min_cards)
def _() -> dict[str, Value]:
    return {f"{aim}_cards": long().fewest("card", aim).cards for aim in AIMS}


@claim("mix-4097-fewest-equal-mix", min_cards)
def _() -> dict[str, Value]:
    return {f"{aim}_cards": long().fewest("pair", aim).cards for aim in AIMS}


def instances(decode_rate: str, decode: int = 4) -> Bench:
    """One prefill instance at 20 requests per second and some decode instances, as measured."""
    return bench(a100=1, h20=decode, measured=("20/s", decode_rate))


def supplied(it: Bench) -> dict[str, Value]:
    return {"p_pool": it.prefill_pool(1, 0), "d_pool": it.decode_pool(1, 0)}


simple("mix-speedup-old", lambda: supplied(instances("5/s")), AT)
simple("mix-speedup-kept", lambda: {**supplied(instances("20/s")), "bound": instances("20/s").cell(1, 0)}, AT)


@claim("mix-speedup-new", AT, BEST)
def _() -> dict[str, Value]:
    """The fewest of the four decode instances that still do all that one prefill instance supplies."""
    best = instances("20/s").pinned({"left": {"prefill": 1}, "right": {"prefill": 0}}).highest_rate().point
    kept = best.counts["decode@right/h20"]
    return {**supplied(instances("20/s", kept)), "freed_d": 4 - kept}


# ---------------------------------------------------------------------------------------------- exercises


def passed(form: str, outputs: int = 1025) -> tuple[int, int]:
    """Prefills on a prefill card and hand-overs of one request, the same on every route of the best plan."""
    found = set()
    for route in bench(outputs=outputs).best(form).routes:
        kinds = [state.kind for activity in route.steps for state, n in activity.moves.items() if n > 0]
        found.add((sum(s.label.startswith("prefill@") for s in route.steps), kinds.count("ready")))
    (only,) = found
    return only


@claim("exercise-9-1-calls", BEST, RequestClass.decode_steps)
def _() -> dict[str, Value]:
    (_, whole), (prefills, split) = passed("colocated"), passed(SPLIT)
    steps = bench().request.decode_steps
    return {"prefill": prefills, "decode": steps, "handoffs_replica": whole, "handoffs_pd": split}


@claim("exercise-9-1-one-output", BEST, RequestClass.decode_steps)
def _() -> dict[str, Value]:
    prefills, split = passed(SPLIT, outputs=1)
    return {"prefill": prefills, "decode": bench(outputs=1).request.decode_steps, "handoffs_pd": split}


simple("exercise-9-1-open-token", lambda: bench().request.resident_context + 1, RequestClass.resident_context)


def slow() -> Bench:
    """A link that carries one state per second."""
    return bench(link=gqa_state() * RATE.read("1/s"))


simple("exercise-9-2-slow-link-gbps", lambda: slow().link / slow().link_rate / GB, AT, HANDOVER)
simple("exercise-9-2-slow-link-bound", lambda: slow().rate(), BEST)
simple("exercise-9-2-slow-link-ties", lambda: len(slow().best_cells), BEST, AT)
simple("exercise-9-2-slow-link-vs-colocated", lambda: slow().rate("colocated") > slow().rate(), BEST)


@claim("exercise-9-2-ten-extra", drain.waiting_after, drain.cleared_at)
def _() -> Fraction:
    """Where arrivals equal the bound, ten requests too many stay ten."""
    rate = slow().rate()
    if drain.cleared_at(rate, rate, LAUNCH) is not None:
        raise AssertionError("a backlog goes away although arrivals equal the bound")
    return drain.waiting_after(rate, rate, waiting=Fraction(10), seconds=DURATION.read("1 h"))


simple("exercise-9-2-hit-recheck", lambda: {"mu": hit().rate(), **pools(hit(), (2, 0))}, BEST, AT)
simple("exercise-9-2-129-recheck", lambda: {"mu": short().rate(), **pools(short(), (4, 3))}, BEST, AT)


def forty() -> Bench:
    return bench(efficiency=Fraction("0.4"))


@claim("exercise-9-2-eff40", BEST, AT)
def _() -> dict[str, Value]:
    it = forty()
    return {**pools(it, (4, 0)), "mu": it.cell(4, 0), "colocated": it.rate("colocated")}


simple("exercise-9-2-eff40-holds", lambda: sustained(forty().rate()), BEST, drain.sustains)
simple("exercise-9-2-eff40-drain", lambda: instant(forty().rate()), BEST, drain.cleared_at)


@claim("exercise-9-2-eff-min", BEST, drain.required_rate)
def _() -> dict[str, Value]:
    """Rates go with the efficiency; solved again at the efficiency found, the rate must be the target."""
    targets = {"sustain": ARRIVAL, "deadline": drain.required_rate(ARRIVAL, LAUNCH, DEADLINE)}
    least = {name: bench().efficiency * target / bench().rate() for name, target in targets.items()}
    if any(bench(efficiency=least[name]).rate() != target for name, target in targets.items()):
        raise AssertionError("the rate at the least efficiency is not the target")
    return {name: 100 * efficiency for name, efficiency in least.items()}


def half() -> Bench:
    return bench(outputs=MIXED)


@claim("exercise-9-10-d-seconds", DECODE_S)
def _() -> dict[str, Value]:
    loads: dict[str, Any] = {"1025": 1025, "4097": 4097, "mean": MIXED}
    cards = ("a100", "h20")
    return {f"{card}_{name}": decode_s(card, outputs=g) for name, g in loads.items() for card in cards}


@claim("exercise-9-10-best", BEST, AT)
def _() -> dict[str, Value]:
    return {**best_cell(half()), **pools(half(), half().best_cell), "mu": half().rate()}


simple("exercise-9-10-unique", lambda: len(half().best_cells), BEST, AT)


@claim("exercise-9-10-groups", min_cards)
def _() -> dict[str, Value]:
    return {aim: half().fewest("copies", aim).copies for aim in AIMS}


@claim("exercise-9-10-drain", BEST, drain.cleared_at)
def _() -> dict[str, Value]:
    return {"two_groups_s": instant(2 * half().rate()), "three_groups_s": instant(3 * half().rate())}


@claim("exercise-9-10-joint16", BEST)
def _() -> dict[str, Value]:
    it = bench(a100=8, h20=8, outputs=MIXED)
    return {"mu": it.rate(), **best_cell(it)}


@claim("exercise-9-11-mla", HANDOVER, TRANSFER, AT, used)
def _() -> dict[str, Value]:
    return {
        "MiB": mla_state() / MIB,
        "ms_25": handover_s(mla_state(), LINK) / MS,
        "ms_50": handover_s(mla_state(), FAST_LINK) / MS,
        "link_rate_25": bench(**MLA).link_rate,
        "link_rate_50": bench(link=FAST_LINK, **MLA).link_rate,
        "min_GBps": used(bench(**MLA).best().routes)[CHANNEL] / GB,
    }


@claim("exercise-9-11-d", DECODE_S, AT, drain.cleared_at)
def _() -> dict[str, Value]:
    it = bench(**MLA_WORK)
    return {"h20_s": decode_s("h20", **MLA_WORK), "pool": it.decode_pool(4, 0), "drain_s": instant(it.rate())}


# --------------------------------------------------------------------------------------------- the report


@cache
def value(name: str) -> Value | dict[str, Value]:
    """What the product says about a claim."""
    return REGISTRY[name].compute()


def read_chapter() -> dict[str, Any]:
    chapter: dict[str, Any] = yaml.safe_load(CHAPTER.read_text("utf-8"))
    return chapter


def _shown(thing: Any) -> str:
    if isinstance(thing, dict):
        return ", ".join(f"{key} {_shown(part)}" for key, part in thing.items())
    if isinstance(thing, bool):
        return "yes" if thing else "no"
    if isinstance(thing, int) or (isinstance(thing, Fraction) and thing.denominator == 1):
        return str(int(thing))
    return f"{float(thing):.7g}"


INTRODUCTION = """\
# The chapter's claims, computed by this program

{total} computed claims of the chapter that this program follows. Each is computed by the program's own
functions (`tests/chapter_functions.py`) and compared within half of the last printed place
(`tests/test_chapter.py`). *Expected* is the figure that the chapter prints or, in italics, one that follows
from it. `Solver.highest_rate` is a proven optimum, `Solver.at` the rate of given counts.
Written by `python tests/chapter_functions.py`; do not edit.
"""
PLAIN = ("boolean", "mixed", "counts")  # units that say nothing beside the value


def _short(path: str) -> str:
    """`drain.cleared_at`, `Solver.at`: a function with its module, a method with its class."""
    module, *inside = path.split(".")[1:]
    return ".".join(inside if inside[0][0].isupper() else [module, *inside])


def _row(it: dict[str, Any]) -> str:
    expected = _shown(it["expected"]) + ("" if it["unit"] in PLAIN else f" {it['unit']}")
    if it["precision"] is None:
        expected = f"*{expected}*"
    by = ", ".join(f"`{_short(path)}`" for path in REGISTRY[it["id"]].by)
    return f"| {it['id']} | {it['says']} | {by} | {expected} | {_shown(value(it['id']))} |"


def render() -> str:
    """reports/chapter.md."""
    chapter = read_chapter()
    everything = [it for claims in chapter["sections"].values() for it in claims]
    lines = [INTRODUCTION.format(total=len(everything))]
    for section, claims in chapter["sections"].items():
        lines += [f"## {section}", "", "| claim | what it says | computed by | expected | value |"]
        lines += ["|---|---|---|---|---|", *map(_row, claims), ""]
    lines += ["## Left out", "", "| claim | why |", "|---|---|"]
    lines += [f"| {name} | {why} |" for name, why in chapter["left_out"].items()]
    parts = [(it["id"], *part) for it in everything for part in it.get("without", {}).items()]
    lines += [f"| {name}, only `{part}` | {why} |" for name, part, why in parts]
    return "\n".join(lines) + "\n"


def main() -> None:
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(render(), "utf-8")
    print(f"{REPORT}: {len(REGISTRY)} claims")


if __name__ == "__main__":
    main()
