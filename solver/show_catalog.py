"""The catalogue as tables."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from ..models import catalog
from ..models.hardware import Card
from ..models.llm import LLM
from ..models.quantities import BANDWIDTH, COMPUTE, SIZE, show_number


def show_catalog(console: Console) -> None:
    """Print cards, then models; every figure's source stands in the entry's file."""
    cards = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in (
        "card",
        "BF16",
        "FP8",
        "memory",
        "bandwidth",
        "NVLink or alike",
        "PCIe",
        "efficiency (a guess)",
    ):
        cards.add_column(name, no_wrap=True)
    for name in catalog.names("cards"):
        card = Card.model_validate({"catalog": name})
        e = card.efficiency
        cards.add_row(
            name,
            COMPUTE.show(card.bf16),
            COMPUTE.show(card.fp8) if card.fp8 else "-",
            SIZE.show(card.memory),
            BANDWIDTH.show(card.bandwidth),
            BANDWIDTH.show(card.scale_up) if card.scale_up else "-",
            BANDWIDTH.show(card.pcie) if card.pcie else "-",
            f"{show_number(e.compute)} / {show_number(e.memory)}",
        )
    console.print(cards)
    models = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("model", "parameters", "weights", "KV per token", "attention"):
        models.add_column(name, no_wrap=True)
    for name in catalog.names("llms"):
        llm = LLM.model_validate(name)
        models.add_row(
            name,
            f"{llm.parameters.total / 1e9:.2f} B",
            f"{llm.weight_bytes / 1e9:.2f} GB",
            f"{llm.kv_bytes_per_token / 1024:g} KiB",
            "latent (MLA)" if llm.latent else "grouped heads",
        )
    console.print(models)
