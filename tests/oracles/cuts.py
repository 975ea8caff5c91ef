"""Second oracle: one class, at most two sites; what a cell of counts carries is a least cut in closed form.

With prefill capacities P, decode capacities D (1/s) at the sites l and r, and b, c hand-overs/s from l to r and back,

    split = min( P_l + P_r,  D_l + D_r,  P_r + D_l + b,  P_l + D_r + c )

since states of one class are alike: the four are all cuts between the arriving requests and the finished ones. Both
directions of a half-duplex link may use all of it, as exchanging states in both directions at once is never needed.
With one channel that carries every hand-over, split = min(P_l + P_r, D_l + D_r, B/V). Whole requests add to that.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import lcm

from inferplan.models.instance import Instance

from . import seconds


def highest_rate(instance: Instance, forms: tuple[str, ...] | None = None) -> Fraction:
    """The highest rate of all cells of counts of a deployment with one class, one batch and up to two servers."""
    (request,), (model,) = instance.workload.classes, seconds.models(instance)
    (batch,) = instance.engine.decode_batch
    places = seconds.sites(instance)
    if len(places) > 2 or batch == "auto" or instance.fix:
        raise NotImplementedError
    per_card = [
        _per_card(instance, forms or instance.forms, card, model, int(batch)) for _, card, _ in places
    ]
    if not seconds.steps(request):  # done after prefill
        return sum(
            (n * max(p, whole) for (p, _, whole), (_, _, n) in zip(per_card, places, strict=True)),
            Fraction(0),
        )
    there, back, channel = (
        _states_per_second(instance, b, seconds.moved_bytes(instance, request))
        for b in _bandwidths(instance, places)
    )
    ends = [v for v in (there, back, channel) if v is not None]
    unit = lcm(*(v.denominator for v in [*ends, *(r for rates in per_card for r in rates)]))
    ahead, behind, shared = (None if v is None else int(v * unit) for v in (there, back, channel))
    rates = [tuple(int(r * unit) for r in own) for own in per_card]
    if len(places) == 1:
        places, rates = [*places, ("nowhere", "", 0)], [*rates, (0, 0, 0)]
    best = 0
    for (pl, dl, wl), (pr, dr, wr) in product(*(_roles(n) for _, _, n in places)):
        (rp, rd, rw), (sp, sd, sw) = rates
        left_p, left_d, right_p, right_d = pl * rp, dl * rd, pr * sp, dr * sd
        cuts = [left_p + right_p, left_d + right_d]
        if shared is not None:
            cuts.append(shared)
        else:
            if ahead is not None:
                cuts.append(right_p + left_d + ahead)
            if behind is not None:
                cuts.append(left_p + right_d + behind)
        best = max(best, min(cuts) + wl * rw + wr * sw)
    return Fraction(best, unit)


def _roles(cards: int) -> Iterator[tuple[int, int, int]]:
    """Counts of prefill, decode and whole-request replicas."""
    for prefill, decode, whole in product(range(cards + 1), repeat=3):
        if prefill + decode + whole <= cards:
            yield prefill, decode, whole


def _per_card(
    instance: Instance, forms: tuple[str, ...], card: str, model: str, batch: int
) -> tuple[Fraction, Fraction, Fraction]:
    """Requests/s of one card as prefill, as decode, and with whole requests (the better of the two ways)."""
    (request,) = instance.workload.classes
    memory = instance.cards[card].memory
    fits = {
        role: seconds.needed_bytes(instance, role, batch, model) <= memory
        for role in ("prefill", "decode", "colocated", "chunked")
    }
    d_p, d_d = seconds.prefill(instance, card, request), seconds.decode(instance, card, request, batch)
    prefill = decode = whole = Fraction(0)
    if "disaggregated" in forms:
        prefill = 1 / d_p if fits["prefill"] else prefill
        decode = 1 / d_d if fits["decode"] and d_d else decode
    if "colocated" in forms and fits["colocated"]:
        whole = 1 / (d_p + d_d)
    if "chunked" in forms and fits["chunked"] and card not in instance.engines:
        whole = max(whole, 1 / max(seconds.chunks(instance, card, request, batch)))
    return prefill, decode, whole


def _bandwidths(
    instance: Instance, places: list[seconds.Site]
) -> tuple[Fraction | None, Fraction | None, Fraction | None]:
    """Bytes/s from the first site to the second, back, and of the one channel (None: there is none)."""
    for link in instance.links:
        if link.name == instance.handover:
            return None, None, link.bandwidth
    if len(places) < 2:
        return None, None, None
    first, second = places[0][0], places[1][0]
    there = back = Fraction(0)
    for link in instance.links:
        if link.between or (link.source, link.target) == (first, second):
            there += link.bandwidth
        if link.between or (link.source, link.target) == (second, first):
            back += link.bandwidth
    nics = [server.nic for server in instance.servers for _ in range(server.count) if server.nic is not None]
    return min([there, *nics]), min([back, *nics]), None


def _states_per_second(instance: Instance, bandwidth: Fraction | None, size: Fraction) -> Fraction | None:
    return None if bandwidth is None or not size else bandwidth / size
