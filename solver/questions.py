"""The further questions that a plan answers about its instance, and what their answers say.

Pure: `explain` asks these questions with a solver, `check` expects exactly these claims and derives the same
entries from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

from ..models import drain
from ..models.case import Case
from ..models.forms import FORMS
from ..models.instance import Form, Instance
from ..models.network import BUDGET, ZERO, Network
from ..models.plan import Alternative, Asked, Nearest, Network_, Remedy, Ties, Worth
from ..models.quantities import Price
from . import describe
from .requirement import Requirement
from .routes import Point, used

GIGABYTE = Fraction(10**9)
MOST_WORTH = 12  # servers, and links, whose worth is asked for


@dataclass(frozen=True, slots=True)
class Question:
    """One question: the highest rate of a case, its smallest budget for a need, or its other optima."""

    about: str
    case: Case
    kind: Literal["rate", "budget", "ties"] = "rate"
    of: Literal["cards", "cost"] = "cards"


@dataclass(frozen=True, slots=True)
class Answer:
    """A question's answer, proven: the point, its network, and the budget where one was asked for.

    reached: whether the need was met at all (budget questions). bound: of the rate, where that was asked.
    proven: nothing better exists (for rates: within a millionth).
    """

    network: Network
    point: Point
    budget: int | None = None
    reached: bool = True
    bound: Fraction | None = None
    proven: bool = True

    @property
    def settled(self) -> bool:
        close = self.bound is None or self.bound <= self.point.rate * (1 + Fraction(1, 10**6))
        return self.proven and close


def mix_name(forms: tuple[Form, ...]) -> str:
    return "+".join(forms)


def sides(instance: Instance) -> tuple[tuple[Form, ...], ...]:
    """What is always put side by side: each form alone, the deployable ones mixed, the instance's own mix."""
    found: list[tuple[Form, ...]] = [
        ("colocated",),
        ("chunked",),
        ("disaggregated",),
        ("colocated", "disaggregated"),
    ]
    return tuple(dict.fromkeys([*found, tuple(instance.forms)]))


def questions(
    instance: Instance, asked: Asked, rate: Fraction, need: Requirement | None
) -> Iterator[Question]:
    """All questions beside the plan's own, in order. `rate`: what the plan reaches (0: nothing)."""
    budget = asked.objective != "max-rate" and asked.unit != "copies"
    reached = need is None or need.met_by(rate)
    own: Literal["cards", "cost"] = "cost" if asked.objective == "min-cost" else "cards"
    for forms in sides(instance):
        if budget and reached:
            case = asked.case.model_copy(update={"forms": forms, "pinned": False})
            yield Question(f"alternative {mix_name(forms)}", case, "budget", own)
        else:
            yield Question(f"alternative {mix_name(forms)}", Case(forms=forms, pinned=False))
    if rate:
        yield Question("ties", asked.case, "ties", own)
    if not budget and rate:
        if instance.links:
            yield Question("unlimited links", Case(bandwidth={link.name: None for link in instance.links}))
        for server in instance.servers[:MOST_WORTH]:
            site = server.sites[0]
            for more in (1, 2, -1) if server.cards else (1, 2):
                yield Question(f"{more:+d} {server.card} at {site}", Case(more_cards={site: more}))
        for link in instance.links[:MOST_WORTH]:
            for gigabytes in (1, 2, -1):
                bandwidth = link.bandwidth + gigabytes * GIGABYTE
                if bandwidth > 0:
                    yield Question(
                        f"{gigabytes:+d} GB/s on {link.name}", Case(bandwidth={link.name: bandwidth})
                    )
    if not reached and rate and asked.unit in (None, "copies"):
        yield from _remedies(instance)


def _remedies(instance: Instance) -> Iterator[Question]:
    kinds = tuple(dict.fromkeys(server.card for server in instance.servers))
    for card in kinds:
        yield Question(f"remedy {card}", Case(unit="card", kinds=(card,)), "budget")
    if len(kinds) > 1:
        yield Question("remedy any cards", Case(unit="card"), "budget")
    for offer in instance.offers:
        yield Question(f"remedy offer {offer.name}", Case(unit=offer.name), "budget")
    for link in instance.links:
        yield Question(f"remedy link {link.name}", Case(bandwidth={link.name: None}))


Answers = Mapping[str, Answer]


def alternatives(instance: Instance, asked: Asked, answers: Answers) -> tuple[Alternative, ...]:
    found = []
    for forms in sides(instance):
        answer = answers[f"alternative {mix_name(forms)}"]
        point, network = answer.point, answer.network
        late = describe.drain_of(instance, point.rate)
        cards = sum(p.replica.cards * point.counts.get(n, 0) for n, p in network.pools.items() if p.replica)
        cost = None
        if answer.budget is not None:
            cards = billed_cards(network, point)
            if asked.objective == "min-cost":
                cost = str(Price(billed_cost(network, point), instance.hourly))
        found.append(
            Alternative(
                form=mix_name(forms),
                ideal=any(FORMS[f].ideal for f in forms),
                rate=float(point.rate),
                cards=cards,
                cost=cost,
                link_bytes_per_s=float(describe.handover_bytes(instance, network, point.routes)),
                cleared_at_s=late.cleared_at_s if late else None,
                meets_deadline=late.meets_deadline if late else None,
                verdict=_verdict(instance, answer),
                proven=answer.settled,
            )
        )
    return tuple(found)


