"""Verifies a saved plan in rational arithmetic: no solver, no Pyomo, nothing of what produced it is trusted.

The instance is read again from the plan, every network is built again, every claim is proven again, and the
whole plan is put together again; any number that differs is refuted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from ..models.case import Case, build
from ..models.documents import InputError, parse_json, read_text
from ..models.instance import Instance
from ..models.network import Network
from ..models.plan import Asked, Claim, Plan
from . import questions
from .assemble import assemble, copies_bound, copies_needed, gap, status_of
from .claims import prices_in, read_exact, routes_in, tree_in
from .load import load
from .questions import Answer, Question
from .requirement import Requirement, requirement
from .routes import Point, rate_of
from .verify import Judge, Node, Refuted, leaves, proven_bound


def refutations(plan: Plan, instance: Instance | None = None) -> list[str]:
    """What does not hold about a plan; empty where everything does.

    instance: what the plan should be about (its file may have changed since).
    """
    try:
        return list(_differences(plan, instance))
    except Refuted as error:
        return [str(error)]
    except OverflowError:
        return ["a number of the proof is beyond all measure"]


def _differences(plan: Plan, given: Instance | None) -> Iterator[str]:
    try:
        instance = Instance.model_validate(plan.instance.resolved)
    except ValidationError as error:
        raise Refuted(f"the plan's instance cannot be read: {error.errors()[0]['msg']}") from None
    if given is not None and given.sha256 != plan.instance.sha256:
        about, file = plan.instance.sha256[:12], given.sha256[:12]
        yield f"the plan is about another instance: sha256 {about}, the file has {file}"
    need = _need(plan, instance)
    asked, certificate = plan.asked, plan.certificate
    kind = "cost" if asked.objective == "min-cost" else "cards"
    budgeted = asked.objective != "max-rate" and asked.unit != "copies" and certificate.budget is not None
    if certificate.budget is not None and (
        asked.objective == "max-rate" or set(certificate.budget) != {kind}
    ):
        raise Refuted("the budget of the proof is not what was asked")
    bought = asked.unit is None or asked.objective == "min-cards"
    if not bought or asked.case != _case_of(asked, instance):
        raise Refuted("the case is not what was asked")
    try:
        plain = build(instance, asked.case)
    except (ValueError, KeyError) as error:
        raise Refuted(f"the question does not suit the instance: {error}") from None
    network, units, bound_units = plain, 0, 0
    point = _point(plain, certificate.counts, plan.routes, certificate.rate_exact)
    proven = read_exact(certificate.bound_exact)
    if budgeted:
        network = plain.with_budget(kind)
        units = questions.bill(network, point)
        bound_units = (certificate.budget or {}).get(kind, -2) + 1
        network = plain.with_budget(kind, units)
        point = _point(network, certificate.counts, plan.routes, certificate.rate_exact)
        if need is None or not need.met_by(point.rate):
            raise Refuted("the plan does not reach what was asked")
        if proven != bound_units * network.budget_unit or bound_units > units:
            raise Refuted("the stated bound is not what the proof is about")
        if bound_units > 0:
            _prove_short(plain.with_budget(kind, bound_units - 1), certificate.tree, need)
        rate_bound = point.rate
    else:
        found = max(proven_bound(Judge(network), tree_in(certificate.tree)), Fraction(0))
        if not found <= proven <= max(found, point.rate):
            raise Refuted(f"the proof gives the bound {float(found)!r}, the plan states {float(proven)!r}")
        rate_bound = proven
    judge = Judge(network)
    binding = prices_in(certificate.binding)
    limit = judge.bound(judge.point(point.counts), binding) if certificate.binding else Fraction(0)
    if limit > point.rate * (1 + Fraction(1, 10**9)):
        raise Refuted("the stated prices do not show what binds")
    if certificate.boxes != sum("pool" not in node for node in certificate.tree):
        raise Refuted("the proof does not have the stated number of boxes")
    value = units * network.budget_unit if budgeted else point.rate
    if certificate.proven_gap != float(gap(value, proven)):
        raise Refuted(f"the proven gap is {float(gap(value, proven))!r}, not {certificate.proven_gap!r}")
    copies = plan.copies
    if copies != 1 and (asked.unit != "copies" or need is None or copies != copies_needed(point.rate, need)):
        raise Refuted(f"{copies} copies do not follow")
    answers, ties_closed = _answers(plan, instance, need, point)
    again = assemble(
        instance,
        asked,
        need,
        network,
        point,
        copies_bound(instance, asked, rate_bound, need, proven),
        status_of(
            asked,
            need,
            point.rate,
            copies,
            proven,
            (units * network.budget_unit) if budgeted else None,
            plan.status,
        ),
        certificate,
        answers,
        plan.solver,
        ties_closed=ties_closed,
        explained=bool(certificate.claims),
        copies=copies,
        budget=(units, network.budget_unit) if budgeted else None,
    )
    yield from _compare(
        plan.model_dump(mode="json", by_alias=True), again.model_dump(mode="json", by_alias=True), ""
    )


def _case_of(asked: Asked, instance: Instance) -> Case:
    """The case that a question means; what the user is free to choose is taken as it stands."""
    at_most = asked.case.at_most
    if asked.objective == "max-rate":
        return Case()
    if asked.unit == "copies":
        return Case(at_most=at_most)
    if asked.unit is None:
        return Case(floor="drawn", unit="offers" if instance.offers else None)
    floor: Literal["declared", "empty"] = "declared" if asked.case.floor == "declared" else "empty"
    return Case(floor=floor, unit=asked.unit, at_most=at_most)


def _need(plan: Plan, instance: Instance) -> Requirement | None:
    """The requirement that the plan names, which must be one that its instance has."""
    asked = plan.asked
    if asked.required_rate is None:
        if requirement(instance) is not None:
            raise Refuted("the plan leaves out what its instance requires")
        return None
    need = Requirement(read_exact(asked.required_rate), asked.strictly, asked.why or "")
    aims = [requirement(instance)]
    if asked.objective == "min-cards" and instance.workload.rate is not None:
        aims.append(requirement(instance, "sustain"))
    if need not in aims:
        raise Refuted("the required rate does not follow from the instance")
    return need


def _point(network: Network, counts: Mapping[str, int], routes: Any, rate: str) -> Point:
    """Counts and routes, proven to fit the network and to carry the stated rate."""
    if not counts and not routes and read_exact(rate) == 0:
        return Point({}, (), Fraction(0))  # to serve nothing is always possible, even where pins are not
    found = routes_in(network, routes)
    for route, stated in zip(found, routes, strict=True):
        if stated.rate != float(route.rate) or stated.form != route.steps[0].form:
            raise Refuted(f"the route {' > '.join(stated.via)} does not have the stated rate or form")
    carried = rate_of(network, counts, found)
    if carried != read_exact(rate):
        raise Refuted(f"the routes carry {float(carried)!r}/s, the plan states {rate}")
    return Point(dict(counts), found, carried)


def _prove_short(network: Network, tree: Any, need: Requirement) -> None:
    """A tree must show that no plan of the network meets the need."""
    judge = Judge(network)
    if judge.tighten(judge.root) is None:
        return
    if need.met_by(proven_bound(judge, tree_in(tree))):
        raise Refuted("the proof does not exclude a smaller budget")


def _answers(
    plan: Plan, instance: Instance, need: Requirement | None, main: Point
) -> tuple[dict[str, Answer], bool]:
    """Verify every claim; there must be exactly those that the plan's questions call for."""
    answers: dict[str, Answer] = {}
    claims = list(plan.certificate.claims)
    ties_closed = False
    if not claims:
        return answers, ties_closed
    for question in questions.questions(instance, plan.asked, main.rate * plan.copies, need):
        if not claims or claims[0].about != question.about or claims[0].case != question.case:
            raise Refuted(f"the claim about {question.about!r} is missing or out of place")
        claim = claims.pop(0)
        try:
            if question.kind == "ties":
                others: list[Claim] = []
                while claims and claims[0].about == f"tie {len(others) + 1}":
                    others.append(claims.pop(0))
                ties_closed = _check_ties(instance, claim, others, main, question, answers)
            else:
                answers[question.about] = _check_claim(instance, claim, question, need)
        except Refuted as error:
            raise Refuted(f"claim about {question.about!r}: {error}") from None
    if claims:
        raise Refuted(f"there is a claim that nothing calls for: {claims[0].about!r}")
    return answers, ties_closed


