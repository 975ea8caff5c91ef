"""Small deployments to draw, with bandwidths near what their prefill cards hand over, so that links often bind."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

from hypothesis import strategies as st
from inferplan.models.instance import Instance

from . import seconds

Raw = dict[str, Any]
Draw = st.DrawFn
FORMS = ("colocated", "chunked", "disaggregated")


@st.composite
def llms(draw: Draw) -> Raw:
    """A dense model of a few kilobytes."""
    heads = draw(st.sampled_from([1, 2, 4]))
    return {
        "num_hidden_layers": draw(st.integers(1, 3)),
        "hidden_size": draw(st.sampled_from([4, 6, 16])),
        "intermediate_size": draw(st.sampled_from([8, 12, 40])),
        "num_attention_heads": heads,
        "num_key_value_heads": draw(st.sampled_from([n for n in (1, 2, 4) if n <= heads])),
        "head_dim": draw(st.sampled_from([2, 3, 8])),
        "vocab_size": draw(st.sampled_from([10, 32, 100])),
        "model_type": draw(st.sampled_from(["llama", "qwen3"])),
        "tie_word_embeddings": draw(st.booleans()),
    }


@st.composite
def cards(draw: Draw, good_at: str) -> Raw:
    """A card on which arithmetic and traffic are of one order for `llms`; better at `prefill` or at `decode`."""
    efficiency: Any = draw(st.sampled_from(["0.5", "1", "1/3"]))
    if draw(st.booleans()):
        efficiency = {
            "compute": draw(st.sampled_from(["0.6", "0.25"])),
            "memory": draw(st.sampled_from(["0.49", "0.75"])),
        }
    compute, memory = ([90, 200], [9, 21]) if good_at == "prefill" else ([7, 20, 33], [50, 120])
    return {
        "bf16": f"{draw(st.sampled_from(compute))}0 kFLOP/s",
        "bandwidth": f"{draw(st.sampled_from(memory))} kB/s",
        "memory": "1 GB",
        "efficiency": efficiency,
    }


@st.composite
def answers(draw: Draw, one_token: bool = True) -> Any:
    """Output tokens: a number, or a distribution that may hold 1."""
    first = draw(st.integers(1 if one_token else 2, 9))
    if draw(st.integers(0, 3)):
        return first
    second = draw(st.integers(2, 30).filter(lambda n: n != first))
    share = draw(st.sampled_from(["1/2", "1/3", "0.9"]))
    return {str(first): share, str(second): str(1 - Fraction(share))}


@st.composite
def classes(
    draw: Draw, most: int = 3, names: tuple[str | None, ...] = (None,), one_token: bool = True
) -> list[Raw]:
    """Up to `most` classes whose shares add up to 1; one of several may have the share 0."""
    number = draw(st.integers(1, most))
    weights = [draw(st.integers(1 if i == 0 else 0, 4)) for i in range(number)]
    found: list[Raw] = []
    for i, weight in enumerate(weights):
        tokens = draw(st.integers(1, 40))
        found.append({
            "name": f"c{i}", "share": str(Fraction(weight, sum(weights))), "input_tokens": tokens,
            "output_tokens": draw(answers(one_token)), "cached_tokens": draw(st.sampled_from([0, tokens // 2])),
        })  # fmt: skip
        if len(names) > 1:
            found[-1]["model"] = draw(st.sampled_from(names))
    return found


@st.composite
def link_lists(draw: Draw, nodes: list[str], groups: set[str], most: int) -> list[Raw]:
    """Links over random pairs, without bandwidths yet; parallel ones and one-way ones among them."""
    pairs = [p for p in combinations(nodes, 2) if not set(p) <= groups]
    if not pairs:
        return []
    found: list[Raw] = []
    for i in range(draw(st.integers(1, most))):
        a, b = draw(st.sampled_from(pairs))
        kind = draw(st.sampled_from(["full", "full", "half", "one way", "one way back"]))
        link: Raw = {"name": f"n{i}"}
        if kind == "one way":
            link |= {"from": a, "to": b}
        elif kind == "one way back":
            link |= {"from": b, "to": a}
        else:
            link |= {"between": [a, b], "duplex": kind}
        found.append(link)
    return found


@st.composite
def deployments(
    draw: Draw,
    *,
    servers: int = 3,
    most_classes: int = 3,
    several_models: bool = True,
    switches: bool = True,
    nics: bool = True,
    rich: bool = True,
    forms: tuple[str, ...] | None = None,
    most_cells: int = 1500,
) -> Raw:
    """A deployment as the user would write it. `rich` adds pins, tight memory, several batches, server groups."""
    measured = draw(st.booleans())
    two_models = several_models and not measured and draw(st.integers(0, 7)) == 0
    names: tuple[str | None, ...] = ("m0", "m1") if two_models else (None,)
    chosen = forms or draw(
        st.lists(st.sampled_from(FORMS), min_size=1, max_size=3, unique=True).filter(
            lambda f: not (measured and f == ["chunked"])
        )
    )
    if forms is None and "disaggregated" not in chosen and draw(st.booleans()):
        chosen = [*chosen[:1], "disaggregated"]
    alike = draw(st.integers(0, 4)) == 0
    kinds = {"k0": draw(cards("prefill"))} | ({} if alike else {"k1": draw(cards("decode"))})
    number = draw(st.sampled_from([n for n in (2, 3, 2, 1) if n <= servers]))
    several_batches = rich and number < 3 and not two_models and draw(st.integers(0, 5)) == 0
    pools = (len(chosen) + ("disaggregated" in chosen)) * len(names) * (2 if several_batches else 1)
    places: list[Raw] = []
    left = most_cells
    for i in range(number):
        room = [n for n in range(5) if _ways(n, pools) <= max(left ** (1 / (number - i)) * 1.5, 1 + pools)]
        held = draw(st.sampled_from([n for n in room if n] * 3 + [0]))
        left = max(1, left // _ways(held, pools))
        kind = f"k{i % len(kinds)}" if draw(st.integers(0, 4)) else "k0"
        places.append({"name": f"s{i}", "card": kind, "cards": held})
        if nics and draw(st.integers(0, 7)) == 0:
            places[-1]["nic"] = "1 B/s"
    groups: set[str] = set()
    if rich and number == 2 and places[0]["cards"] <= 1 and draw(st.integers(0, 2)) == 0:
        places[0]["count"] = 2
        groups.add("s0")
    hubs = ["hub"] if switches and number > 1 and draw(st.integers(0, 2)) == 0 else []
    links = draw(link_lists([p["name"] for p in places] + hubs, groups, 4 if hubs or number > 2 else 2))
    raw: Raw = {
        "cards": kinds,
        "servers": places,
        "switches": hubs,
        "links": [{**link, "bandwidth": "1 B/s"} for link in links],
        "workload": {"classes": draw(classes(most_classes, names))},
        "forms": list(chosen),
        "engine": {"decode_batch": draw(st.sampled_from([1, 2, 3, 8]))},
    }
    if two_models:
        raw["models"] = {name: draw(llms()) for name in names}
    else:
        raw["model"] = draw(llms())
    if several_batches:
        raw["engine"]["decode_batch"] = draw(st.sampled_from([[1, 4], [2, "auto"]]))
    if draw(st.integers(0, 5)) == 0:
        raw["engine"]["extra_decode_flops"] = draw(st.sampled_from([50, 2000]))
    if draw(st.integers(0, 5)) == 0:
        raw["engine"]["handover_bytes_per_token"] = draw(st.sampled_from([1, "1/3", 1000]))
    if measured:
        raw["engines"] = {kind: draw(_measured(bool(i))) for i, kind in enumerate(kinds)}
    if links and draw(st.integers(0, 3)) == 0:
        raw["handover"] = {"one-channel": links[0]["name"]}
    if rich and draw(st.integers(0, 5)) == 0:
        raw["fix"] = draw(_pins(raw))
    if several_batches or (rich and draw(st.integers(0, 3)) == 0):
        _tighten(draw, raw)
    _set_bandwidths(draw, raw)
    return raw


def _ways(cards: int, pools: int) -> int:
    """In how many ways up to `cards` cards go to pools: C(cards + pools, pools)."""
    found = 1
    for i in range(1, pools + 1):
        found = found * (cards + i) // i
    return found


@st.composite
def _measured(draw: Draw, decodes: bool) -> Raw:
    """Rates of a card that is better at one stage; where it decodes, one rate may be left to the roofline."""
    fast, slow = draw(st.integers(4, 20)), draw(st.sampled_from(["1/s", "2/s", "3/s", "30/min"]))
    rates = (
        {"prefill_rate": slow, "decode_rate": f"{fast}/s"}
        if decodes
        else {"prefill_rate": f"{fast}/s", "decode_rate": slow}
    )
    lacks = draw(st.sampled_from([None, None, "prefill_rate", "decode_rate"])) if decodes else None
    return {name: rate for name, rate in rates.items() if name != lacks}


@st.composite
def _pins(draw: Draw, raw: Raw) -> Raw:
    """Pinned counts at one place; now and then more than there are cards."""
    place = raw["servers"][-1]
    roles = ["prefill", "decode"] if "disaggregated" in raw["forms"] else list(raw["forms"])
    role = draw(st.sampled_from(roles))
    return {place["name"]: {role: draw(st.integers(0, max(1, place["cards"])))}}


def _tighten(draw: Draw, raw: Raw) -> None:
    """Give each card exactly what one role needs, or one byte less."""
    it = Instance.model_validate(raw)
    for card in raw["cards"].values():
        model = draw(st.sampled_from(sorted({seconds.model_of(it, c) for c in it.workload.classes})))
        role = draw(st.sampled_from(["prefill", "decode", "colocated"]))
        batch = max(b for b in (*it.engine.decode_batch, 1) if b != "auto")
        need = seconds.needed_bytes(it, role, int(batch), model)
        card["memory"] = need + draw(st.sampled_from([0, -1, Fraction(-1, 3), 1000]))


def _set_bandwidths(draw: Draw, raw: Raw) -> None:
    """Bandwidths as simple multiples of what one card can hand over or take, whichever is less."""
    it = Instance.model_validate(raw)
    request = draw(
        st.sampled_from([c for c in it.workload.classes if seconds.steps(c)] or it.workload.classes)
    )
    batch = min((b for b in it.engine.decode_batch if b != "auto"), default=1)
    used = {server.card for server in it.servers}
    prefill = min(seconds.prefill(it, card, request) for card in used)
    decode = min(seconds.decode(it, card, request, int(batch)) for card in used)
    near = seconds.moved_bytes(it, request) / max(prefill, decode) or Fraction(1)
    places = [place for place in raw["servers"] if "nic" in place]
    for item, field in [(link, "bandwidth") for link in raw["links"]] + [(place, "nic") for place in places]:
        factor = Fraction(draw(st.sampled_from(["1/4", "1/2", "2/3", "1", "3/2", "2", "5"])))
        item[field] = near * factor  # a Fraction stays exact, whatever its length