def _verdict(instance: Instance, answer: Answer) -> str:
    if not answer.point.rate and answer.network.refusals:
        return "left out"
    return describe.verdict(instance, answer.point.rate) if answer.reached else "out of reach"


def billed_cost(network: Network, point: Point) -> Fraction:
    """The money on a point's bill; every pool has a price."""
    return sum(((network.pools[name].cost or ZERO) * n for name, n in point.counts.items()), ZERO)


def billed_cards(network: Network, point: Point) -> int:
    """The cards on a point's bill."""
    return sum(network.pools[name].cards * n for name, n in point.counts.items())


def bill(network: Network, point: Point) -> int:
    """What a point takes from its network's budget, in the budget's own units."""
    return sum(network.pools[name].takes.get(BUDGET, 0) * n for name, n in point.counts.items())


def worth(instance: Instance, rate: Fraction, answers: Answers) -> tuple[Worth, ...]:
    found = []

    def entry(resource: str, by: str, names: tuple[str, str, str]) -> None:
        one, two, less = (answers.get(name) for name in names)
        if one and two:
            found.append(
                Worth(
                    resource=resource,
                    by=by,
                    rate_gain=float(one.point.rate - rate),
                    rate_gain_2=float(two.point.rate - rate),
                    rate_loss_without=float(rate - less.point.rate) if less else None,
                )
            )

    for server in instance.servers[:MOST_WORTH]:
        site = server.sites[0]
        names = tuple(f"{more:+d} {server.card} at {site}" for more in (1, 2, -1))
        entry(f"{server.card} card at {site}", "1 card", names)  # type: ignore[arg-type]
    for link in instance.links[:MOST_WORTH]:
        names = tuple(f"{more:+d} GB/s on {link.name}" for more in (1, 2, -1))
        entry(f"link {link.name}", "1 GB/s", names)  # type: ignore[arg-type]
    return tuple(found)


def network_limit(rate: Fraction, answers: Answers) -> Network_ | None:
    free = answers.get("unlimited links")
    if free is None:
        return None
    return Network_(binds=free.point.rate > rate, rate_with_unlimited_links=float(free.point.rate))


def nearest(instance: Instance, rate: Fraction, need: Requirement | None) -> Nearest | None:
    """What could be met instead, where the need is not."""
    arrival, goals = instance.workload.rate, instance.goals
    if need is None or need.met_by(rate) or arrival is None or not rate:
        return None
    if goals.startup is None or goals.deadline is None:
        return Nearest(deadline_s=None, startup_s=None, arrival_rate=float(rate))
    near = drain.nearest(rate, arrival, goals.startup, goals.deadline)
    return Nearest(**{key: None if value is None else float(value) for key, value in near.items()})


def remedies(instance: Instance, need: Requirement | None, answers: Answers) -> tuple[Remedy, ...]:
    """What would close the gap alone; the shortest bills first within each kind."""
    found = []
    for about, answer in answers.items():
        if not about.startswith("remedy ") or need is None:
            continue
        what, point = about.removeprefix("remedy "), answer.point
        helps = need.met_by(point.rate)
        if what.startswith("link "):
            link = next(link for link in instance.links if link.name == what.removeprefix("link "))
            enough = _needed_bandwidth(link.name, answer, need) if helps else None
            note = "no bandwidth would do"
            if enough is not None:
                note = f"{ceil(enough / 10**7) / 100:.2f} GB/s would do"
            found.append(
                Remedy(
                    link=link.name,
                    bandwidth_bytes_per_s=None if enough is None else float(enough),
                    rate=float(point.rate),
                    helps=helps,
                    note=note,
                    proven=answer.settled,
                )
            )
        elif what.startswith("offer "):
            name = what.removeprefix("offer ")
            n = sum(c for p, c in point.counts.items() if p.startswith(f"buy {name}@"))
            note = "" if helps else "not with all that is offered"
            found.append(
                Remedy(
                    buy={name: n} if helps else {},
                    rate=float(point.rate),
                    helps=helps,
                    note=note or name,
                    proven=answer.settled,
                )
            )
        else:
            buy = bought(point) if helps else {}
            if what == "any cards" and any(remedy.buy == buy for remedy in found):
                continue
            note = "the fewest cards of any mix" if what == "any cards" else what
            if not helps:
                note = f"{what}: not even ten times as many"
            found.append(
                Remedy(buy=buy, rate=float(point.rate), helps=helps, note=note, proven=answer.settled)
            )
    return tuple(found)


def bought(point: Point) -> dict[str, int]:
    """Purchases by what was bought, over all places."""
    found: dict[str, int] = {}
    for name, n in point.counts.items():
        if name.startswith("buy "):
            what, _, where = name.removeprefix("buy ").partition("@")
            key = f"server {where}" if what == "server" else what
            found[key] = found.get(key, 0) + n
    return found


def _needed_bandwidth(link: str, answer: Answer, need: Requirement) -> Fraction:
    """Bytes/s in one direction that suffice: what the leanest routes carry, at the needed rate."""
    carried = [amount for name, amount in used(answer.point.routes).items() if name.split(" ")[0] == link]
    return max(carried, default=ZERO) * need.rate / answer.point.rate


def ties(answers: Answers, closed: bool) -> Ties:
    """The other optima that were found."""
    others = tuple(dict(a.point.counts) for about, a in answers.items() if about.startswith("tie "))
    return Ties(unique=False if others else True if closed else None, others=others)