def _check_claim(instance: Instance, claim: Claim, question: Question, need: Requirement | None) -> Answer:
    network = build(instance, claim.case)
    if claim.budget is None:
        judge = Judge(network)
        point = _point(network, claim.counts, claim.routes, claim.rate)
        bound, stated = proven_bound(judge, tree_in(claim.tree)), read_exact(claim.bound)
        if not bound <= stated <= max(bound, point.rate):
            raise Refuted("the stated bound does not follow")
        if question.kind == "budget":
            if need is None or need.met_by(stated):
                raise Refuted("it does not show that the goal is out of reach")
            return Answer(network.with_budget(question.of), point, reached=False, bound=stated)
        return Answer(network, point, bound=stated)
    if set(claim.budget) != {question.of} or need is None or claim.bound is not None:
        raise Refuted("the budget is malformed")
    units = claim.budget[question.of]
    within = network.with_budget(question.of, units)
    point = _point(within, claim.counts, claim.routes, claim.rate)
    if not need.met_by(point.rate) or questions.bill(within, point) != units:
        raise Refuted("the budget does not reach the goal")
    closed = bool(claim.tree) or units == 0
    if claim.tree:
        _prove_short(network.with_budget(question.of, units - 1), claim.tree, need)
    return Answer(within, point, units, proven=closed)


