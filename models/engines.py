"""What one replica needs and does: card time of a request, memory, and the batches that fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from . import roofline
from .hardware import Card
from .instance import Engine, MeasuredRates
from .llm import LLM
from .roofline import Stage
from .workload import RequestClass

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that a replica needs on one card, part by part, and what the card has."""

    weights: int
    reserve: Fraction
    requests: Fraction  # KV of the requests that it holds at once
    transfer: Fraction  # states that land or leave while others run
    have: Fraction
    rule: str  # how `requests` was sized

    @property
    def need(self) -> Fraction:
        return self.weights + self.reserve + self.requests + self.transfer

    @property
    def short(self) -> Fraction:
        """Bytes that are missing; 0 or less where it fits."""
        return self.need - self.have


@dataclass(frozen=True, slots=True)
class CardEngine:
    """One model on one card, with the options of the instance."""

    card: Card
    llm: LLM
    options: Engine
    measured: MeasuredRates | None

    def prefill_seconds(self, request: RequestClass) -> Fraction:
        """Card-seconds of one prefill."""
        if self.measured and self.measured.prefill_rate:
            return 1 / self.measured.prefill_rate
        return roofline.prefill(self.card, self.llm, request).seconds

    def decode_seconds(self, request: RequestClass, batch: int) -> Fraction:
        """Card-seconds of one request's decode steps in a batch."""
        if not request.decode_steps:
            return Fraction(0)
        if self.measured and self.measured.decode_rate:
            return 1 / self.measured.decode_rate
        return roofline.decode(self.card, self.llm, request, batch, self.options.extra_decode_flops)

    def chunked(self, request: RequestClass, batch: int) -> Stage:
        """Arithmetic and traffic of one request under ideal chunking."""
        return roofline.ideal_chunks(self.card, self.llm, request, batch, self.options.extra_decode_flops)

    def handover_bytes(self, request: RequestClass) -> Fraction:
        """Bytes that the hand-over of one request moves: the state of the whole prompt."""
        per_token = self.options.handover_bytes_per_token
        return request.input_tokens * (
            Fraction(self.llm.kv_bytes_per_token) if per_token is None else per_token
        )

    def memory(
        self, role: str, batch: int | None, requests: Sequence[RequestClass], handed_over: bool
    ) -> Memory:
        """What a replica of a role holds at once (design section 1).

        A decoding replica holds its batch at the final context of the longest class (for a class with a
        distribution of outputs: at its mean over the time spent in decode), and, where KV is handed over,
        one landing state. A prefill replica holds the state it makes and the one that leaves.
        """
        decoding = [r for r in requests if r.decode_steps]
        state = max((self.handover_bytes(r) for r in decoding), default=Fraction(0))
        decoding = decoding or list(requests)
        if role == "prefill":
            made = max(Fraction(r.input_tokens) for r in requests) * self.llm.kv_bytes_per_token
            held, rule = made, "one prompt in the making"
        else:
            longest = max(decoding, key=lambda r: r.resident_context)
            held = (batch or 1) * longest.resident_context * self.llm.kv_bytes_per_token
            kind = "mean" if len(longest.output_tokens) > 1 else "final"
            rule = f"{batch} requests at the {kind} context of class {longest.name}"
        return Memory(
            self.llm.weight_bytes,
            self.options.reserve,
            held,
            state if handed_over else Fraction(0),
            self.card.memory,
            rule,
        )

    def largest_batch(self, role: str, requests: Sequence[RequestClass], handed_over: bool) -> int:
        """The largest decode batch that fits, 0 where none does."""
        one, two = (self.memory(role, b, requests, handed_over) for b in (1, 2))
        each = two.requests - one.requests
        return max(0, int((one.have - one.need) // each) + 1)

    def batches(self, role: str, requests: Sequence[RequestClass], handed_over: bool) -> tuple[int, ...]:
        """The batches to offer: those asked for, `auto` standing for the largest that fits (or 1)."""
        asked = (
            max(1, self.largest_batch(role, requests, handed_over)) if batch == "auto" else int(batch)
            for batch in self.options.decode_batch
        )
        return tuple(dict.fromkeys(asked))
