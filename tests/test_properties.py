"""What must change nothing changes nothing, and more never does less. All rates are exact."""

from __future__ import annotations

import copy
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inferplan.models.case import Case, build
from inferplan.models.instance import Instance
from inferplan.solver.optimize import Solver
from oracles.drawing import Raw, deployments

EACH = settings(derandomize=True, deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
PLAIN = deployments(rich=False, several_models=False, most_cells=200)
ROOFLINE = PLAIN.filter(lambda raw: "engines" not in raw)


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


@EACH
@given(PLAIN.filter(lambda raw: "handover" in raw))
def test_routed_does_no_worse_than_one_channel(raw: Raw) -> None:
    """With two servers and one link, that is: there the channel charges all that routing may avoid."""
    if (
        len(raw["servers"]) == 2
        and len(raw["links"]) == 1
        and "between" in raw["links"][0]
        and not raw["switches"]
    ):
        assert rate({**raw, "handover": "routed"}) >= rate(raw)


@EACH
@given(ROOFLINE, st.sampled_from(["1/1000000", "3", "1000000"]))
def test_all_times_times_c_divide_the_rate_by_c(raw: Raw, factor: str) -> None:
    """Slower cards and links by c: bytes and FLOP per second over c."""
    it, c = Instance.model_validate(raw), Fraction(factor)
    slow = copy.deepcopy(it.resolved)
    for name, card in it.cards.items():
        slow["cards"][name] |= {"bf16": card.bf16 / c, "bandwidth": card.bandwidth / c}
    for link, written in zip(it.links, slow["links"], strict=True):
        written["bandwidth"] = link.bandwidth / c
    for server, written in zip(it.servers, slow["servers"], strict=True):
        if server.nic is not None:
            written["nic"] = server.nic / c
    assert rate(slow) * c == rate(raw)


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


@pytest.mark.parametrize("extra", ["links", "classes"])
def test_the_properties_can_fail(extra: str) -> None:
    """The same comparison shows a difference where there is one."""
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
