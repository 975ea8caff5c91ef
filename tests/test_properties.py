"""What must change nothing changes nothing, and more never does less. All rates are exact."""

from __future__ import annotations

import copy
from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inferplan.models.case import Case, build
from inferplan.models.instance import Instance
from inferplan.solver.optimize import Solver
from oracles.drawing import Raw, deployments

EACH = settings(derandomize=True, deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
PLAIN = deployments(rich=False, several_models=False, most_cells=200)
TWO_SITES = deployments(
    servers=2, switches=False, nics=False, rich=False, several_models=False, most_cells=200
)


def rate(raw: Raw, case: Case | None = None) -> Fraction:
    optimum = Solver(build(Instance.model_validate(raw), case)).highest_rate(frugal=False, why=False)
    assert optimum.closed and optimum.bound == optimum.point.rate
    return optimum.point.rate


@EACH
@given(PLAIN, st.data())
def test_more_cards_never_lower_the_rate(raw: Raw, data: st.DataObject) -> None:
    site = data.draw(st.sampled_from([server["name"] for server in raw["servers"]]))
    assert rate(raw, Case(more_cards={site: 1})) >= rate(raw)


@EACH
@given(PLAIN.filter(lambda raw: bool(raw["links"])), st.data())
def test_more_bandwidth_never_lowers_the_rate(raw: Raw, data: st.DataObject) -> None:
    link = Instance.model_validate(raw).links[data.draw(st.integers(0, len(raw["links"]) - 1))]
    now = rate(raw)
    more = rate(raw, Case(bandwidth={link.name: 2 * link.bandwidth}))
    assert now <= more <= rate(raw, Case(bandwidth={each["name"]: None for each in raw["links"]}))


@EACH
@given(PLAIN)
def test_a_form_more_never_lowers_the_rate(raw: Raw) -> None:
    best = Fraction(0)
    for forms in (
        ["disaggregated"],
        ["colocated", "disaggregated"],
        ["colocated", "chunked", "disaggregated"],
    ):
        now = rate({**raw, "forms": forms})
        assert now >= best
        best = now


def single_link(raw: Raw, **changes: str) -> Raw:
    """The deployment with its first link alone, in both directions."""
    link = raw["links"][0]
    both = {"name": "net", "between": ["s0", "s1"], "bandwidth": link["bandwidth"], "duplex": "full"}
    return {**raw, "links": [both | changes], "handover": "routed"}


@EACH
@given(TWO_SITES.filter(lambda raw: bool(raw["links"])))
def test_routed_does_no_worse_than_one_channel(raw: Raw) -> None:
    """Where the channel is the only link: it charges local hand-overs as well, and both directions together."""
    for duplex in ("full", "half"):
        routed = single_link(raw, duplex=duplex)
        assert rate(routed) >= rate({**routed, "handover": {"one-channel": "net"}})


@EACH
@given(PLAIN.filter(lambda raw: any("between" in link for link in raw["links"])))
def test_full_duplex_does_no_worse_than_half(raw: Raw) -> None:
    full, half = (
        {**raw, "links": [{**k, "duplex": duplex} if "between" in k else k for k in raw["links"]]}
        for duplex in ("full", "half")
    )
    assert rate(full) >= rate(half)


@EACH
@given(PLAIN, st.sampled_from(["1/1000000", "5/3", "1000000"]))
def test_all_times_times_c_divide_the_rate_by_c(raw: Raw, factor: str) -> None:
    """Slower cards, links and measured replicas by c: FLOP, bytes and requests per second over c."""
    it, c = Instance.model_validate(raw), Fraction(factor)
    slow = copy.deepcopy(it.resolved)
    for name, card in it.cards.items():
        slow["cards"][name] |= {"bf16": card.bf16 / c, "bandwidth": card.bandwidth / c}
    for link, written in zip(it.links, slow["links"], strict=True):
        written["bandwidth"] = link.bandwidth / c
    for server, written in zip(it.servers, slow["servers"], strict=True):
        if server.nic is not None:
            written["nic"] = server.nic / c
    for name, engine in it.engines.items():
        for field in ("prefill_rate", "decode_rate"):
            if (measured := getattr(engine, field)) is not None:
                slow["engines"][name][field] = measured / c
    assert rate(slow) * c == rate(raw)


@EACH
@given(PLAIN, st.sampled_from(["1/1000000", "5/3", "1000000"]))
def test_larger_states_over_faster_links_change_nothing(raw: Raw, factor: str) -> None:
    """Bytes of a hand-over times c, and bytes per second times c."""
    it, c = Instance.model_validate(raw), Fraction(factor)
    per_token = it.engine.handover_bytes_per_token or Fraction(
        next(iter(it.llms.values())).kv_bytes_per_token
    )
    other = copy.deepcopy(it.resolved)
    for card in other["cards"].values():
        card["memory"] = "1 TB"  # so that a larger landing state does not matter
    same = copy.deepcopy(other)
    other.setdefault("engine", {})["handover_bytes_per_token"] = per_token * c
    for link, written in zip(it.links, other["links"], strict=True):
        written["bandwidth"] = link.bandwidth * c
    for server, written in zip(it.servers, other["servers"], strict=True):
        if server.nic is not None:
            written["nic"] = server.nic * c
    assert rate(other) == rate(same)


@EACH
@given(PLAIN)
def test_pinning_the_best_counts_keeps_the_rate(raw: Raw) -> None:
    network = build(Instance.model_validate(raw))
    best = Solver(network).highest_rate().point
    pins: dict[str, dict[str, int]] = {}
    for name, pool in network.pools.items():
        if pool.replica is not None:
            pins.setdefault(pool.replica.site, {})[pool.replica.role] = best.counts.get(name, 0)
    assert rate({**raw, "fix": pins}) == best.rate


@EACH
@given(PLAIN, st.data())
def test_a_class_in_two_equal_halves_changes_nothing(raw: Raw, data: st.DataObject) -> None:
    it = Instance.model_validate(raw).resolved
    classes = it["workload"]["classes"]
    chosen = classes.pop(data.draw(st.integers(0, len(classes) - 1)))
    half = str(Fraction(chosen["share"]) / 2)
    classes += [{**chosen, "name": f"half{i}", "share": half} for i in range(2)]
    assert rate(it) == rate(raw)


@EACH
@given(PLAIN)
def test_names_and_order_change_nothing(raw: Raw) -> None:
    it = Instance.model_validate(raw).resolved
    other = copy.deepcopy(it)
    names = {server["name"]: f"z{i}" for i, server in enumerate(reversed(it["servers"]))}
    kinds = {name: f"card{i}" for i, name in enumerate(reversed(it["cards"]))}
    other["cards"] = {kinds[name]: it["cards"][name] for name in reversed(it["cards"])}
    other["engines"] = {kinds[name]: rates for name, rates in it["engines"].items()}
    for server in other["servers"]:
        server |= {"name": names[server["name"]], "card": kinds[server["card"]]}
    for link in other["links"]:
        for end in ("from", "to"):
            if end in link:
                link[end] = names.get(link[end], link[end])
        if "between" in link:
            link["between"] = [names.get(end, end) for end in reversed(link["between"])]
    for part in ("servers", "links", "forms"):
        other[part].reverse()
    other["workload"]["classes"].reverse()
    for i, request in enumerate(other["workload"]["classes"]):
        request["name"] = f"renamed{i}"
    assert rate(other) == rate(raw)


def test_the_properties_can_fail() -> None:
    """The same comparison shows a difference where there is one: a single token more."""
    card = {"bf16": "1 TFLOP/s", "memory": "1 GB", "bandwidth": "1 GB/s", "efficiency": "1"}
    model = {
        "num_hidden_layers": 1, "hidden_size": 4, "intermediate_size": 8, "num_attention_heads": 1,
        "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 8,
    }  # fmt: skip
    raw: Raw = {
        "model": model, "cards": {"a": card}, "servers": [{"name": "s", "card": "a", "cards": 2}],
        "workload": {"classes": [{"input_tokens": 64, "output_tokens": 8}]}, "forms": ["colocated"],
    }  # fmt: skip
    changed = copy.deepcopy(raw)
    changed["workload"]["classes"][0]["input_tokens"] = 65
    assert rate(changed) != rate(raw)
