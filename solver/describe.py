"""What a point of a network means in the user's words: pools, links, idle cards, bottlenecks, drain.

Everything here follows from counts and routes by exact arithmetic, so `check` calls the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from ..models import drain, topology
from ..models.case import Case
from ..models.instance import Instance
from ..models.network import LOAD, ZERO, Network, Pool, Replica
from ..models.plan import Drain, Idle, LinkUse, PoolUse, Refused, RouteUse
from ..models.quantities import show_number
from .routes import Route, capacities, used
from .verify import Prices

NOTICEABLE = Fraction(1, 10**6)  # a price that explains less of the rate is rounding


def pool_uses(
    instance: Instance, network: Network, counts: Mapping[str, int], routes: Sequence[Route]
) -> tuple[PoolUse, ...]:
    """One entry per pool of replicas in use."""
    spent, have = used(routes), capacities(network, counts)
    found = []
    for name, count in counts.items():
        pool = network.pools[name]
        replica = pool.replica
        if replica is None or not count:
            continue
        load = max((spent.get(r, ZERO) / limit for r in pool.gives if (limit := have[r])), default=ZERO)
        rate = sum((route.rate for route in routes for step in route.steps if step.label == name), ZERO)
        capacity = rate / load if load else count / _mean_use(instance, network, pool)
        found.append(
            PoolUse(
                server=replica.site,
                card=replica.card,
                role=replica.role,
                form=replica.form,
                model=replica.model,
                replicas=count,
                cards_per_replica=replica.cards,
                cards=count * replica.cards,
                batch=replica.batch,
                capacity=float(capacity),
                rate=float(rate),
                utilization=float(load),
            )
        )
    return tuple(found)


def _mean_use(instance: Instance, network: Network, pool: Pool) -> Fraction:
    """Card time of one request of the workload's mix in a pool that serves none yet."""
    shares = {c.name: c.share for c in instance.workload.classes}
    served = [a for a in network.activities.values() if a.label == pool.name]
    total = sum((shares[a.of] for a in served), ZERO) or Fraction(1)
    return max(
        (sum((shares[a.of] * a.uses.get(r, ZERO) for a in served), ZERO) / total for r in pool.gives),
        default=ZERO,
    ) or Fraction(1)


def route_uses(routes: Sequence[Route]) -> tuple[RouteUse, ...]:
    return tuple(
        RouteUse(
            of=r.of,
            form=r.steps[0].form,
            via=tuple(r.via),
            rate=float(r.rate),
            rate_exact=show_number(r.rate),
        )
        for r in routes
    )


def link_uses(instance: Instance, network: Network, routes: Sequence[Route]) -> tuple[LinkUse, ...]:
    """One entry per direction of a link (or shared channel) that carries hand-overs."""
    spent = used(routes)
    found, seen = [], set[str]()
    if instance.handover:
        link = next(link for link in instance.links if link.name == instance.handover)
        ends = [(instance.handover, link.name, *link.ends)]
    else:
        ends = [(hop.channel, hop.channel, hop.source, hop.target) for hop in topology.hops(instance)]
    for channel, name, source, target in ends:
        resource = network.resources.get(channel)
        if resource is None or channel in seen or resource.fixed is None:
            continue
        seen.add(channel)
        carried = spent.get(channel, ZERO)
        found.append(
            LinkUse(
                name=name.split(" ")[0] if " " in name else name,
                source=source,
                target=target,
                bytes_per_s=float(carried),
                capacity_bytes_per_s=float(resource.fixed),
                utilization=float(carried / resource.fixed),
            )
        )
    return tuple(found)


def idle_cards(
    instance: Instance, case: Case, network: Network, counts: Mapping[str, int]
) -> tuple[Idle, ...]:
    """Cards that are there, declared or bought, and do nothing."""
    found = []
    for site, server in instance.sites.items():
        stock = f"cards@{site}"
        left = (network.stocks[stock].have or 0) - sum(
            network.pools[p].takes.get(stock, 0) * n for p, n in counts.items()
        )
        if case.floor == "drawn":
            left += server.cards - counts.get(f"draw@{site}", 0)
        if left:
            found.append(Idle(server=site, card=server.card, cards=left))
    return tuple(found)


