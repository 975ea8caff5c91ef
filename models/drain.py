"""Backlog after a launch, and what it takes to clear it (digest section 10). Exact; seconds, requests/s.

The clock starts with the launch: nothing is served for `startup`, then the rate is `rate`.
"""

from __future__ import annotations

from fractions import Fraction


def backlog(arrival: Fraction, startup: Fraction) -> Fraction:
    """Requests that wait when the launch ends."""
    return arrival * startup


def sustains(rate: Fraction, arrival: Fraction) -> bool:
    """Strictly more than arrives: at equality no backlog ever shrinks."""
    return rate > arrival


def cleared_at(rate: Fraction, arrival: Fraction, startup: Fraction) -> Fraction | None:
    """The instant at which the backlog is gone, or None for never: T_s + lambda T_s/(mu - lambda)."""
    if not sustains(rate, arrival):
        return None
    return startup + backlog(arrival, startup) / (rate - arrival)


def required_rate(arrival: Fraction, startup: Fraction, deadline: Fraction) -> Fraction:
    """The least rate that clears the backlog by the deadline: lambda D/(D - T_s)."""
    if deadline <= startup:
        raise ValueError("the deadline must lie after the launch")
    return arrival * deadline / (deadline - startup)


def nearest(
    rate: Fraction, arrival: Fraction, startup: Fraction, deadline: Fraction
) -> dict[str, Fraction | None]:
    """What could be met at `rate`, changing one thing each: deadline, launch time, arrival rate."""
    if not rate:
        return {"deadline_s": None, "startup_s": None, "arrival_rate": Fraction(0)}
    longest = deadline * (1 - arrival / rate)
    return {
        "deadline_s": cleared_at(rate, arrival, startup),
        "startup_s": longest if longest > 0 else None,
        "arrival_rate": rate * (deadline - startup) / deadline,
    }


def waiting_after(rate: Fraction, arrival: Fraction, waiting: Fraction, seconds: Fraction) -> Fraction:
    """Requests that still wait after a time: the queue shrinks at mu - lambda, or never."""
    return max(Fraction(0), waiting + (arrival - rate) * seconds)


def transfer_seconds(
    size: Fraction | int, bandwidth: Fraction, startup: Fraction, messages: int = 1
) -> Fraction:
    """Latency of moving `size` bytes in `messages` pieces: alpha k + V/B (digest section 3)."""
    return startup * messages + Fraction(size) / bandwidth
