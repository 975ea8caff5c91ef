"""Prefill-decode split: some cards make the KV state, it is handed over, other cards decode."""

from __future__ import annotations

from fractions import Fraction

from ..fleet import Column, Fleet
from ..network import State
from ..workload import RequestClass

FORM = "disaggregated"


def disaggregated(fleet: Fleet) -> None:
    """arrived -> made@s -> ... -> ready@t -> done, with a hand-over always, also inside a server.

    A request whose answers have one token only is done after prefill: no decode, no hand-over.
    """
    prefill = list(fleet.columns("prefill", FORM, handed_over=True))
    decode = list(fleet.columns("decode", FORM, handed_over=True))
    for column in prefill:
        (seconds,) = fleet.pool(column)
        for request in column.requests:
            end = (
                State("made", request.name, column.replica.site)
                if request.decode_steps
                else State("done", request.name)
            )
            uses = {seconds: column.engine.prefill_seconds(request)}
            fleet.activity(request, FORM, column.label, State("arrived", request.name), end, uses)
    for column in decode:
        (seconds,) = fleet.pool(column)
        for request in column.requests:
            if request.decode_steps:
                ready, done = State("ready", request.name, column.replica.site), State("done", request.name)
                uses = {seconds: column.engine.decode_seconds(request, column.replica.batch or 1)}
                fleet.activity(request, FORM, column.label, ready, done, uses)
    handed_over = _handed_over(prefill)
    ample = _ample(fleet, prefill, handed_over)
    for request, size in handed_over:
        made = {c.replica.site for c in prefill if request in c.requests}
        wanted = {c.replica.site for c in decode if request in c.requests}
        if fleet.instance.handover:
            _one_channel(fleet, fleet.instance.handover, request, size, made, wanted, ample)
        else:
            _routed(fleet, request, size, made, wanted, ample)


def _handed_over(prefill: list[Column]) -> list[tuple[RequestClass, Fraction]]:
    """The classes that are handed over, with the mean bytes of one hand-over."""
    found: dict[str, tuple[RequestClass, Fraction]] = {}
    for column in prefill:
        for request in column.requests:
            if request.decode_steps:
                size = column.engine.handover_bytes(request) * request.decoded_share
                found[request.name] = (request, size)
    return list(found.values())


def _ample(fleet: Fleet, prefill: list[Column], handed_over: list[tuple[RequestClass, Fraction]]) -> Fraction:
    """Bytes/s that no plan can exceed on any link: all that all prefill cards could ever hand over.

    Unlimited links get this capacity: without any, relaying in circles would have no bound to prove.
    """
    most = {column.label: fleet.network.most(fleet.network.pools[column.label]) for column in prefill}
    return sum(
        (
            size * most[column.label] / column.engine.prefill_seconds(request)
            for request, size in handed_over
            for column in prefill
            if request in column.requests
        ),
        Fraction(0),
    )


def _one_channel(
    fleet: Fleet,
    channel: str,
    request: RequestClass,
    size: Fraction,
    made: set[str],
    wanted: set[str],
    ample: Fraction,
) -> None:
    """Every hand-over, local ones and both directions, is charged to one channel."""
    fleet.channel((channel,), ample)
    for source in sorted(made):
        for target in sorted(wanted):
            start, end = State("made", request.name, source), State("ready", request.name, target)
            fleet.activity(request, FORM, f"{source}->{target}", start, end, {channel: size})


def _routed(
    fleet: Fleet, request: RequestClass, size: Fraction, made: set[str], wanted: set[str], ample: Fraction
) -> None:
    """Bytes charge each link on their way; a hop moves the state on, and landing where it is costs nothing.

    States of one class made at different places are alike, so they share one commodity, whatever their
    source: relays and parallel paths are just more hops.
    """
    useful = _between(fleet, made, wanted)
    for hop in fleet.hops:
        if hop.source in useful and hop.target in useful:
            fleet.channel(hop.resources, ample)
            start, end = State("made", request.name, hop.source), State("made", request.name, hop.target)
            fleet.activity(request, FORM, hop.label, start, end, dict.fromkeys(hop.resources, size))
    for site in sorted(wanted & useful):
        start, end = State("made", request.name, site), State("ready", request.name, site)
        fleet.activity(request, FORM, f"stay@{site}", start, end, {})


def _between(fleet: Fleet, made: set[str], wanted: set[str]) -> set[str]:
    """The nodes on some way from a prefill site to a decode site."""

    def reached(start: set[str], steps: dict[str, set[str]]) -> set[str]:
        found, front = set(start), list(start)
        while front:
            for node in steps.get(front.pop(), ()):
                if node not in found:
                    found.add(node)
                    front.append(node)
        return found

    ahead: dict[str, set[str]] = {}
    back: dict[str, set[str]] = {}
    for hop in fleet.hops:
        ahead.setdefault(hop.source, set()).add(hop.target)
        back.setdefault(hop.target, set()).add(hop.source)
    return reached(made, ahead) & reached(wanted, back)
