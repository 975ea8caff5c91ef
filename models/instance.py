"""A deployment as a user declares it: cards, servers, links, model, workload and goals.

Validation resolves everything (catalogue facts, config.json, trace), so that a validated instance stands
alone: its dump reads back to the same instance, and its sha256 names it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from .hardware import Card, Link, Offer, Server
from .llm import LLM
from .quantities import (
    DURATION,
    Amount,
    Bytes,
    Count,
    PerSecond,
    PositiveAmount,
    Seconds,
    read_number,
)
from .schema import Name, Schema, Text, fault, refuse_unbuilt
from .suggest import did_you_mean
from .workload import RequestClass, Workload

Form = Literal["colocated", "chunked", "disaggregated"]
Role = Literal["prefill", "decode", "colocated", "chunked"]
Objective = Literal["max-rate", "min-cards", "min-cost"]


def _read_batches(value: object) -> tuple[int | str, ...]:
    """A number, a list of numbers, or `auto`."""
    accepted = "give a whole number of requests from 1 to 100000, a list of them, or auto"
    items = value if isinstance(value, (list, tuple)) else [value]
    batches: list[int | str] = []
    for item in items:
        if item == "auto":
            batches.append("auto")
            continue
        try:
            number = read_number(item)
        except ValueError as error:
            raise fault(f"is {error}; {accepted}", value=item) from None
        if number.denominator != 1 or not 1 <= number <= 100_000:
            raise fault(f"is out of range; {accepted}", value=item)
        batches.append(int(number))
    if not batches:
        raise fault(f"is empty; {accepted}")
    if len(set(batches)) != len(batches):
        raise fault(f"names a batch twice; {accepted}")
    return tuple(batches)


Batches = Annotated[
    tuple[int | str, ...],
    PlainValidator(_read_batches),
    PlainSerializer(lambda batches: list(batches) if len(batches) > 1 else batches[0]),
    WithJsonSchema(
        {
            "description": "requests in one decode step: a number, a list, or auto (the largest that fits)",
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"const": "auto"},
                {"type": "array", "items": {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "auto"}]}},
            ],
        }
    ),
]


class Engine(Schema):
    """How replicas run."""

    decode_batch: Batches = Field((32,), validate_default=True)
    handover_bytes_per_token: PositiveAmount | None = Field(
        None, description="bytes that a hand-over moves per prompt token; left out: the model's KV"
    )
    extra_decode_flops: Amount = Field(
        Fraction(0), description="FLOP per request and decode step that the batch does not share"
    )
    reserve: Bytes = Field(
        Fraction(0), description="memory that the engine keeps for itself on each card, such as 4 GiB"
    )

    @model_validator(mode="before")
    @classmethod
    def _unbuilt(cls, data: Any) -> Any:
        refuse_unbuilt(data, {"shapes": "replicas of several cards"})
        if isinstance(data, dict) and data.get("reserve") == "vllm":
            raise fault("is not built yet (engine presets); give a size such as 8 GiB", ("reserve",), "vllm")
        return data


class MeasuredRates(Schema):
    """Rates of one replica on one card as they were measured; they replace the roofline for all classes."""

    prefill_rate: PerSecond | None = Field(
        None, description="prompts per second of one prefill replica, such as 20/s"
    )
    decode_rate: PerSecond | None = Field(
        None, description="answers per second of one decode replica, such as 5/s"
    )


class Goals(Schema):
    """What the plan should reach."""

    startup: Seconds | None = Field(
        None, description="launch time during which nothing is served, such as 10 s"
    )
    deadline: Seconds | None = Field(
        None, description="when the launch's backlog must be gone, counted from the start of the launch"
    )
    min_rate: PerSecond | None = Field(
        None, description="capacity that the plan must have at least, such as 100/s"
    )

    @model_validator(mode="before")
    @classmethod
    def _unbuilt(cls, data: Any) -> Any:
        latency, failures = "latency limits", "failures"
        refuse_unbuilt(data, {"ttft": latency, "tpot": latency, "headroom": "headroom", "survive": failures})
        return data

    @model_validator(mode="after")
    def _order(self) -> Goals:
        if self.deadline is not None and self.startup is None:
            raise fault("needs `startup` beside it", ("deadline",))
        if self.deadline is not None and self.startup is not None and self.deadline <= self.startup:
            raise fault(
                "does not lie after `startup`; give a later one", ("deadline",), DURATION.show(self.deadline)
            )
        return self


class OneChannel(Schema):
    """Every hand-over, local ones and both directions, is charged to one declared link."""

    one_channel: Name = Field(alias="one-channel", description="the name of a link")


def _read_handover(value: object) -> str | None:
    if value is None or value == "routed":
        return None
    if isinstance(value, dict) and set(value) == {"one-channel"} and isinstance(value["one-channel"], str):
        return value["one-channel"]
    raise fault("is no way to hand over; give routed, or {one-channel: LINK}", value=value)


Handover = Annotated[
    str | None,
    PlainValidator(_read_handover),
    PlainSerializer(lambda channel: {"one-channel": channel} if channel else "routed"),
    WithJsonSchema(
        {
            "description": "routed: links on the way; {one-channel: LINK}: one link for all",
            "anyOf": [
                {"const": "routed"},
                {"type": "object", "properties": {"one-channel": {"type": "string"}}},
            ],
        }
    ),
]


class Instance(Schema):
    """One deployment to plan. Only model (or models), cards, servers and workload are needed."""

    format: Literal["inferplan.instance/1"] = "inferplan.instance/1"
    name: Name = "instance"
    about: Text | None = Field(None, description="one line that says what this deployment teaches")
    model: LLM | None = Field(None, description="a catalogue name, the path of a config.json, or its fields")
    models: dict[Name, LLM] = Field(
        default_factory=dict, description="several models, by name; classes name theirs"
    )
    cards: dict[Name, Card]
    servers: tuple[Server, ...]
    switches: tuple[Name, ...] = ()
    links: tuple[Link, ...] = ()
    handover: Handover = None
    workload: Workload
    engine: Engine = Field(default_factory=Engine)
    engines: dict[Name, MeasuredRates] = Field(
        default_factory=dict, description="by card, where rates were measured"
    )
    fix: dict[Name, dict[Role, Count]] = Field(
        default_factory=dict, description="pinned counts, such as {left: {prefill: 4}}"
    )
    forms: tuple[Form, ...] = Field(
        ("colocated", "disaggregated"), description="several may be mixed in one plan"
    )
    goals: Goals = Field(default_factory=Goals)
    objective: Objective = "max-rate"
    offers: tuple[Offer, ...] = Field((), description="what may be bought (min-cards, min-cost, remedies)")

    @model_validator(mode="before")
    @classmethod
    def _unbuilt(cls, data: Any) -> Any:
        refuse_unbuilt(data, {"rates": "rate tables", "cache": "cache tiers"})
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Instance:
        for fault_found in _faults(self):
            raise fault_found
        return self

    @property
    def llms(self) -> dict[str, LLM]:
        """The models by the name that classes use."""
        return self.models or ({self.model.name: self.model} if self.model else {})

    def llm_of(self, request: RequestClass) -> str:
        """The name of the model that a class asks for."""
        return request.model or next(iter(self.llms))

    @property
    def hourly(self) -> bool:
        """Whether prices are per hour."""
        return any(price.hourly for price in _prices(self))

    @property
    def sites(self) -> dict[str, Server]:
        """Every single server by name; an entry with a count stands for several."""
        return {site: server for server in self.servers for site in server.sites}

    @cached_property
    def resolved(self) -> dict[str, Any]:
        """The whole instance as plain JSON values, which reads back to the same instance."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @cached_property
    def sha256(self) -> str:
        """Over canonical JSON of the resolved instance."""
        text = json.dumps(self.resolved, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _faults(it: Instance) -> Iterator[Exception]:
    """What no single field can know."""
    if (it.model is None) == (not it.models):
        yield fault("give either `model` or `models`", ("models" if it.models else "model",))
    if not it.cards:
        yield fault("is empty; give at least one card", ("cards",))
    if not it.servers:
        yield fault("is empty; give at least one server", ("servers",))
    if not it.forms:
        yield fault("is empty; give colocated, disaggregated or chunked", ("forms",))
    if len(set(it.forms)) != len(it.forms):
        yield fault("names a form twice", ("forms",))
    nodes: set[str] = set()
    for i, server in enumerate(it.servers):
        if server.card not in it.cards:
            yield fault(
                f"is not in `cards`{did_you_mean(server.card, it.cards)}", ("servers", i, "card"), server.card
            )
        for site in {server.name, *server.sites}:
            if site in nodes:
                yield fault(
                    "names two servers or switches; give each its own name", ("servers", i, "name"), site
                )
            nodes.add(site)
    for i, switch in enumerate(it.switches):
        if switch in nodes:
            yield fault("names two servers or switches; give each its own name", ("switches", i), switch)
        nodes.add(switch)
    counted = {server.name for server in it.servers if server.count > 1}
    links: set[str] = set()
    for i, link in enumerate(it.links):
        if link.name in links:
            yield fault("names two links; give each its own name", ("links", i, "name"), link.name)
        links.add(link.name)
        for field, end in zip(
            ("between", "between") if link.between else ("from", "to"), link.ends, strict=True
        ):
            if end not in nodes:
                yield fault(f"names no server or switch{did_you_mean(end, nodes)}", ("links", i, field), end)
        if set(link.ends) <= counted:
            yield fault(
                "joins two groups of servers; join each with a switch instead", ("links", i), link.name
            )
    if it.handover and it.handover not in links:
        yield fault(
            f"names no link{did_you_mean(it.handover, links)}", ("handover", "one-channel"), it.handover
        )
    for i, request in enumerate(it.workload.classes):
        if request.model is not None and request.model not in it.llms:
            yield fault(
                f"is not in `models`{did_you_mean(request.model, it.llms)}",
                ("workload", "classes", i, "model"),
                request.model,
            )
        if request.model is None and len(it.llms) > 1:
            yield fault("needs `model`, since there are several models", ("workload", "classes", i))
    for card in it.engines:
        if card not in it.cards:
            yield fault(f"is not in `cards`{did_you_mean(card, it.cards)}", ("engines", card), card)
    for site in it.fix:
        if site not in it.sites:
            yield fault(f"names no server{did_you_mean(site, it.sites)}", ("fix", site), site)
    offers: set[str] = {"card", "server", "copies"}
    for i, offer in enumerate(it.offers):
        if offer.name in offers:
            yield fault(
                "is taken or reserved; give the offer another name", ("offers", i, "name"), offer.name
            )
        offers.add(offer.name)
        for card in offer.cards:
            if card not in it.cards:
                yield fault(
                    f"is not in `cards`{did_you_mean(card, it.cards)}", ("offers", i, "cards", card), card
                )
        if not offer.cards:
            yield fault("is empty; give the cards of one bundle", ("offers", i, "cards"))
    if it.goals.deadline is not None and it.workload.rate is None:
        yield fault("needs `workload.rate` beside it", ("goals", "deadline"))
    if len({p.hourly for p in _prices(it)}) > 1:
        yield fault("has prices per hour beside prices without a time; give all in one way", ("cards",))


def _prices(it: Instance) -> Iterator[Any]:
    yield from (card.price for card in it.cards.values() if card.price is not None)
    yield from (offer.price for offer in it.offers if offer.price is not None)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of an instance as users write it: what resolution fills in is not required."""
    schema = Instance.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    definitions["Card"]["required"] = []
    definitions["Card"]["properties"].pop("guessed")
    definitions["Efficiencies"] = {
        "description": "a fraction above 0 and at most 1 for both, or {compute: 0.6, memory: 0.49}",
        "anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1}, definitions["Efficiencies"]],
    }
    definitions["LLM"] = {
        "description": "a catalogue name, the path of a Hugging Face config.json, or its fields",
        "anyOf": [{"type": "string"}, {**definitions["LLM"], "required": []}],
    }
    workload = definitions["Workload"]
    workload["required"] = []
    workload["properties"].pop("source")
    workload["properties"]["trace"] = {
        "type": "string",
        "description": "a trace file (Azure CSV or Mooncake JSONL)",
    }
    classes = workload["properties"]["classes"]
    workload["properties"]["classes"] = {"anyOf": [classes, {"type": "integer", "minimum": 1}]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "inferplan instance",
        **schema,
    }
