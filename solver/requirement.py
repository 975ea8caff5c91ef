"""The rate that a plan must reach, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from ..models import drain
from ..models.documents import InputError
from ..models.instance import Instance
from ..models.quantities import DURATION, RATE

Aim = Literal["all", "sustain", "deadline"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """A rate in requests/s to reach, or, where `strictly`, to exceed."""

    rate: Fraction
    strictly: bool
    why: str

    def met_by(self, rate: Fraction) -> bool:
        return rate > self.rate if self.strictly else rate >= self.rate


def requirement(instance: Instance, aim: Aim = "all", deadline: Fraction | None = None) -> Requirement | None:
    """The hardest of the instance's goals: sustain the arrivals, clear the backlog in time, a capacity.

    aim: `sustain` leaves the deadline out, `deadline` insists on it. None where nothing is asked.
    Raises InputError where the aim needs a field that is not there.
    """
    goals, arrival = instance.goals, instance.workload.rate
    deadline = deadline if deadline is not None else goals.deadline
    if aim in ("sustain", "deadline") and arrival is None:
        raise InputError(f"--{aim} needs an arrival rate; give `workload.rate`, such as 3.5/s")
    if aim == "deadline" and (deadline is None or goals.startup is None):
        raise InputError("--deadline needs a launch time; give `goals.startup`, such as 10 s")
    found: list[Requirement] = []
    if arrival is not None:
        found.append(
            Requirement(arrival, True, f"to sustain {RATE.show(arrival)}, strictly more than arrives")
        )
    if arrival is not None and deadline is not None and goals.startup is not None and aim != "sustain":
        if deadline <= goals.startup:
            raise InputError(
                f"the deadline {DURATION.show(deadline)} does not lie after the launch, "
                f"which takes {DURATION.show(goals.startup)}"
            )
        needed = drain.required_rate(arrival, goals.startup, deadline)
        found.append(
            Requirement(needed, False, f"to clear the launch's backlog by {DURATION.show(deadline)}")
        )
    if goals.min_rate is not None:
        found.append(
            Requirement(goals.min_rate, False, f"for the capacity goal of {RATE.show(goals.min_rate)}")
        )
    return max(found, key=lambda r: (r.rate, r.strictly), default=None)
