"""The load: classes of requests that the router can tell apart, and how fast they arrive.

What the router cannot see on arrival, the output length, is a distribution inside one class.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator, ValidationInfo, WithJsonSchema, model_validator

from .quantities import CachedTokens, PerSecond, Share, Tokens, read_number, show_number
from .schema import Name, Schema, Text, fault


def _read_outputs(value: object) -> dict[int, Fraction]:
    """A number of tokens, or a mapping from numbers of tokens to shares that add up to exactly 1."""
    accepted = "give a whole number of tokens from 1, or shares by length such as {1025: 0.5, 4097: 0.5}"
    if not isinstance(value, (Mapping, str, int, float, Fraction)):
        raise fault(f"is no number; {accepted}")
    points = value if isinstance(value, Mapping) else {value: 1}
    outputs: dict[int, Fraction] = {}
    for length, share in points.items():
        try:
            tokens, part = read_number(length), read_number(share)
        except ValueError as error:
            raise fault(f"is {error}; {accepted}", value=share if tokens_read(length) else length) from None
        if tokens.denominator != 1 or not 1 <= tokens <= 10**8:
            raise fault(f"has the length {length!r}; {accepted}")
        if not 0 <= part <= 1:
            raise fault(f"has the share {share!r}, which is not from 0 to 1")
        if int(tokens) in outputs:
            raise fault(f"names the length {tokens} twice")
        outputs[int(tokens)] = part
    if sum(outputs.values()) != 1:
        raise fault(
            f"has shares that add up to {show_number(sum(outputs.values(), Fraction(0)))}, not to exactly 1"
        )
    return {length: outputs[length] for length in sorted(outputs) if outputs[length]}


def tokens_read(length: object) -> bool:
    """Whether a length reads as a number at all."""
    try:
        read_number(length)
    except ValueError:
        return False
    return True


def _show_outputs(outputs: Mapping[int, Fraction]) -> Any:
    if len(outputs) == 1:
        return next(iter(outputs))
    return {str(length): show_number(share) for length, share in outputs.items()}


Outputs = Annotated[
    dict[int, Fraction],
    PlainValidator(_read_outputs),
    PlainSerializer(_show_outputs),
    WithJsonSchema(
        {
            "description": "a whole number of tokens, or shares by length such as {1025: 0.5, 4097: 0.5}",
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {
                    "type": "object",
                    "additionalProperties": {"anyOf": [{"type": "number"}, {"type": "string"}]},
                },
            ],
        }
    ),
]


class RequestClass(Schema):
    """Requests that look alike on arrival."""

    name: Name = "all"
    share: Share = Field(Fraction(1), description="share of all requests; the shares add up to exactly 1")
    input_tokens: Tokens = Field(description="prompt length in tokens")
    output_tokens: Outputs = Field(description="answer length in tokens, the first one included")
    cached_tokens: CachedTokens = Field(
        0, description="prompt tokens whose KV the prefill side already holds"
    )
    model: Name | None = Field(None, description="one of `models`, where there are several")

    @model_validator(mode="after")
    def _something_to_do(self) -> RequestClass:
        if self.cached_tokens >= self.input_tokens:
            raise fault(
                f"leaves nothing of the {self.input_tokens} input tokens to process; give fewer",
                ("cached_tokens",),
                self.cached_tokens,
            )
        return self

    @property
    def new_tokens(self) -> int:
        """Prompt tokens that prefill processes."""
        return self.input_tokens - self.cached_tokens

    @cached_property
    def decode_steps(self) -> Fraction:
        """Mean decode steps of a request: the prefill itself yields the first token."""
        return sum(((g - 1) * share for g, share in self.output_tokens.items()), Fraction(0))

    @cached_property
    def mean_context(self) -> Fraction:
        """Tokens visible to a decode step, averaged over all steps of all requests: L + (G-1)/2."""
        if not self.decode_steps:
            return Fraction(self.input_tokens)
        weighted = sum(
            (
                (g - 1) * (self.input_tokens + Fraction(g - 1, 2)) * share
                for g, share in self.output_tokens.items()
            ),
            Fraction(0),
        )
        return weighted / self.decode_steps

    @property
    def decoded_share(self) -> Fraction:
        """Share of the requests that need any decode, and so a hand-over."""
        return 1 - self.output_tokens.get(1, Fraction(0))

    @property
    def resident_context(self) -> Fraction:
        """Tokens that memory holds for one decoding request.

        The final context, or, for a distribution of outputs, the mean over the time spent in decode.
        """
        if len(self.output_tokens) > 1:
            return self.mean_context
        return Fraction(self.input_tokens + next(iter(self.output_tokens)) - 1)


class Workload(Schema):
    """Arriving requests."""

    rate: PerSecond | None = Field(None, description="arrival rate of all requests together, such as 3.5/s")
    classes: tuple[RequestClass, ...] = Field(description="at least one; with `trace`, how many to form")
    source: Text | None = Field(None, description="where the classes come from, if from a trace")

    @model_validator(mode="before")
    @classmethod
    def _from_trace(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, dict) or "trace" not in data:
            return data
        from .classes import class_errors, form_classes
        from .trace import TraceError, read_trace

        wanted = data.get("classes", 12)
        try:
            number = read_number(wanted)
        except ValueError:
            number = Fraction(0)
        if number.denominator != 1 or not 1 <= number <= 1000:
            raise fault(
                "must say how many classes to form from the trace, from 1 to 1000", ("classes",), wanted
            )
        path = Path((info.context or {}).get("folder", ".")) / str(data["trace"])
        try:
            trace = read_trace(path)
            formed = form_classes(trace, int(number))
            rate = data.get("rate") or trace.rate
        except TraceError as error:
            raise fault(str(error), ("trace",)) from None
        errors = class_errors(trace, formed)
        classes = [
            {
                "name": c.name,
                "share": c.share,
                "input_tokens": c.input_tokens,
                "output_tokens": c.output_tokens,
            }
            for c in formed
        ]
        source = (
            f"{len(formed)} classes of {trace.requests} requests in {path.name}; total seconds kept within "
            f"{errors['prefill']:.2%} (prefill) and {errors['decode']:.2%} (decode)"
        )
        rest = {key: value for key, value in data.items() if key != "trace"}
        return {**rest, "rate": rate, "classes": classes, "source": source}

    @model_validator(mode="after")
    def _shares(self) -> Workload:
        if not self.classes:
            raise fault("is empty; give at least one class", ("classes",))
        names = [c.name for c in self.classes]
        for i, name in enumerate(names):
            if name in names[:i]:
                raise fault("names two classes; give each its own name", ("classes", i, "name"), name)
        total = sum(c.share for c in self.classes)
        if total != 1:
            raise fault(
                f"have shares that add up to {show_number(Fraction(total))}, not to exactly 1", ("classes",)
            )
        return self
