"""Seconds and bytes that one request takes on one card (digest section 0), in exact arithmetic.

A stage takes the longer of its arithmetic and its memory traffic; both terms are returned, since claims
about arithmetic use that one and plans the longer. Units: tokens, FLOP, bytes, seconds.

    prefill      2 P_block new + A (hist new + new^2/2) + 2 P_head      against   weights + cached KV
    decode step  b (2 (P_block + P_head) + A c)                         against   weights + b c kv

with A the FLOP of one (query, visible key) pair and c the mean context L + (G-1)/2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from .hardware import Card
from .llm import LLM
from .workload import RequestClass


@dataclass(frozen=True, slots=True)
class Work:
    """What a stage does: FLOP inside the blocks' matrices, other FLOP, and bytes moved."""

    block_flops: Fraction
    other_flops: Fraction
    moved_bytes: Fraction

    @property
    def flops(self) -> Fraction:
        return self.block_flops + self.other_flops

    def __add__(self, other: Work) -> Work:
        return Work(
            self.block_flops + other.block_flops,
            self.other_flops + other.other_flops,
            self.moved_bytes + other.moved_bytes,
        )

    def times(self, factor: Fraction | int) -> Work:
        return Work(self.block_flops * factor, self.other_flops * factor, self.moved_bytes * factor)

    def on(self, card: Card, fp8: bool) -> Stage:
        """The time that this work takes on one card."""
        peak = card.arithmetic_fp8 if fp8 else card.arithmetic
        return Stage(
            self.block_flops / peak + self.other_flops / card.arithmetic, self.moved_bytes / card.streaming
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """Seconds of one stage: its arithmetic, its memory traffic, and the longer of the two."""

    arithmetic: Fraction
    traffic: Fraction

    @property
    def seconds(self) -> Fraction:
        return max(self.arithmetic, self.traffic)

    @property
    def bound(self) -> str:
        return "arithmetic" if self.arithmetic >= self.traffic else "bandwidth"

    def times(self, factor: Fraction | int) -> Stage:
        return Stage(self.arithmetic * factor, self.traffic * factor)


def prefill_work(llm: LLM, new: int, cached: int = 0) -> Work:
    """Prefill of `new` tokens behind `cached` ones: causal attention, head on the last token only."""
    pairs = Fraction(cached * new) + Fraction(new * new, 2)
    return Work(
        block_flops=Fraction(2 * llm.active_block_parameters * new),
        other_flops=llm.prefill_pair_flops * pairs + 2 * llm.head_parameters,
        moved_bytes=llm.streamed_bytes(new) + cached * llm.kv_bytes_per_token,
    )


def step_work(llm: LLM, batch: int, context: Fraction | int) -> Work:
    """One decode step of `batch` requests whose mean context is `context` tokens."""
    return Work(
        block_flops=Fraction(2 * llm.active_block_parameters * batch),
        other_flops=batch * (2 * llm.head_parameters + llm.decode_pair_flops * Fraction(context)),
        moved_bytes=llm.streamed_bytes(batch) + batch * context * llm.kv_bytes_per_token,
    )


def prefill(card: Card, llm: LLM, request: RequestClass) -> Stage:
    """Card time of one request's prefill."""
    return prefill_work(llm, request.new_tokens, request.cached_tokens).on(card, llm.fp8)


def decode_step(card: Card, llm: LLM, batch: int, context: Fraction | int) -> Stage:
    """Time of one decode step on one card."""
    return step_work(llm, batch, context).on(card, llm.fp8)


def decode(
    card: Card, llm: LLM, request: RequestClass, batch: int, extra_flops: Fraction | int = 0
) -> Fraction:
    """Card-seconds of one request's decode: its steps, each shared by the batch.

    `extra_flops` is work per request and step that neither the batch shares nor traffic hides.
    """
    step = decode_step(card, llm, batch, request.mean_context)
    return request.decode_steps * (step.seconds / batch + Fraction(extra_flops) / card.arithmetic)


def ideal_chunks(
    card: Card, llm: LLM, request: RequestClass, batch: int, extra_flops: Fraction | int = 0
) -> Stage:
    """Arithmetic and traffic of one request if chunked prefill filled every idle cycle: a bound.

    One extra pass over the weights is paid per prefill; history KV read again by chunks is not charged.
    """
    new = prefill_work(llm, request.new_tokens, request.cached_tokens)
    steps = step_work(llm, batch, request.mean_context).times(request.decode_steps / batch)
    ride = Work(
        new.block_flops,
        new.other_flops + request.decode_steps * Fraction(extra_flops),
        llm.streamed_bytes(batch),
    )
    return (ride + steps).on(card, llm.fp8)


def idle_prefill_tokens(card: Card, llm: LLM, request: RequestClass, batch: int) -> Fraction:
    """Prefill tokens whose arithmetic fits into one decode step's wait for memory.

    Priced at the prompt's mean FLOP per token.
    """
    step = decode_step(card, llm, batch, request.mean_context)
    one_token = prefill(card, llm, request).arithmetic / request.new_tokens
    return max(Fraction(0), step.traffic - step.arithmetic) / one_token


def chunk_steps(card: Card, llm: LLM, request: RequestClass, batch: int) -> int:
    """Decode steps that a prompt rides on, if each carries what fits into its idle arithmetic."""
    return ceil(request.new_tokens / idle_prefill_tokens(card, llm, request, batch))


def steady_batch(card: Card, llm: LLM, request: RequestClass, rate: Fraction) -> Fraction:
    """Requests in flight on one decode card that serves `rate` requests/s, where traffic binds.

    Solves b = rate (G-1) (W + b c kv)/B; the weights are those of a full pass.
    """
    per_step = rate * request.decode_steps / card.streaming
    weights = llm.streamed_bytes(1 if not llm.num_experts else 64 * llm.num_experts)
    slack = 1 - per_step * request.mean_context * llm.kv_bytes_per_token
    if slack <= 0:
        raise ValueError("the card cannot hold this rate at any batch")
    return per_step * weights / slack
