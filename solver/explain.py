"""Asks a plan's further questions with the solver; every answer comes with a claim that can be checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..models.case import build
from ..models.instance import Instance
from ..models.plan import Claim
from .budget import Smallest, smallest
from .claims import claim
from .optimize import Limits, Solver
from .questions import Answer, Question, bill
from .requirement import Requirement
from .routes import Point

MOST_TIES = 16
TIE_BOXES = 300


@dataclass
class Explainer:
    """Answers to questions about one instance, and the claims behind them."""

    instance: Instance
    need: Requirement | None
    limits: Limits
    answers: dict[str, Answer] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    ties_closed: bool = False

    def ask(self, question: Question, main: Point, budget: int | None) -> None:
        """Answer one question. `main` and `budget` are the plan's own point and bill."""
        if question.kind == "rate":
            self._rate(question)
        elif question.kind == "budget":
            self._budget(question)
        else:
            self._ties(question, main, budget)

    def _rate(self, question: Question) -> None:
        network = build(self.instance, question.case)
        optimum = Solver(network, self.limits).highest_rate(why=False)
        self.answers[question.about] = Answer(network, optimum.point, bound=optimum.bound)
        self.claims.append(claim(question.about, question.case, optimum.point, optimum.bound, optimum.tree))

    def _budget(self, question: Question) -> None:
        assert self.need is not None
        found = smallest(self.instance, question.case, question.of, self.need, self.limits)
        if isinstance(found, Smallest):
            closed = found.closed
            self.answers[question.about] = Answer(found.network, found.point, found.units, proven=closed)
            limit: dict[str, int] = {question.of: found.units}
            tree = found.tree if closed else ()
            self.claims.append(claim(question.about, question.case, found.point, None, tree, limit))
        else:
            best = found.best
            self.answers[question.about] = Answer(found.network, best.point, reached=False, bound=best.bound)
            self.claims.append(claim(question.about, question.case, best.point, best.bound, best.tree))

    def _ties(self, question: Question, main: Point, budget: int | None) -> None:
        """Every other way to the same rate with as few cards, up to a limit."""
        network = build(self.instance, question.case)
        kind = question.of
        limit = bill(network.with_budget(kind), main) if budget is None else budget
        solver = Solver(network.with_budget(kind, limit), self.limits)
        solver.best = main
        others: list[Point] = []

        def meet(counts: Mapping[str, int]) -> None:
            point = solver.at(counts)
            known = [dict(p.counts) for p in (main, *others)]
            if point.rate == main.rate and dict(point.counts) not in known and len(others) < MOST_TIES:
                others.append(point)

        search = solver.prove(
            lambda bound, boxes: bound < main.rate or len(others) >= MOST_TIES,
            boxes=TIE_BOXES,
            offer=meet,
        )
        complete = search.closed and len(others) < MOST_TIES
        self.ties_closed = complete
        tree = search.nodes if complete else ()
        self.claims.append(claim("ties", question.case, main, None, tree, {kind: limit}))
        for i, point in enumerate(others):
            self.claims.append(claim(f"tie {i + 1}", question.case, point, None, ()))
            self.answers[f"tie {i + 1}"] = Answer(network, point)
