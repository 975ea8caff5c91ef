"""Every file of instances/: what it gives, from Python and from the shell, against chapter and oracles."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import inferplan
import pytest
import yaml
from inferplan import Instance, Plan
from inferplan.models.documents import read_document
from oracles import cells, cuts, seconds

TESTS = Path(__file__).resolve().parent
FOLDER = TESTS.parent / "instances"
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((TESTS / "instances_expected.yaml").read_text("utf-8"))
BOTH = "[colocated, disaggregated]"
NAMED = 1e-6  # relative, for rates printed with six places
PLACES = 5e-6  # half of the last of five places
INSTANT = 6e-4  # half of a printed millisecond, and what a rate of five places leaves open

Changes = tuple[tuple[str, str], ...]


def read(name: str, **changes: str) -> Instance:
    """An instance of the folder; `a__b` stands for the field a.b."""
    fields = {field.replace("__", "."): value for field, value in changes.items()}
    return inferplan.load(FOLDER / f"{name}.yaml", fields)


@cache
def solved(name: str) -> Plan:
    return inferplan.solve(read(name))


@cache
def quick(name: str, changes: Changes) -> Plan:
    """A plan without explanation, which still has to prove itself."""
    plan = inferplan.solve(read(name, **dict(changes)), explain=False)
    proven(plan)
    return plan


def proven(plan: Plan) -> None:
    assert plan.certificate.verified
    assert inferplan.check(plan) == []
    assert plan.certificate.proven_gap == 0


def replicas(plan: Plan) -> dict[str, int]:
    """Counts of pools without purchases."""
    return {name: n for name, n in plan.certificate.counts.items() if not name.startswith(("draw", "buy"))}


def in_short(plan: Plan) -> dict[str, int]:
    """Counts by card and role, as in 2AC 1AP 4HD, whatever the site."""
    short: dict[str, int] = {}
    for pool in plan.pools:
        role = {"prefill": "P", "decode": "D", "colocated": "C"}[pool.role]
        key = pool.card[0].upper() + role
        short[key] = short.get(key, 0) + pool.cards
    return short


def counts(text: str) -> dict[str, int]:
    """`2AC 1AP` as counts."""
    return {word.lstrip("0123456789"): int(re.match(r"\d+", word)[0]) for word in text.split()}  # type: ignore[index]


# ------------------------------------------------------------------------------------------- every file


def test_no_file_is_forgotten() -> None:
    files = sorted(path.stem for path in FOLDER.glob("*.yaml"))
    assert files == sorted(EXPECTED)
    assert all("rate" in expected for expected in EXPECTED.values())


@pytest.mark.parametrize("name", EXPECTED)
def test_says_what_it_teaches(name: str) -> None:
    instance = read(name)
    assert instance.name == name
    assert instance.about is not None and re.fullmatch(r"[A-Z].*\.", instance.about)
    assert len(instance.about) <= 110


@pytest.mark.parametrize("name", EXPECTED)
def test_best_plan(name: str) -> None:
    plan, expected = solved(name), EXPECTED[name]
    assert plan.status == "optimal"
    assert replicas(plan) == expected["counts"]
    assert plan.rate == pytest.approx(
        expected["rate"], rel=NAMED, abs=PLACES * ("." in str(expected["rate"]))
    )
    if "exact" in expected:
        assert plan.certificate.rate_exact == expected["exact"]
    assert plan.cards == expected.get("cards", sum(expected["counts"].values()))
    assert plan.bought == expected.get("bought", {})
    if name != "cheapest":  # there the declared cards are an offer
        assert {idle.server: idle.cards for idle in plan.idle} == expected.get("idle", {})
    assert plan.ties is not None and plan.ties.unique is True
    assert sorted(plan.bottlenecks) == sorted(expected.get("binds", plan.bottlenecks))


@pytest.mark.parametrize("name", EXPECTED)
def test_proof(name: str) -> None:
    proven(solved(name))


@pytest.mark.parametrize("name", [name for name, expected in EXPECTED.items() if "gone" in expected])
def test_backlog(name: str) -> None:
    drain, expected = solved(name).drain, EXPECTED[name]
    assert drain is not None
    assert drain.cleared_at_s == (expected["gone"] and pytest.approx(expected["gone"], abs=INSTANT))
    assert drain.meets_deadline is expected["in_time"]


@pytest.mark.parametrize("name", [name for name, expected in EXPECTED.items() if "forms" in expected])
def test_side_by_side(name: str) -> None:
    instance = read(name)
    alternatives = {a.form: a for a in solved(name).alternatives}
    assert list(alternatives)[:4] == ["colocated", "chunked", "disaggregated", "colocated+disaggregated"]
    for form, (rate, gone) in EXPECTED[name]["forms"].items():
        found = alternatives[form]
        assert found.rate == pytest.approx(rate, abs=PLACES), form
        assert found.cleared_at_s == (gone and pytest.approx(gone, abs=INSTANT)), form
        deadline = float(instance.goals.deadline or 0)
        verdict = "never drains" if gone is None else "in time" if gone <= deadline else "late"
        assert (found.verdict, found.meets_deadline) == (verdict, verdict == "in time"), form
        assert found.ideal is (form == "chunked") and found.proven


@pytest.mark.parametrize("name", [name for name, expected in EXPECTED.items() if "forms" in expected])
def test_side_by_side_equals_the_oracles(name: str) -> None:
    """Each form alone and the mix, exactly, by closed forms and by enumeration."""
    instance = read(name, fix="{}")  # the forms are compared without pins
    for claim in solved(name).certificate.claims:
        if claim.about.startswith("alternative "):
            forms = tuple(claim.about.removeprefix("alternative ").split("+"))
            rates = {cells.highest_rate(instance, forms)}
            if len(instance.workload.classes) == 1 and len(instance.sites) < 3:
                rates.add(cuts.highest_rate(instance, forms))
            assert rates == {Fraction(claim.rate)}, forms


@pytest.mark.parametrize("name", [name for name, expected in EXPECTED.items() if "forms" in expected])
def test_whether_the_network_limits(name: str) -> None:
    network, free = solved(name).network, EXPECTED[name].get("network")
    if not read(name).links:
        assert network is None
        return
    assert network is not None
    assert network.binds is (free is not None)
    assert network.rate_with_unlimited_links == pytest.approx(free or solved(name).rate, rel=NAMED)


# -------------------------------------------------------------------------------------- the chapter's rows


def test_opening_worth() -> None:
    worth = {w.resource: w for w in solved("opening").worth}
    for resource, (one, two) in EXPECTED["opening"]["worth"].items():
        assert worth[resource].rate_gain == pytest.approx(one, abs=5e-5)
        assert worth[resource].rate_gain_2 == pytest.approx(two, abs=5e-5)
    doubled = quick("opening", (("links__0__bandwidth", "50 GB/s"),))
    assert doubled.certificate.rate_exact == solved("opening").certificate.rate_exact


@pytest.mark.parametrize(
    "place, more, gain", [(0, 1, 0.1163), (0, 2, 0.5668), (1, 1, 0.1163), (1, 2, 0.6703)]
)
def test_opening_worth_solved_apart(place: int, more: int, gain: float) -> None:
    plan = quick("opening", ((f"servers__{place}__cards", str(4 + more)),))
    assert plan.rate - solved("opening").rate == pytest.approx(gain, abs=5e-5)


def test_prefix_hit_opening_split_is_slower() -> None:
    pinned = (("fix", "{left: {prefill: 4}, right: {prefill: 0}}"),)
    plan = quick("prefix-hit", pinned)
    assert plan.summary == "4P4D"
    assert plan.drain is not None and plan.drain.cleared_at_s == pytest.approx(43.188, abs=INSTANT)


def test_short_output_an_a100_must_not_decode() -> None:
    plan = quick("short-output", (("fix", "{left: {prefill: 3, decode: 1}, right: {prefill: 4}}"),))
    assert plan.rate == pytest.approx(4.71, abs=5e-3)
    assert plan.rate < EXPECTED["short-output"]["forms"]["colocated"][0] < solved("short-output").rate


def test_mla_handover_changes_the_link_only() -> None:
    base, mla = solved("opening"), solved("mla-handover")
    assert base.pools == mla.pools
    (wide,), (compact,) = base.links, mla.links
    assert wide.bytes_per_s == pytest.approx(5.50e9, abs=5e6)
    assert compact.bytes_per_s == pytest.approx(2.62e9, abs=5e6)
    assert compact.bytes_per_s / wide.bytes_per_s == pytest.approx(70272 / 147456)


def test_mla_query_work_is_on_decode_only() -> None:
    assert {p.role: round(p.capacity, 5) for p in solved("mla-query-work").pools} == {
        "prefill": 4.67094,
        "decode": 4.41231,
    }


def test_slow_link_ties_by_sweep() -> None:
    """21 of the 25 splits tie at exactly one state per second; the others are slower."""
    splits = ["0", "1", "2", "3", "4"]
    grid = {"fix.left.prefill": splits, "fix.right.prefill": splits}
    rows = list(inferplan.sweep(read_document(FOLDER / "slow-link.yaml"), grid))
    assert len(rows) == 25
    assert all(row.plan.status in ("optimal", "infeasible") and row.plan.certificate.verified for row in rows)
    rates = [Fraction(row.plan.certificate.rate_exact) for row in rows]
    assert rates.count(Fraction(1)) == 21
    assert max(rates) == 1 and sum(rate < 1 for rate in rates) == 4


def test_slow_link_fewest_cards_leave_six_idle() -> None:
    plan = solved("slow-link")
    assert plan.summary == "1P1D"
    assert sum(idle.cards for idle in plan.idle) == 6


def test_faster_decode_either_role_binds() -> None:
    """Both are full, and more of one alone gives nothing: the plan may name either."""
    assert set(solved("faster-decode").bottlenecks) <= {"prefill on a100 at box", "decode on a100 at box"}
    assert solved("faster-decode").bottlenecks


def test_faster_decode_frees_three_cards() -> None:
    fast = ("engines__a100__decode_rate", "20/s")
    kept = quick(
        "faster-decode", (fast, ("objective", "max-rate"), ("fix", "{box: {prefill: 1, decode: 4}}"))
    )
    assert (kept.summary, kept.rate) == ("1P4D", 20)
    assert {p.role: p.capacity for p in kept.pools} == {"prefill": 20, "decode": 80}
    again = quick("faster-decode", (fast,))
    assert (again.summary, again.rate, again.cards) == ("1P1D", 20, 2)
    assert [idle.cards for idle in again.idle] == [3]


def test_faster_decode_arrivals_need_strictly_more() -> None:
    """20/s of capacity do not hold arrivals of 20/s."""
    plan = quick("faster-decode", (("goals", "{}"), ("workload__rate", "20/s")))
    assert plan.status == "infeasible"
    assert plan.best_rate == 20


def test_mixed_classes_let_the_router_choose() -> None:
    """Co-located, two classes do better than one class with the same mean."""
    blind, seeing = (
        {a.form: a.rate for a in solved(name).alternatives} for name in ("mixed-output", "mixed-classes")
    )
    assert blind["colocated"] == pytest.approx(1.645286, rel=NAMED)
    assert seeing["colocated"] == pytest.approx(1.7678, abs=5e-5)
    assert blind["disaggregated"] == seeing["disaggregated"]


# ------------------------------------------------------------------------------------------- mixed forms

HOMOGENEOUS_CHANNEL: Changes = (
    ("servers", "[{name: box, card: a100, cards: 8}, {name: spare, card: a100, cards: 0}]"),
    ("links", "[{name: left-right, between: [box, spare], bandwidth: 25 GB/s}]"),
)
MIXED = [  # instance, split with one channel, split routed, co-located + split; None: no counts are given
    ("opening", (4.554607, "4AP 4HD"), (4.554607, "4AP 4HD"), (4.554607, "4AP 4HD")),
    ("prefix-hit", (5.688256, "2AP 2AD 4HD"), (5.688256, "2AP 2AD 4HD"), (5.706519, "2AC 1AP 1AD 1HC 3HD")),
    ("short-output", (6.332719, "4AP 3HP 1HD"), (6.332719, "4AP 3HP 1HD"), (6.332719, "4AP 3HP 1HD")),
    ("long-output", (1.259636, "2AP 2AD 4HD"), (1.259636, "2AP 2AD 4HD"), (1.360791, "2AC 1AP 1AD 4HD")),
    ("mixed-classes", (2.062534, "2AP 2AD 4HD"), (2.062534, "2AP 2AD 4HD"), (2.103383, "3AC 1AP 4HD")),
    ("slow-link", (1, "1AP 1HD"), (3.241500, "2AP 2AD 2HP 2HD"), (3.262719, "3AC 1AP 3HC 1HD")),
    ("homogeneous", (2.834120, "3AP 5AD"), (2.834120, "3AP 5AD"), (3.052766, "8AC")),
]


def mixed_cases() -> Iterator[Any]:
    for name, channel, routed, both in MIXED:
        for handover, alone in (("{one-channel: left-right}", channel), ("routed", routed)):
            for forms, (rate, which) in (("[disaggregated]", alone), (BOTH, both)):
                way = "routed" if handover == "routed" else "channel"
                yield pytest.param(
                    name, handover, forms, rate, which, id=f"{name}-{way}-{forms.count(',') + 1}"
                )


@pytest.mark.parametrize("name, handover, forms, rate, which", list(mixed_cases()))
def test_mixed_forms(name: str, handover: str, forms: str, rate: float, which: str) -> None:
    extra = HOMOGENEOUS_CHANNEL if name == "homogeneous" and handover != "routed" else ()
    plan = quick(name, (*extra, ("handover", handover), ("forms", forms)))
    assert plan.rate == pytest.approx(rate, rel=NAMED)
    assert in_short(plan) == counts(which)


# ------------------------------------------------------------------------------------------ fewest cards

FEWEST = [  # instance, forms, unit, aim, cards, bought
    ("long-output", "[disaggregated]", "copies", "sustain", 24, None),
    ("long-output", "[disaggregated]", "copies", "deadline", 32, None),
    ("long-output", "[disaggregated]", "pairs", "sustain", 22, {"pairs": 11}),
    ("long-output", "[disaggregated]", "pairs", "deadline", 26, {"pairs": 13}),
    ("long-output", "[disaggregated]", "card", "sustain", 17, {"a100": 3, "h20": 14}),
    ("long-output", "[disaggregated]", "card", "deadline", 21, {"a100": 4, "h20": 17}),
    ("long-output", BOTH, "card", "sustain", 17, None),
    ("long-output", BOTH, "card", "deadline", 21, None),
    ("mixed-classes", "[disaggregated]", "card", "sustain", 12, None),
    ("mixed-classes", BOTH, "card", "sustain", 12, None),
    ("mixed-classes", "[disaggregated]", "card", "deadline", 15, None),
    ("mixed-classes", BOTH, "card", "deadline", 15, None),
    ("mixed-output", "[disaggregated]", "copies", "sustain", 16, None),
    ("mixed-output", "[disaggregated]", "copies", "deadline", 24, None),
]


@cache
def fewest(name: str, forms: str, unit: str, aim: Any) -> Plan:
    return inferplan.min_cards(read(name, forms=forms), unit=unit, aim=aim, explain=False)


@pytest.mark.parametrize("name, forms, unit, aim, cards, bought", FEWEST)
def test_fewest_cards(
    name: str, forms: str, unit: str, aim: str, cards: int, bought: dict[str, int] | None
) -> None:
    plan = fewest(name, forms, unit, aim)
    assert plan.status == "optimal"
    assert plan.objective is not None
    assert (plan.cards, plan.objective.value, plan.objective.bound) == (cards, cards, cards)
    assert plan.rate > 3.5 if aim == "sustain" else plan.rate >= 4.2
    if bought is not None:
        assert plan.bought == bought
    assert inferplan.check(plan) == [] and plan.certificate.verified


@pytest.mark.parametrize("unit", ["copies", "pairs", "card", "server"])
def test_fewest_cards_explained(unit: str) -> None:
    """The explanation is proven too, in whatever unit cards are bought."""
    plan = inferplan.min_cards(read("long-output"), unit=unit, aim="sustain")
    proven(plan)
    assert len(plan.alternatives) == 4 and all(a.proven for a in plan.alternatives)


def test_copies_of_long_output() -> None:
    three, four = (fewest("long-output", "[disaggregated]", "copies", aim) for aim in ("sustain", "deadline"))
    assert (three.copies, four.copies) == (3, 4)
    assert three.rate == pytest.approx(3.77891, abs=PLACES)
    assert four.rate == pytest.approx(5.03855, abs=PLACES)
    assert three.drain is not None and four.drain is not None
    assert three.drain.cleared_at_s == pytest.approx(135.489, abs=INSTANT)
    assert four.drain.cleared_at_s == pytest.approx(32.749, abs=INSTANT)


def test_copies_of_mixed_output_miss_by_a_little() -> None:
    two, three = (fewest("mixed-output", "[disaggregated]", "copies", aim) for aim in ("sustain", "deadline"))
    assert (two.copies, three.copies) == (2, 3)
    assert two.rate == pytest.approx(4.125069, rel=NAMED)
    assert two.drain is not None and three.drain is not None
    assert two.drain.cleared_at_s == pytest.approx(65.994, abs=INSTANT)
    assert two.drain.meets_deadline is False
    assert three.drain.cleared_at_s == pytest.approx(23.023, abs=INSTANT)


def test_fewest_pairs_by_closed_form() -> None:
    """Ten pairs hold no arrivals of 3.5/s, eleven do; twelve miss the deadline, thirteen do not."""
    rates = [
        cuts.highest_rate(read("long-output", servers__0__cards=str(n), servers__1__cards=str(n)))
        for n in (10, 11, 12, 13)
    ]
    assert rates[0] <= Fraction("3.5") < rates[1] <= rates[2] < Fraction("4.2") <= rates[3]


# ------------------------------------------------------------------------------- a goal that is out of reach

LATE = {"goals.deadline": "20 s"}


@pytest.mark.parametrize("objective, status", [("max-rate", "optimal"), ("min-cards", "infeasible")])
def test_goal_out_of_reach(objective: str, status: str) -> None:
    plan = inferplan.solve(inferplan.load(FOLDER / "opening.yaml", {**LATE, "objective": objective}))
    proven(plan)
    assert plan.status == status
    assert plan.required_rate == 7
    assert plan.best_rate == pytest.approx(4.554607, rel=NAMED)
    assert plan.nearest is not None
    assert plan.nearest.deadline_s == pytest.approx(43.188, abs=INSTANT)
    assert plan.nearest.startup_s == pytest.approx(4.631, abs=5e-4)
    assert plan.nearest.arrival_rate == pytest.approx(2.277, abs=5e-4)
    alone = [remedy.buy for remedy in plan.remedies if remedy.helps and remedy.proven]
    assert {"a100": 7} in alone and {"h20": 8} in alone
    assert [remedy.helps for remedy in plan.remedies if remedy.link] == [False]


def test_goal_out_of_reach_by_closed_form() -> None:
    """Six A100 or seven H20 more are not enough."""
    for place, enough in ((0, 7), (1, 8)):
        rates = [
            cuts.highest_rate(inferplan.load(FOLDER / "opening.yaml", {f"servers.{place}.cards": str(4 + n)}))
            for n in (enough - 1, enough)
        ]
        assert rates[0] < 7 <= rates[1]


# ------------------------------------------------------------------------------------------- our own files


def test_two_sites_equals_enumeration() -> None:
    """All cells of counts, none skipped, each with an exact linear program over whole routes; one is best."""
    rates = [rate for _, rate in cells.every_cell(read("two-sites"))]
    assert max(rates) == Fraction(solved("two-sites").certificate.rate_exact)
    assert rates.count(max(rates)) == 1


def test_two_sites_keep_documents_off_the_leased_line() -> None:
    plan, instance = solved("two-sites"), read("two-sites")
    assert len(instance.sites) == 3 and len(instance.workload.classes) == 2
    (leased,) = [link for link in plan.links if link.name == "leased" and link.source == "east-switch"]
    assert leased.utilization == 1
    over = {
        name: sum(r.rate for r in plan.routes if r.of == name and "decode@west-h20/h20" in r.via)
        / sum(r.rate for r in plan.routes if r.of == name)
        for name in ("chat", "document")
    }
    assert over["chat"] == pytest.approx(1) and over["document"] < 0.25
    assert all(len(r.via) == 4 for r in plan.routes if r.via[-1] == "decode@west-h20/h20")  # two hops
    assert any("decode" in r.what and "l40s" in r.what for r in plan.refusals)


def test_azure_conv_equals_enumeration() -> None:
    """No five cards of the declared reach what is needed; the six of the plan reach exactly its rate."""

    def best(h100: int, l40s: int) -> Fraction:
        return cells.highest_rate(
            read("azure-conv", servers__0__cards=str(h100), servers__1__cards=str(l40s))
        )

    need = Fraction(24 * 600, 540)
    assert all(best(h100, 5 - h100) < need for h100 in range(1, 5))
    assert best(4, 2) == Fraction(solved("azure-conv").certificate.rate_exact) >= need


def test_azure_conv_mixes_forms() -> None:
    plan = solved("azure-conv")
    assert {a.form: a.cards for a in plan.alternatives if not a.ideal} == {
        "colocated": 7,
        "disaggregated": 7,
        "colocated+disaggregated": 6,
    }
    assert {p.card: p.batch for p in plan.pools if p.role == "colocated"} == {"h100": 25}
    assert sum("guess" in line for line in plan.assumptions) == 2
    assert any("12 classes of 380 requests" in line for line in plan.assumptions)


def test_azure_conv_keeps_the_rate_of_the_trace() -> None:
    rate = read("azure-conv", workload="{trace: azure-conv-sample.csv, classes: 12}").workload.rate
    assert rate is not None and float(rate) == pytest.approx(3.171, abs=5e-4)


def least_money(instance: Instance, boxes: int) -> Fraction:
    """The least money per hour for 4.2/s, by trying all counts of cards, roles and boxes of four H20."""
    (request,) = instance.workload.classes
    prefill, decode = (
        {card: 1 / seconds.prefill(instance, card, request) for card in instance.cards},
        {card: 1 / seconds.decode(instance, card, request, 32) for card in instance.cards},
    )
    bills = []
    for b in range(boxes + 1):
        for a, h in product(range(17), range(9)):
            for a_p, h_p in product(range(a + 1), range(h + 4 * b + 1)):
                makes = a_p * prefill["a100"] + h_p * prefill["h20"]
                takes = (a - a_p) * decode["a100"] + (h + 4 * b - h_p) * decode["h20"]
                if min(makes, takes) >= Fraction("4.2"):  # the link carries 20/s
                    bills.append(Fraction("1.3") * a + Fraction("2.8") * h + 8 * b)
    return min(bills)


def test_cheapest_equals_enumeration() -> None:
    plan, instance = solved("cheapest"), read("cheapest")
    assert plan.objective is not None
    assert plan.objective.value == plan.objective.bound == EXPECTED["cheapest"]["cost"]
    assert float(least_money(instance, boxes=2)) == plan.objective.value
    alone = quick("cheapest", (("offers", "[]"),))
    assert alone.objective is not None
    assert (alone.summary, alone.cards, alone.objective.value) == ("4P8D", 12, 15.6)
    assert float(least_money(instance, boxes=0)) == alone.objective.value


def test_cheapest_is_not_fewest() -> None:
    few = quick("cheapest", (("offers", "[]"), ("objective", "min-cards")))
    assert (few.summary, few.cards) == ("4P4D", 8)


# ---------------------------------------------------------------------------------------- from the shell


def shell(*words: str) -> subprocess.CompletedProcess[str]:
    tool = Path(sys.executable).parent / "inferplan"
    return subprocess.run([tool, *words], cwd=FOLDER.parent, capture_output=True, text=True, check=False)


def test_shell_solve() -> None:
    done = shell("solve", "instances/opening.yaml")
    assert done.returncode == 0 and not done.stderr
    text = " ".join(done.stdout.split())
    assert "4P4D" in text and "4.554607" in text and "1953125/428824" in text
    assert "43.188 s" in text and "62.5 s" in text and "3.016958" in text


def test_shell_json_is_a_plan_to_check(tmp_path: Path) -> None:
    done = shell("solve", "instances/two-sites.yaml", "--json", "--output", str(tmp_path / "plan.json"))
    assert done.returncode == 0 and not done.stderr
    assert json.loads(done.stdout)["status"] == "optimal"
    assert (tmp_path / "plan.json").read_text("utf-8") == done.stdout
    assert shell("check", str(tmp_path / "plan.json"), "instances/two-sites.yaml").returncode == 0


@pytest.mark.parametrize("objective, status", [("max-rate", 0), ("min-cards", 3)])
def test_shell_words_for_a_goal_out_of_reach(objective: str, status: int) -> None:
    done = shell(
        "solve", "instances/opening.yaml", "--set", "goals.deadline=20 s", "--set", f"objective={objective}"
    )
    assert done.returncode == status and not done.stderr
    text = " ".join(done.stdout.split())
    assert re.search(r"[Nn]eed(s|ed:) 7/s", text)
    assert re.search(r"reaches 4\.55", text)
    assert "43.19 s" in text
    assert re.search(r"\b7 a100\b", text) and re.search(r"\b8 h20\b", text)
    assert re.search(r"left-right: no bandwidth", text)


@pytest.mark.parametrize(
    "words, cards", [(["--unit", "copies", "--sustain"], 24), (["--deadline", "60s"], 21)]
)
def test_shell_min_cards(words: list[str], cards: int) -> None:
    done = shell("min-cards", "instances/long-output.yaml", *words, "--json")
    assert done.returncode == 0 and not done.stderr
    assert json.loads(done.stdout)["cards"] == cards
