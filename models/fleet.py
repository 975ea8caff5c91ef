"""What forms build on: the places of a deployment, their engines, and the network under construction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from . import topology
from .engines import GIB, CardEngine
from .instance import Instance
from .network import Activity, Network, Pool, Refusal, Replica, Resource, State
from .topology import Hop
from .workload import RequestClass


@dataclass(frozen=True, slots=True)
class Column:
    """Replicas of one role, model and batch at one place, before they become a pool."""

    replica: Replica
    engine: CardEngine
    requests: tuple[RequestClass, ...]  # the classes that it can serve
    label: str


@dataclass
class Fleet:
    """A deployment while its forms turn it into a network.

    `billed` says whether a replica's card counts in the bill (it does not where cards are bought);
    `pinned` whether the instance's `fix` holds.
    `bandwidth` gives links another bandwidth in bytes/s, None for unlimited.
    """

    instance: Instance
    network: Network
    billed: bool = True
    pinned: bool = True
    bandwidth: dict[str, Fraction | None] = field(default_factory=dict)

    @cached_property
    def hops(self) -> tuple[Hop, ...]:
        return topology.hops(self.instance)

    @cached_property
    def classes(self) -> dict[str, tuple[RequestClass, ...]]:
        """The classes of each model."""
        it = self.instance
        return {name: tuple(c for c in it.workload.classes if it.llm_of(c) == name) for name in it.llms}

    def engine(self, card: str, model: str) -> CardEngine:
        it = self.instance
        return CardEngine(it.cards[card], it.llms[model], it.engine, it.engines.get(card))

    def columns(self, role: str, form: str, handed_over: bool) -> Iterator[Column]:
        """Every column of a role that fits its card; the others are refused with what is missing."""
        it = self.instance
        for site, server in it.sites.items():
            for model, requests in self.classes.items():
                if not requests:
                    continue
                engine = self.engine(server.card, model)
                batches: tuple[int | None, ...] = (
                    (None,) if role == "prefill" else engine.batches(role, requests, handed_over)
                )
                for batch in batches:
                    label = f"{role}@{site}/{server.card}"
                    if len(it.llms) > 1:
                        label += f"/{model}"
                    if batch is not None and len(it.engine.decode_batch) > 1:
                        label += f"/b{batch}"
                    memory = engine.memory(role, batch, requests, handed_over)
                    if memory.short > 0:
                        fits = 0 if batch is None else engine.largest_batch(role, requests, handed_over)
                        hint = f"; batch {fits} would fit" if fits else ""
                        what = f"{role} of {model}" + (f" with batch {batch}" if batch else "")
                        self.network.add(
                            Refusal(
                                f"{what} on {server.card} at {site}",
                                f"{_gib(memory.short)} GiB short: needs {_gib(memory.need)} GiB "
                                f"({memory.rule}), has {_gib(memory.have)} GiB{hint}",
                                f"{_gib(memory.have)} GiB",
                                f"{_gib(memory.need)} GiB",
                                memory.short,
                            )
                        )
                        continue
                    yield Column(
                        Replica(site, server.card, role, form, model, batch), engine, requests, label
                    )

    def pool(self, column: Column, resources: tuple[str, ...] = ("seconds",)) -> tuple[str, ...]:
        """Add a column as a pool with one row of card-seconds per resource; returns their names."""
        replica = column.replica
        names = tuple(f"{kind} of {column.label}" for kind in resources)
        for name in names:
            self.network.add(Resource(name, "card-seconds/s", Fraction(0), column.label))
        price = self.instance.cards[replica.card].price
        takes = {f"cards@{replica.site}": replica.cards}
        if self.pinned and replica.role in self.instance.fix.get(replica.site, {}):
            takes |= {
                f"at most {replica.role}@{replica.site}": 1,
                f"at least {replica.role}@{replica.site}": -1,
            }
        self.network.add(
            Pool(
                column.label,
                takes,
                {name: Fraction(1) for name in names},
                cards=replica.cards if self.billed else 0,
                cost=(price.amount * replica.cards if price else None) if self.billed else Fraction(0),
                replica=replica,
            )
        )
        return names

    def activity(
        self,
        request: RequestClass,
        form: str,
        label: str,
        source: State,
        target: State,
        uses: dict[str, Fraction],
    ) -> None:
        """Add an activity that moves one request of a class from one state to another."""
        self.network.add(
            Activity(
                f"{request.name}: {label}",
                form,
                label,
                {source: Fraction(-1), target: Fraction(1)},
                {name: amount for name, amount in uses.items() if amount},
            )
        )

    def channel(self, hop_resources: tuple[str, ...], ample: Fraction) -> None:
        """Make sure that the resources of a hop exist; unlimited ones get `ample` bytes/s."""
        for name in hop_resources:
            if name not in self.network.resources:
                capacity = self._capacities[name]
                fixed = ample if capacity is None else capacity
                self.network.add(Resource(name, "bytes/s", fixed, name))

    @cached_property
    def _capacities(self) -> dict[str, Fraction | None]:
        it = self.instance
        found: dict[str, Fraction | None] = {
            hop.channel: self.bandwidth.get(hop.link, hop.bandwidth) for hop in self.hops
        }
        for server in it.servers:
            for site in server.sites:
                found |= {f"nic {site} out": server.nic, f"nic {site} in": server.nic}
        for link in it.links:
            found.setdefault(link.name, self.bandwidth.get(link.name, link.bandwidth))
        return found


def _gib(size: Fraction) -> str:
    return f"{float(size / GIB):.2f}"
