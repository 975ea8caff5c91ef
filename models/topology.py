"""The physical graph: servers and switches as nodes, directions of links as edges (networkx)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

    from .instance import Instance


@dataclass(frozen=True, slots=True)
class Hop:
    """One direction of a link between two nodes. Bytes charge every resource in `resources`."""

    label: str  # left->right; with the link's name where several join the same ends
    link: str
    source: str
    target: str
    bandwidth: Fraction  # bytes/s
    startup: Fraction  # seconds
    channel: str  # the resource of this direction, or of both where half duplex
    resources: tuple[str, ...]  # the channel and the NICs on both ends


def hops(instance: Instance) -> tuple[Hop, ...]:
    """All directed hops, in the order of the instance; a server with a count stands for each of its sites."""
    sites = {server.name: server.sites for server in instance.servers}
    nics = {site for server in instance.servers if server.nic is not None for site in server.sites}
    found: list[Hop] = []
    for link in instance.links:
        first, second = link.ends
        for a in sites.get(first, (first,)):
            for b in sites.get(second, (second,)):
                for source, target in ((a, b), (b, a)) if link.between else ((a, b),):
                    single = (first, second) == (a, b)
                    own = link.name if single else f"{link.name} {a}-{b}"
                    channel = f"{own}" if link.duplex == "half" else f"{own} {source}->{target}"
                    ends = [f"nic {source} out"] * (source in nics) + [f"nic {target} in"] * (target in nics)
                    found.append(
                        Hop(
                            f"{source}->{target}",
                            link.name,
                            source,
                            target,
                            link.bandwidth,
                            link.startup,
                            channel,
                            (channel, *ends),
                        )
                    )
    labels = [hop.label for hop in found]
    return tuple(
        hop
        if labels.count(hop.label) == 1
        else Hop(
            f"{hop.label}#{hop.link}",
            hop.link,
            hop.source,
            hop.target,
            hop.bandwidth,
            hop.startup,
            hop.channel,
            hop.resources,
        )
        for hop in found
    )


def graph(instance: Instance) -> nx.MultiDiGraph[str]:
    """The topology to draw, walk and search: nodes carry `kind` and `cards`, edges their Hop as `hop`."""
    import networkx as nx

    g: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=instance.name)
    for server in instance.servers:
        for site in server.sites:
            g.add_node(site, kind="server", card=server.card, cards=server.cards)
    for switch in instance.switches:
        g.add_node(switch, kind="switch")
    for hop in hops(instance):
        g.add_edge(hop.source, hop.target, key=hop.label, hop=hop)
    return g
