"""Folders written by the version of commit f988a78 are still read, resumed and evaluated.

``fixtures/`` holds runs (finished, stopped at a time limit, killed), a sweep, a weights folder and
the authors' checkpoint it was imported from, an exported hub folder, and results.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import iterant

FIXTURES = Path(__file__).with_name("fixtures")
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A copy of the fixtures, in the folder in which commands run."""
    shutil.copytree(FIXTURES, tmp_path, dirs_exist_ok=True)
    return tmp_path


def weights(folder: Path, which: str | None = None) -> dict[str, Tensor]:
    net: Any = iterant.load(folder, which=which)
    tensors: dict[str, Tensor] = net.state_dict()
    return tensors


def summary(tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Shape, sum and norm of each tensor."""
    return {
        name: [list(value.shape), float(value.double().sum()), float(value.double().norm())]
        for name, value in tensors.items()
    }


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(value, second[name]) for name, value in first.items()
    )


def test_weights_are_read(stored: Path, golden: Any) -> None:
    finished = stored / "runs" / "finished"
    seen = {
        **{which: summary(weights(finished, which)) for which in ("best", "averaged", "last")},
        "imported": summary(weights(stored / "weights")),
        "killed": summary(weights(stored / "runs" / "interrupted", "last")),
        "sweep": summary(weights(stored / "sweeps/small/runs/prefix-sums-quick-width4-s1")),
    }
    golden("stored-weights", seen, rel=1e-6)
    assert same(weights(finished), weights(finished, "averaged"))
    assert same(weights(stored / "hub"), weights(finished))


def test_runs_are_listed(stored: Path, iterant_command: Any) -> None:
    rows = [line.split() for line in iterant_command("runs").splitlines()]
    states = {row[0]: row for row in rows if row and row[0].startswith("runs/")}
    for name, task, step in (
        ("finished", "prefix-sums", "256 of 256"),
        ("interrupted", "prefix-sums", "4 of 120"),
        ("stopped", "mazes", "0 of 8"),
    ):
        row = states[f"runs/{name}"]
        assert row[1] == task
        assert name in row
        assert step in " ".join(row)


@pytest.mark.parametrize(("name", "steps"), [("stopped", 8), ("interrupted", 120)])
def test_a_broken_run_is_resumed(stored: Path, golden: Any, name: str, steps: int) -> None:
    run = iterant.train(resume=stored / "runs" / name, device="cpu")
    assert (run.state, run.status.step) == ("finished", steps)
    golden(f"resumed-{name}", summary(weights(stored / "runs" / name, "last")), abs=1e-4)
    records = (stored / "runs" / name / "metrics.jsonl").read_text().splitlines()
    logged = [json.loads(record)["step"] for record in records]
    assert logged == sorted(logged)
    assert set(logged) == set(range(1, steps + 1))


def test_a_finished_run_stays_as_it_is(stored: Path) -> None:
    before = weights(stored / "runs" / "finished", "last")
    assert iterant.train(resume=stored / "runs" / "finished", device="cpu").state == "finished"
    assert same(before, weights(stored / "runs" / "finished", "last"))


def test_a_run_is_evaluated(stored: Path, iterant_command: Any) -> None:
    """As the stored result of the same command says."""
    iterant_command("evaluate", "runs/finished", "--size", 8, 16, "--count", 20, "--max-steps", 40,
                    "--device", "cpu", "--json", "again.json")  # fmt: skip
    ours, theirs = (
        json.loads((stored / name).read_text())["figures"]["evaluations"]
        for name in ("again.json", "results/evaluate.json")
    )
    for new, old in zip(ours, theirs, strict=True):
        assert old.keys() <= new.keys(), "keys are added, never taken away"
    for one, other in zip(ours, theirs, strict=True):
        for key in ("run", "size", "problems", "end", "solved", "operations a problem"):
            assert one[key] == other[key], key


def test_a_checkpoint_of_the_authors_is_imported(stored: Path, iterant_command: Any) -> None:
    iterant_command("import", "authors.pth", "--task", "prefix-sums", "--out", "again")
    assert same(weights(stored / "again"), weights(stored / "weights"))
    ours, theirs = (
        json.loads((stored / folder / "config.json").read_text()) for folder in ("again", "weights")
    )
    for config in (ours, theirs):
        del config["weights"], config["sha256"]
    assert ours == theirs


def test_a_sweep_is_surveyed_and_collected(stored: Path, iterant_command: Any, golden: Any) -> None:
    survey = json.loads(iterant_command("sweep", "status", "sweeps/small", "--json"))
    golden("sweep-status", survey)
    kept = weights(stored / "sweeps/small/runs/prefix-sums-quick-width4-s0", "last")
    iterant_command("sweep", "small.toml", "--out", "sweeps/small", "--results", "again")
    assert json.loads(iterant_command("sweep", "status", "sweeps/small", "--json")) == survey
    assert same(kept, weights(stored / "sweeps/small/runs/prefix-sums-quick-width4-s0", "last"))
    ours, theirs = (
        json.loads((stored / path / "small.json").read_text()) for path in ("again", "results")
    )
    assert ours.keys() == theirs.keys()
    assert ours["figures"] == theirs["figures"]


def test_records_are_read(stored: Path, iterant_command: Any) -> None:
    table = iterant_command("reproduce", "fig-width")
    numbers = ["96.50 % at 151", "100.00 % at 132", "100.00 % at 120", "97.12 ± 1.88 % at 237"]
    assert [number for number in numbers if number not in table] == []
    assert (stored / "results/figures/fig-width.png").stat().st_size > 1000


def test_results_md_is_what_the_results_give(tmp_path: Path, iterant_command: Any) -> None:
    shutil.copytree(
        REPOSITORY / "results", tmp_path / "results", ignore=shutil.ignore_patterns("figures")
    )
    iterant_command("reproduce", "--all", "--write", "RESULTS.md")
    ours, page = (folder / "RESULTS.md" for folder in (tmp_path, REPOSITORY))
    assert ours.read_bytes() == page.read_bytes(), (
        "make it again: iterant reproduce --all --write RESULTS.md"
    )
