"""The answer: what runs where, how fast, why, and the proof. Units are in the names; never NaN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .case import Case

Status = Literal["optimal", "infeasible", "limit"]


class Part(BaseModel):
    """A frozen part of a plan; fields that this version does not know are kept out."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True)


class Named(Part):
    """The instance: its name, its fingerprint, and all of it with catalogue facts."""

    name: str
    sha256: str
    resolved: dict[str, Any]


class Asked(Part):
    """The question that the plan answers."""

    objective: Literal["max-rate", "min-cards", "min-cost"]
    case: Case = Field(description="how the network departs from the instance as declared")
    unit: str | None = Field(None, description="what min-cards buys: card, server, copies, or an offer")
    required_rate: str | None = Field(None, description="the rate that is needed, requests/s, exact")
    strictly: bool = Field(False, description="the rate must lie above required_rate, not at it")
    why: str | None = Field(None, description="where required_rate comes from")
    gap: float = Field(1e-6, ge=0, le=1, description="relative gap at which the plan counts as optimal")


class ObjectiveValue(Part):
    """requests/s, cards or money; `bound`: no plan does better; `gap`: relative."""

    name: Literal["max-rate", "min-cards", "min-cost"]
    value: float
    bound: float
    gap: float


class LoadRate(Part):
    name: str
    rate: float


class PoolUse(Part):
    """Replicas of one role at one place. Rates in requests/s of the plan's mix."""

    server: str
    card: str
    role: str
    form: str
    model: str
    replicas: int
    cards_per_replica: int
    cards: int
    batch: int | None
    capacity: float
    rate: float
    utilization: float


class RouteUse(Part):
    """A chain of steps that requests of one class take, and at which rate (requests/s)."""

    of: str = Field(alias="class")
    form: str
    via: tuple[str, ...]
    rate: float
    rate_exact: str


class LinkUse(Part):
    name: str
    source: str
    target: str
    bytes_per_s: float
    capacity_bytes_per_s: float
    utilization: float


class Idle(Part):
    server: str
    card: str
    cards: int


class Refused(Part):
    what: str
    reason: str
    limit: str
    needed: str


class Drain(Part):
    """The launch's backlog; the clock starts with the launch."""

    startup_s: float
    deadline_s: float | None
    backlog_requests: float
    required_rate: float | None
    cleared_at_s: float | None
    meets_deadline: bool | None


class Alternative(Part):
    """One way to distribute the work, at its best."""

    form: str
    ideal: bool = Field(description="a bound that no deployment reaches")
    rate: float
    cards: int
    cost: str | None = Field(None, description="its bill in money, where money is the objective")
    link_bytes_per_s: float = Field(
        description="hand-over traffic at the arrival rate, or at the rate where none is given"
    )
    cleared_at_s: float | None
    meets_deadline: bool | None
    verdict: str
    proven: bool = Field(True, description="nothing better exists within a millionth")


class Worth(Part):
    """What a little more or less of a resource changes, each solved again. Rates in requests/s."""

    resource: str
    by: str
    rate_gain: float
    rate_gain_2: float
    rate_loss_without: float | None


class Ties(Part):
    """Other counts with the same rate and as few cards. `unique` is null where the search was cut short."""

    unique: bool | None
    others: tuple[dict[str, int], ...]


class Network_(Part):
    """Whether links limit the rate."""

    binds: bool
    rate_with_unlimited_links: float


class Nearest(Part):
    """What the best plan could meet, changing one thing each; null: nothing would do."""

    deadline_s: float | None
    startup_s: float | None
    arrival_rate: float | None


class Remedy(Part):
    """What would close the gap alone."""

    buy: dict[str, int] = Field(default_factory=dict)
    link: str | None = None
    bandwidth_bytes_per_s: float | None = None
    cost: str | None = None
    rate: float | None = None
    helps: bool = True
    proven: bool = Field(True, description="with one unit less it would not do")
    note: str = ""


class Claim(Part):
    """A proven statement about one case: this plan carries `rate`, and none carries more than `bound`."""

    about: str
    case: Case
    budget: dict[str, int] | None = Field(
        None, description="the most cards, or units of money, that may be spent"
    )
    counts: dict[str, int] = Field(default_factory=dict)
    routes: tuple[RouteUse, ...] = ()
    rate: str = "0"
    bound: str | None = None
    tree: tuple[dict[str, Any], ...] = ()


class Certificate(Part):
    """What `inferplan check` verifies in rational arithmetic."""

    verified: bool
    proof: Literal["boxes"] = "boxes"
    boxes: int
    counts: dict[str, int] = Field(default_factory=dict, description="replicas and purchases by pool")
    tree: tuple[dict[str, Any], ...]
    proven_gap: float
    rate_exact: str
    bound_exact: str
    binding: dict[str, dict[str, str]] = Field(
        default_factory=dict, description="prices that prove the rate the highest under the plan's counts"
    )
    budget: dict[str, int] | None = Field(None, description="the tree holds for plans within this budget")
    claims: tuple[Claim, ...] = ()


class SolverInfo(Part):
    name: str
    version: str
    seconds: float


class Plan(Part):
    """One answer, ready to be written as JSON (`inferplan.plan/1`)."""

    format: Literal["inferplan.plan/1"] = "inferplan.plan/1"
    instance: Named
    asked: Asked
    status: Status
    objective: ObjectiveValue | None
    rate: float
    required_rate: float | None = None
    best_rate: float | None = None
    loads: tuple[LoadRate, ...] = ()
    cards: int = 0
    copies: int = Field(1, description="so many of the fleet that pools, routes and links describe")
    bought: dict[str, int] = Field(default_factory=dict)
    cost: str | None = None
    pools: tuple[PoolUse, ...] = ()
    routes: tuple[RouteUse, ...] = ()
    idle: tuple[Idle, ...] = ()
    refusals: tuple[Refused, ...] = ()
    ties: Ties | None = None
    links: tuple[LinkUse, ...] = ()
    bottlenecks: tuple[str, ...] = ()
    network: Network_ | None = None
    drain: Drain | None = None
    alternatives: tuple[Alternative, ...] = ()
    worth: tuple[Worth, ...] = ()
    nearest: Nearest | None = None
    remedies: tuple[Remedy, ...] = ()
    assumptions: tuple[str, ...] = ()
    certificate: Certificate
    solver: SolverInfo

    def to_json(self, indent: int | None = 1) -> str:
        """The plan as JSON text."""
        return self.model_dump_json(indent=indent, by_alias=True) + "\n"

    @property
    def summary(self) -> str:
        """The counts in the field's short form: `4P4D`, with C for co-located and K for chunked."""
        letters = {"prefill": "P", "decode": "D", "colocated": "C", "chunked": "K"}
        totals: dict[str, int] = {}
        for pool in self.pools:
            totals[letters[pool.role]] = totals.get(letters[pool.role], 0) + pool.cards
        return "".join(f"{totals[letter]}{letter}" for letter in "PDCK" if letter in totals)


def by_role(pools: Mapping[str, int]) -> str:
    """Counts of pools in one line."""
    return ", ".join(f"{count} {name}" for name, count in pools.items()) or "nothing"