def bottlenecks(
    network: Network, counts: Mapping[str, int], rate: Fraction, binding: Prices
) -> tuple[str, ...]:
    """What limits the rate under these counts: the resources that have a price there.

    Full is not enough: a pool may be full by chance while its like at another site has room.
    """
    have = capacities(network, counts)
    names: list[str] = []
    for resource, price in binding.resources.items():
        limit = have.get(resource)
        if limit is not None and price * limit > rate * NOTICEABLE:
            pool = network.pools.get(network.resources[resource].label)
            names.append(_role(pool.replica) if pool and pool.replica else f"link {resource}")
    return tuple(dict.fromkeys(names))


def _role(replica: Replica) -> str:
    return f"{replica.role} on {replica.card} at {replica.site}"


def refused(network: Network) -> tuple[Refused, ...]:
    return tuple(
        Refused(what=r.what, reason=r.reason, limit=r.limit, needed=r.needed) for r in network.refusals
    )


def drain_of(instance: Instance, rate: Fraction) -> Drain | None:
    """What becomes of the launch's backlog at a rate; None without an arrival rate and a launch."""
    arrival, goals = instance.workload.rate, instance.goals
    if arrival is None or goals.startup is None:
        return None
    cleared = drain.cleared_at(rate, arrival, goals.startup)
    return Drain(
        startup_s=float(goals.startup),
        deadline_s=None if goals.deadline is None else float(goals.deadline),
        backlog_requests=float(drain.backlog(arrival, goals.startup)),
        required_rate=None
        if goals.deadline is None
        else float(drain.required_rate(arrival, goals.startup, goals.deadline)),
        cleared_at_s=None if cleared is None else float(cleared),
        meets_deadline=None if goals.deadline is None else cleared is not None and cleared <= goals.deadline,
    )


def verdict(instance: Instance, rate: Fraction) -> str:
    """One or two words on a rate against the goals."""
    arrival, goals = instance.workload.rate, instance.goals
    if not rate:
        return "serves nothing"
    if goals.min_rate is not None and rate < goals.min_rate:
        return "below the capacity goal"
    if arrival is None:
        return "-"
    if not drain.sustains(rate, arrival):
        return "never drains" if goals.startup is not None else "below the arrivals"
    if goals.startup is None or goals.deadline is None:
        return "sustains"
    cleared = drain.cleared_at(rate, arrival, goals.startup)
    return "in time" if cleared is not None and cleared <= goals.deadline else "late"


def handover_bytes(instance: Instance, network: Network, routes: Sequence[Route]) -> Fraction:
    """Bytes/s of hand-over traffic on links, at the arrival rate where one is given."""
    links = {
        r.name for r in network.resources.values() if r.unit == "bytes/s" and not r.name.startswith("nic ")
    }
    total = sum((amount for name, amount in used(routes).items() if name in links), ZERO)
    shares = {s.of: n for s, n in network.activities[LOAD].moves.items() if n > 0}
    first = next(iter(shares))
    rate = sum((r.rate for r in routes if r.of == first), ZERO) / shares[first]
    arrival = instance.workload.rate
    return total * arrival / rate if arrival is not None and rate else total


def assumptions(instance: Instance, case: Case) -> tuple[str, ...]:
    """What the figures rest on."""
    found = []
    for name, card in instance.cards.items():
        e = card.efficiency
        share = f"{show_number(e.compute)} of peak arithmetic and {show_number(e.memory)} of peak bandwidth"
        found.append(
            f"{name} reaches {share}"
            + (" (the catalogue's guess: measure it)" if card.guessed else " (as given)")
        )
    for name, rates in instance.engines.items():
        parts = [
            f"{kind} {show_number(rate)}/s"
            for kind, rate in (("prefill", rates.prefill_rate), ("decode", rates.decode_rate))
            if rate
        ]
        found.append(f"{name} has measured rates for all classes: {', '.join(parts)}")
    found.append(
        f"every hand-over is charged to {instance.handover}, local ones too"
        if instance.handover
        else "hand-overs are charged to the links on their way; inside a server they are free"
    )
    found.append("decode runs at full batches; at the arrival rate batches are smaller and latencies lower")
    if any(len(c.output_tokens) > 1 for c in instance.workload.classes):
        found.append(
            "memory of classes with a distribution of outputs: their mean context over the time in decode"
        )
    if "chunked" in (case.forms or instance.forms):
        found.append("chunked is ideal piggy-backing: a bound, not a plan to deploy")
    if instance.workload.source:
        found.append(instance.workload.source)
    return tuple(found)
