"""Accelerator cards, the servers that hold them and the links between servers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from pydantic import Field, model_validator

from . import catalog
from .quantities import (
    Bytes,
    BytesPerSecond,
    Count,
    Efficiency,
    FlopPerSecond,
    Money,
    PositiveCount,
    Seconds,
    ServerCount,
)
from .schema import Name, Schema, Text, fault
from .suggest import did_you_mean


class Efficiencies(Schema):
    """The shares of a card's peaks that inference reaches; one number stands for both."""

    compute: Efficiency = Field(description="share of the peak FLOP/s that prefill reaches, such as 0.5")
    memory: Efficiency = Field(description="share of the peak bandwidth that decode reaches, such as 0.5")

    @model_validator(mode="before")
    @classmethod
    def _one_for_both(cls, data: Any) -> Any:
        return data if isinstance(data, (dict, cls)) else {"compute": data, "memory": data}


class Card(Schema):
    """One kind of accelerator card. With `catalog`, facts left out are the catalogue's."""

    catalog: str | None = Field(None, description="name of a catalogue entry; `inferplan catalog` lists them")
    bf16: FlopPerSecond = Field(description="peak dense BF16 rate, such as 312 TFLOP/s")
    fp8: FlopPerSecond | None = Field(None, description="peak dense FP8 rate; left out where there is none")
    memory: Bytes = Field(description="memory of one card, such as 80 GB")
    bandwidth: BytesPerSecond = Field(description="peak memory bandwidth, such as 2039 GB/s")
    scale_up: BytesPerSecond | None = Field(None, description="NVLink or alike, each way")
    pcie: BytesPerSecond | None = Field(None, description="PCIe, each way")
    efficiency: Efficiencies = Field(description="0.5, or {compute: 0.6, memory: 0.49}")
    price: Money | None = Field(
        None, description="price of one card: 2.5/h, or 2.5 in the instance's own unit"
    )
    guessed: bool = Field(False, description="the efficiency is the catalogue's guess, not a measurement")

    @model_validator(mode="before")
    @classmethod
    def _from_catalog(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not data.get("catalog"):
            return data
        if (
            all(data.get(fact) for fact in ("bf16", "memory", "bandwidth", "efficiency"))
            and "guessed" in data
        ):
            return data  # already resolved
        name = data["catalog"]
        try:
            facts = catalog.entry("cards", name)["facts"]
        except (KeyError, TypeError):
            raise fault(
                f"is no card of the catalogue{did_you_mean(name, catalog.names('cards'))}; "
                "`inferplan catalog` lists them",
                ("catalog",),
                name,
            ) from None
        return {**facts, "guessed": "efficiency" not in data, **data}

    @property
    def arithmetic(self) -> Fraction:
        """Usable BF16 FLOP/s."""
        return self.efficiency.compute * self.bf16

    @property
    def arithmetic_fp8(self) -> Fraction:
        """Usable FP8 FLOP/s; a card without FP8 units computes such weights in BF16."""
        return self.efficiency.compute * (self.fp8 or self.bf16)

    @property
    def streaming(self) -> Fraction:
        """Usable bytes/s of the card's memory."""
        return self.efficiency.memory * self.bandwidth

    @property
    def ridge(self) -> Fraction:
        """FLOP per byte above which arithmetic limits, not memory."""
        return self.arithmetic / self.streaming


class Server(Schema):
    """A place that holds cards of one kind."""

    name: Name
    card: Name = Field(description="one of `cards`")
    cards: Count = Field(description="how many cards; may be 0")
    count: ServerCount = Field(1, description="how many such servers; 16 are named NAME-1 to NAME-16")
    nic: BytesPerSecond | None = Field(None, description="what all links of one such server share, each way")

    @property
    def sites(self) -> tuple[str, ...]:
        """The names of the servers that this entry stands for."""
        return (self.name,) if self.count == 1 else tuple(f"{self.name}-{i + 1}" for i in range(self.count))


class Link(Schema):
    """A link between two servers or switches: both ways (`between`) or one way (`from`, `to`)."""

    name: Name
    between: tuple[Name, Name] | None = Field(None, description="two servers or switches, in both directions")
    source: Name | None = Field(None, alias="from", description="where a one-way link begins")
    target: Name | None = Field(None, alias="to", description="where a one-way link ends")
    bandwidth: BytesPerSecond = Field(
        description="of each direction (full duplex) or of both together (half)"
    )
    startup: Seconds = Field(
        Fraction(0), description="start-up of a transfer; counts in latencies, not in rates"
    )
    duplex: Literal["full", "half"] = "full"

    @model_validator(mode="after")
    def _ends(self) -> Link:
        one_way = self.source is not None and self.target is not None
        if (self.between is None) != one_way or (self.between and (self.source or self.target)):
            raise fault("has no clear ends; give `between: [a, b]`, or `from: a` and `to: b`")
        if len(set(self.ends)) == 1:
            raise fault(f"joins {self.ends[0]!r} with itself; give two different ends")
        if one_way and self.duplex == "half":
            raise fault("is one way and half duplex; `duplex` goes with `between`", ("duplex",))
        return self

    @property
    def ends(self) -> tuple[str, str]:
        return self.between or (self.source or "", self.target or "")


class Offer(Schema):
    """What may be bought, in whole bundles."""

    name: Name
    cards: dict[Name, PositiveCount] = Field(description="cards of one bundle, such as {a100: 1, h20: 1}")
    at_most: PositiveCount = Field(description="how many bundles may be bought")
    price: Money | None = None
    note: Text | None = None