def _check_ties(
    instance: Instance,
    claim: Claim,
    others: list[Claim],
    main: Point,
    question: Question,
    answers: dict[str, Answer],
) -> bool:
    """Whether the tree shows that nothing but the listed points reaches the rate with as few cards."""
    network = build(instance, claim.case)
    limit = (claim.budget or {}).get(question.of)
    billed = network.with_budget(question.of)
    if (
        claim.bound is not None
        or limit is None
        or limit != questions.bill(billed, main)
        or dict(claim.counts) != dict(main.counts)
    ):
        raise Refuted("it is about another optimum")
    within = network.with_budget(question.of, limit)
    known = [dict(main.counts)]
    for other in others:
        point = _point(within, other.counts, other.routes, other.rate)
        if point.rate != main.rate or dict(point.counts) in known or other.case != claim.case:
            raise Refuted(f"{other.about} is no other optimum")
        known.append(dict(point.counts))
        answers[other.about] = Answer(network, point)
    if not claim.tree:
        return False
    judge = Judge(within)
    for box, prices in leaves(judge, tree_in(claim.tree)):
        if prices is not None and judge.bound(box, prices) < main.rate:
            continue
        if not box.is_point or {p: n for p, n in zip(judge.pools, box.low, strict=True) if n} not in known:
            raise Refuted("it leaves room for another optimum")
    return True


def _compare(stated: Any, found: Any, at: str) -> Iterator[str]:
    """Every difference between two JSON trees; times and versions are left out."""
    if at in (".solver", ".certificate.verified"):
        return
    if isinstance(stated, dict) and isinstance(found, dict):
        for key in stated.keys() | found.keys():
            yield from _compare(stated.get(key), found.get(key), f"{at}.{key}")
    elif isinstance(stated, list) and isinstance(found, list):
        if len(stated) != len(found):
            yield f"{at[1:]}: {len(stated)} entries stated, {len(found)} follow"
        for i, (a, b) in enumerate(zip(stated, found, strict=False)):
            yield from _compare(a, b, f"{at}.{i}")
    elif stated != found or type(stated) is not type(found):
        yield f"{at[1:]}: the plan states {stated!r}, it follows {found!r}"


def check(plan: Plan | str | Path, instance: Instance | str | Path | None = None) -> list[str]:
    """What does not hold about a plan (an object or a saved file); empty where everything does.

    instance: what the plan should be about; its file may have changed since. Raises InputError for files
    that hold no plan or no instance.
    """
    found = plan if isinstance(plan, Plan) else read_plan(Path(plan))
    given = instance if instance is None or isinstance(instance, Instance) else load(instance)
    problems = refutations(found, given)
    if not found.certificate.verified and not problems:
        problems.append("the plan says of itself that it is not verified")
    return problems


def read_plan(path: Path) -> Plan:
    """A plan from a JSON file. Raises InputError."""
    text = read_text(path)
    parse_json(text, path)  # duplicate keys, NaN
    try:
        return Plan.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        at = tuple(first["loc"])
        raise InputError(f"is no inferplan.plan/1: {first['msg']}", file=path, at=at) from None


def misfits(judge: Judge, point: Point, bound: Fraction | None, tree: Sequence[Node]) -> list[str]:
    """What does not hold about a bare answer: its routes against its counts, its tree against its bound.

    The core of `check`, without putting a plan together again. bound None: the tree is about another network.
    """
    try:
        if point.counts and rate_of(judge.network, point.counts, point.routes) != point.rate:
            return ["the routes do not carry the stated rate"]
        if bound is not None and proven_bound(judge, tree) > bound:
            return ["the proof does not give the stated bound"]
    except Refuted as error:
        return [str(error)]
    return []
