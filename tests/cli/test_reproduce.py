"""``iterant reproduce``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_records import figures, keep, keep_count
from rich.console import Console

from iterant.experiments import shifts
from iterant.experiments.models import MODELS
from iterant.experiments.records import read_records
from iterant.io import append_line
from iterant.io.results import make_result
from iterant.runner import sweeps
from iterant.tasks.chess.task import SAMPLE


@pytest.fixture
def reproduce(command: Any) -> Callable[..., str]:
    """Run ``iterant reproduce`` in an empty folder: its output, or the error if it fails."""

    def call(*words: object, code: int = 0) -> str:
        exit_code, output, errors = command("reproduce", *words)
        assert exit_code == code, errors
        return str(errors if code else output)

    return call


def test_list(tmp_path: Path, reproduce: Any) -> None:
    keep(tmp_path / "runs", "sums-recall-a1", 0, [0, 98])
    for seed in range(2):
        keep_count(tmp_path / "runs", "mazes-ours", seed, "201", {2000: 9, 4000: 8}, problems=10)
    short = reproduce("--list", "--results", tmp_path)
    assert re.search(r"^compare-n-zero +The .* 1 of 13 runs *$", short, re.MULTILINE)
    assert re.search(r"^mazes-201 +Mazes of 201×201 +2 networks *$", short, re.MULTILINE)
    text = reproduce("--list", "--all", "--results", tmp_path)
    # How long the rest takes depends on the recipes, which may change.
    state = r"^compare-n-zero +The .* 1 of 13 runs +Text, .* the rest about \d+ .* on an H200 *$"
    assert re.search(state, text, re.MULTILINE)


def test_networks_on_mazes_unlike_the_papers(reproduce: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(shifts, "GRID", shifts.GRID[:1])
    monkeypatch.setattr(shifts, "LARGE", ())
    text = reproduce("maze-shifts", "--networks", "mazes", "--device", "cpu")
    assert "mazes-s0, 9 start=dead-end,p=0: 100 and 100 of 100" in text
    assert "unknown model" not in text
    assert "drawn in results/figures/maze-shifts-mazes.png" in text
    assert "of 100 in" not in reproduce("maze-shifts", "--networks", "mazes", "--device", "cpu")
    assert re.search(r"^maze-shifts +Mazes with .* 1 network *$", reproduce("--list"), re.MULTILINE)
    for what in ("fig-width", "--all", "--list"):
        assert "--networks goes with" in reproduce(what, "--networks", "mazes", code=2)
    assert "give --data" in reproduce("maze-hard", "--networks", "mazes", code=2)
    assert "give --networks" in reproduce("maze-hard", "--train", code=2)


def test_shipped_records_are_shown_where_there_are_none(reproduce: Any) -> None:
    first, *table = reproduce("table-prefix-peaks").splitlines()
    assert first.endswith("these are the recorded results that ship with iterant")
    assert any("DT-Recall" in line and " at 34 " in line for line in table)
    assert "30 of 30 runs" in reproduce("--list")
    assert "30 of 30 runs" not in reproduce("--list", "--results", "none")
    keep(Path("results/runs"), "sums-recall-a1", 0, [0, 98])
    assert "ship with iterant" not in reproduce("table-prefix-peaks")


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit_any_terminal(
    columns: int, tmp_path: Path, reproduce: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path / "runs", "sums-recall-a1", 0, [0, 98])
    for module in ("reproduce", "output"):
        monkeypatch.setattr(f"iterant.cli.{module}.console", lambda: Console(width=columns))
    text = reproduce("fig-arch-loss-ablation", "--results", tmp_path)
    assert (tmp_path / "figures" / "fig-arch-loss-ablation.svg").exists()
    assert max(len(line) for line in text.splitlines() if "drawn in" not in line) <= columns
    assert "…" not in text
    for word in ("DT-Recall", "98.00 %", "97.12"):
        assert word in text


def test_a_missing_run_is_trained_and_recorded(
    reproduce: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"width": 4, "head": (4,), "iterations": 3, "count": 40, "batch_size": 16, "size": 8,
             "epochs": 2, "monitor_every": 0}  # fmt: skip
    model = MODELS["sums-n0"]
    monkeypatch.setitem(MODELS, "sums-n0", replace(model, changes={**model.changes, **small}))
    for key in ("sums-recall-a1", "sums-ours"):
        keep(Path("results/paper"), key, 0, [50])
    words = ("compare-n-zero", "--seeds", 1, "--budget", "9m", "--device", "cpu")
    text = reproduce(*words)
    assert "missing: 1 run, about" in text
    assert "sums-n0-s0: done" in text
    (record,) = read_records("results/runs").of("sums-n0")
    assert (record.seed, len(record.tests["512"]["solved"])) == (0, 500)
    assert "every run is there already" in reproduce(*words)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("fig-chess", "--data", SAMPLE), "the range 600000:700000"),
        (("compare-n-zero", "--results", "here"), "runs' is not a folder"),
    ],
)
def test_errors_before_training(
    words: tuple[Any, ...],
    problem: str,
    tmp_path: Path,
    reproduce: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ITERANT_DATA", raising=False)
    monkeypatch.setattr(sweeps, "run_local", lambda *_, **__: pytest.fail("it began"))
    Path("runs").touch()
    text = reproduce(*words, "--budget", "1m", "--device", "cpu", code=2)
    assert problem in text
    assert text.count("\n") == 1


def test_tables_are_printed_if_figures_cannot_be_drawn(tmp_path: Path, command: Any) -> None:
    keep(tmp_path / "runs", "sums-recall-a1", 0, [0, 98])
    (tmp_path / "figures").touch()
    code, output, errors = command("reproduce", "--all", "--results", tmp_path)
    assert code == 1
    assert "98.00 % at 2" in output
    assert errors.count("\n") == 1


def test_missing_folders_and_cut_files(tmp_path: Path, reproduce: Any) -> None:
    assert "there is no" in reproduce("fig-width", "--results", tmp_path / "x").splitlines()[0]
    record = make_result("a", figures("sums-n0", 0, [50]), seed=0)
    append_line(tmp_path / "runs.jsonl", record)
    whole = (tmp_path / "runs.jsonl").read_bytes()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.jsonl").write_bytes(whole + whole[:100])
    assert "50.00 %" in reproduce("compare-n-zero", "--results", tmp_path)
    assert read_records(tmp_path / "runs").names == {"sums-n0-s0"}, "without the cut record"


def test_records_that_are_not_used(tmp_path: Path, reproduce: Any) -> None:
    keep(tmp_path / "runs", "sums-no", 0, [50])
    keep(tmp_path / "runs", "sums-n0", 0, [50], reduced={"width": 4})
    first, *table = reproduce("compare-n-zero", "--results", tmp_path).splitlines()
    assert "sums-no-s0.json is of an unknown model, 'sums-no'" in first
    assert "50.00 %" not in "".join(table), "a smaller run is in no table"
