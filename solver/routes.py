"""The lower half of a proof, in rational arithmetic: routes that fit the counts carry the rate. No solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..models.network import LOAD, ZERO, Activity, Network, State
from .verify import Refuted


@dataclass(frozen=True, slots=True)
class Route:
    """A whole chain arrived -> done of one class, at one rate (requests/s)."""

    of: str
    steps: tuple[Activity, ...]
    rate: Fraction

    @property
    def via(self) -> list[str]:
        """The steps that use something, by their labels."""
        return [step.label for step in self.steps if step.uses]


@dataclass(frozen=True, slots=True)
class Point:
    """A feasible plan of a network: counts, routes, and the exact rate they carry."""

    counts: Mapping[str, int]
    routes: Sequence[Route]
    rate: Fraction


def trace_route(network: Network, of: str, via: Sequence[str], rate: Fraction) -> Route:
    """Rebuild a route from its labels; steps that use nothing are filled in. Raises Refuted."""
    state, steps = State("arrived", of), list[Activity]()
    free = {
        next(s for s, n in a.moves.items() if n < 0): a
        for a in network.activities.values()
        if not a.uses and a.name != LOAD and a.of == of
    }
    for label in via:
        activity = network.activities.get(f"{of}: {label}")
        if activity is None:
            raise Refuted(f"no activity {label!r} serves class {of!r}")
        if state not in activity.moves or activity.moves[state] >= 0:
            step = free.get(state)
            if step is None:
                raise Refuted(f"{label!r} does not follow in the route of class {of!r}")
            steps.append(step)
            state = _made(step)
        if activity.moves.get(state) != -1:
            raise Refuted(f"{label!r} does not follow in the route of class {of!r}")
        steps.append(activity)
        state = _made(activity)
    if state != State("done", of):
        raise Refuted(f"a route of class {of!r} ends at {state}, not at done")
    return Route(of, tuple(steps), rate)


def _made(activity: Activity) -> State:
    return next(s for s, n in activity.moves.items() if n > 0)


def peel(network: Network, rates: Mapping[str, Fraction]) -> list[Route]:
    """Split exact activity rates into routes; loops are left out, since they serve nobody."""
    left = {name: rate for name, rate in rates.items() if rate > 0 and name != LOAD}
    leaving: dict[State, list[Activity]] = {}
    for name in left:
        activity = network.activities[name]
        leaving.setdefault(next(s for s, n in activity.moves.items() if n < 0), []).append(activity)
    routes: list[Route] = []
    for start in [s for s in leaving if s.kind == "arrived"]:
        while True:
            steps, seen, state = list[Activity](), {start: 0}, start
            while state.kind != "done":
                step = next((a for a in leaving.get(state, ()) if left.get(a.name, ZERO) > 0), None)
                if step is None:
                    break
                steps.append(step)
                state = _made(step)
                if state in seen:  # a loop: take it out of the rates
                    loop = steps[seen[state] :]
                    least = min(left[a.name] for a in loop)
                    for a in loop:
                        left[a.name] -= least
                    steps = steps[: seen[state]]
                    seen = {s: i for s, i in seen.items() if i <= len(steps)}
                seen[state] = len(steps)
            if state.kind != "done":
                break
            least = min(left[a.name] for a in steps)
            for a in steps:
                left[a.name] -= least
            routes.append(Route(start.of, tuple(steps), least))
    return routes


def used(routes: Sequence[Route]) -> dict[str, Fraction]:
    """What routes use of each resource, per second."""
    total: dict[str, Fraction] = {}
    for route in routes:
        for step in route.steps:
            for resource, amount in step.uses.items():
                total[resource] = total.get(resource, ZERO) + route.rate * amount
    return total


def capacities(network: Network, counts: Mapping[str, int]) -> dict[str, Fraction | None]:
    """The capacity of each resource under given counts, None for unlimited."""
    total: dict[str, Fraction | None] = {name: r.fixed for name, r in network.resources.items()}
    for name, pool in network.pools.items():
        for resource, amount in pool.gives.items() if counts.get(name) else ():
            have = total[resource]
            if have is not None:
                total[resource] = have + amount * counts[name]
    return total


def check_counts(network: Network, counts: Mapping[str, int]) -> None:
    """Raise Refuted where counts are negative, unknown, too many, or overdraw a stock."""
    for name, n in counts.items():
        if name not in network.pools:
            raise Refuted(f"no pool is named {name!r}")
        most = network.pools[name].most
        if n < 0 or (most is not None and n > most):
            raise Refuted(f"{n} of {name!r} is not allowed")
    for stock in network.stocks.values():
        taken = sum(p.takes.get(stock.name, 0) * counts.get(name, 0) for name, p in network.pools.items())
        if stock.have is not None and taken > stock.have:
            raise Refuted(f"{stock.label or stock.name}: {taken} taken, {stock.have} there")


def rate_of(network: Network, counts: Mapping[str, int], routes: Sequence[Route]) -> Fraction:
    """The rate of the load that routes carry, once they are proven to fit the counts. Raises Refuted."""
    check_counts(network, counts)
    have = capacities(network, counts)
    for resource, amount in used(routes).items():
        limit = have[resource]
        if limit is not None and amount > limit:
            raise Refuted(f"{resource}: {float(amount):.9g} used, {float(limit):.9g} there")
    carried: dict[str, Fraction] = {}
    for route in routes:
        if route.rate <= 0:
            raise Refuted(f"a route of class {route.of!r} has no rate")
        carried[route.of] = carried.get(route.of, ZERO) + route.rate
    shares = {s.of: n for s, n in network.activities[LOAD].moves.items() if n > 0}
    rates = {carried.get(of, ZERO) / share for of, share in shares.items()}
    if len(rates) != 1 or carried.keys() - shares.keys():
        raise Refuted("the routes do not carry the classes in their shares")
    return rates.pop()
