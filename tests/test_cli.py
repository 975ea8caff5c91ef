"""The command line's contract: what goes to which stream, exit statuses, files whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
TOOL = Path(sys.executable).parent / "inferplan"
OPENING = ROOT / "instances" / "opening.yaml"


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TOOL, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=ROOT, **options
    )


def without_times(text: str) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads(text)
    plan["solver"].pop("seconds")
    return plan


def test_json_alone_on_standard_output_and_the_same_each_time() -> None:
    first, second = run("solve", OPENING, "--json"), run("solve", OPENING, "--json")
    assert (first.returncode, first.stderr) == (0, "")
    plan = without_times(first.stdout)
    assert plan == without_times(second.stdout)
    assert plan["format"] == "inferplan.plan/1" and plan["status"] == "optimal"
    assert plan["objective"]["value"] == pytest.approx(4.554607, abs=1e-6)
    assert plan["certificate"]["rate_exact"] == "1953125/428824" and plan["certificate"]["verified"] is True
    assert plan["routes"][0]["via"] == ["prefill@left/a100", "left->right", "decode@right/h20"]


def test_output_is_written_and_checked(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    assert run("solve", OPENING, "--output", plan).returncode == 0
    assert run("check", plan, OPENING).returncode == 0
    text = plan.read_text()
    assert "4.554607484655" in text
    plan.write_text(text.replace('"cards": 8', '"cards": 7', 1))
    refuted = run("check", plan)
    assert refuted.returncode == 1 and "cards" in refuted.stderr and refuted.stdout == ""
    assert list(tmp_path.iterdir()) == [plan]  # no temporary file is left


def test_bad_input_leaves_an_existing_file_alone(tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    out.write_text("before")
    ran = run("solve", OPENING, "--set", "workload.rate=fast", "-o", out)
    assert ran.returncode == 2 and out.read_text() == "before"
    assert run("solve", OPENING, "-o", tmp_path).returncode == 2
    assert run("solve", OPENING, "-o", tmp_path / "none" / "plan.json").returncode == 2
    assert run("solve", tmp_path / "none.yaml").returncode == 2
    assert run("check", out).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--set", "links.left-right.bandwidth=1 GB/s"], 0),
        (["--set", "links.0.bandwidth=1 GB/s"], 0),
        (["--set", "goals={startup: 10 s, deadline: 20 s}"], 0),
        (["--set", "goals.deadline=20 s", "--set", "objective=min-cards"], 3),
        (["--set", "goals.min_rate=5/s"], 3),
        (["--set", "engine.decode_batch=100"], 3),
        (["--set", "links.2.bandwidth=1 GB/s"], 2),
        (["--set", "nonsense"], 2),
        (["--gap", "-1"], 2),
        (["--time-limit", "soon"], 2),
        (["--nonsense"], 2),
    ],
)
def test_exit_status(arguments: list[str], status: int) -> None:
    ran = run("solve", OPENING, *arguments)
    assert ran.returncode == status, ran.stderr
    assert "Traceback" not in ran.stderr
    assert bool(ran.stderr) == (status == 2)


LARGE = [
    "--set", "forms=[colocated, disaggregated, chunked]", "--set", "handover=routed",
    "--set", "servers=[{name: left, card: a100, cards: 7, count: 9}, {name: right, card: h20, cards: 5, count: 9}]",
    "--set", "switches=[sw]", "--set", "engine.decode_batch=[8, 16, 24, 32]",
    "--set", "links=[{name: a, between: [left, sw], bandwidth: 2 GB/s}, {name: b, between: [right, sw], bandwidth: 3 GB/s}]",
]  # fmt: skip


def test_a_time_limit_leaves_a_plan_and_its_gap() -> None:
    ran = run("solve", OPENING, *LARGE, "--time-limit", "1 ms", "--json")
    plan = json.loads(ran.stdout)
    assert (ran.returncode, plan["status"]) == (4, "limit")
    assert plan["rate"] > 0 and plan["objective"]["gap"] > 0 and plan["certificate"]["verified"]
    assert plan["objective"]["bound"] > plan["rate"]


def test_an_interrupt_leaves_a_plan_and_its_gap() -> None:
    command = [TOOL, "solve", OPENING, *LARGE, "--json"]
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    time.sleep(6)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=120)
    plan = json.loads(text)
    assert process.returncode == (4 if plan["status"] == "limit" else 0)
    assert plan["rate"] > 0 and plan["certificate"]["verified"]


def test_sweep_as_table_csv_and_json(tmp_path: Path) -> None:
    grid = [
        "sweep",
        OPENING,
        "--vary",
        "engine.decode_batch=16,32",
        "--vary",
        "links.0.bandwidth=1.21 GB/s,25 GB/s",
    ]
    table = run(*grid)
    assert table.returncode == 0 and "4.554607" in table.stdout and "1.001689" in table.stdout
    rows = list(csv.DictReader(io.StringIO(run(*grid, "--csv").stdout)))
    assert [row["engine.decode_batch"] for row in rows] == ["16", "16", "32", "32"]
    assert float(rows[3]["rate_per_s"]) == pytest.approx(4.554607, abs=1e-6)
    out = tmp_path / "rows.json"
    answer = json.loads(run(*grid, "--json", "-o", out).stdout)
    assert answer == json.loads(out.read_text())
    assert answer["rows"][3]["rate_exact"] == "1953125/428824" and answer["rows"][3]["certificate"]["tree"]
    assert "[colocated]" in run("sweep", OPENING, "--vary", "forms=[colocated],[disaggregated]").stdout
    assert run("sweep", OPENING, "--vary", "engine.decode_batch=").returncode == 2
    assert run("sweep", OPENING, "--vary", "engine.decode_batch=16,many").returncode == 2


def test_schema_and_catalogue() -> None:
    schema = json.loads(run("schema").stdout)
    assert {"model", "cards", "servers", "workload", "goals", "offers", "links"} <= set(schema["properties"])
    assert set(schema["required"]) <= {"cards", "servers", "workload"}
    assert "trace" in schema["$defs"]["Workload"]["properties"]
    listed = run("catalog").stdout
    for name in ("h20-96gb-sxm5", "b200-180gb-sxm", "deepseek-v3", "8.19 B", "144 KiB"):
        assert name in listed


@pytest.mark.parametrize(
    "command", [[], ["solve"], ["min-cards"], ["sweep"], ["check"], ["schema"], ["catalog"]]
)
def test_help(command: list[str]) -> None:
    ran = run(*command, "--help")
    assert ran.returncode == 0 and "Usage" in ran.stdout


def test_min_cards_units() -> None:
    ran = run(
        "min-cards",
        ROOT / "instances" / "long-output.yaml",
        "--unit",
        "copies",
        "--deadline",
        "60s",
        "--json",
    )
    assert (ran.returncode, json.loads(ran.stdout)["cards"]) == (0, 32)
    wrong = run("min-cards", OPENING, "--unit", "pair")
    assert wrong.returncode == 2 and "copies" in wrong.stderr
    assert run("min-cards", OPENING, "--sustain", "--deadline", "60s").returncode == 2
    few = run("min-cards", ROOT / "instances" / "long-output.yaml", "--unit", "copies", "--at-most", "2")
    assert few.returncode == 3


def test_no_escape_codes_away_from_a_terminal() -> None:
    environment = {**os.environ, "FORCE_COLOR": ""}
    assert "\x1b" not in run("solve", OPENING, env=environment).stdout


def test_cut_off_is_not_infeasible() -> None:
    """A plan of 57/s exists (57.86/s is found in 10 s); the proven bound is 58.44/s."""
    goal = ["--set", "objective=min-cards", "--set", "workload.rate=57/s", "--set", "goals={}"]
    ran = run("solve", OPENING, *LARGE, *goal, "--time-limit", "0s")
    assert ran.returncode == 4


def test_output_through_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("before")
    link.symlink_to(target)
    assert run("solve", OPENING, "-o", link).returncode == 0
    assert link.is_symlink() and json.loads(target.read_text())["status"] == "optimal"


def test_no_escape_codes_of_the_instance() -> None:
    assert "\x1b" not in run("solve", OPENING, "--set", "about=\x1b[31mred").stdout
