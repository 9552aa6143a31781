"""`scripts/measure-network` on a tiny network: its result, and the rows that it fills."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

import iterant
from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.records import read_records
from iterant.io import read_result

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "measure-network"


def test_a_run_of_the_papers_network_fills_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, results = tmp_path / "mazes-recall-a0.01-s3", tmp_path / "results"
    small: dict[str, Any] = {"width": 4, "head": (4,), "iterations": 2, "count": 40, "epochs": 1}
    small |= {"batch_size": 16, "monitor_every": 0}
    iterant.train("mazes", recipe="paper", seed=3, out=run, device="cpu", **small)
    words = [str(run), "mazes", "201:1:2", "801:1:1", "--precision", "bf16",
             "--model", "mazes-recall-a0.01", "--results", str(results)]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["measure-network", *words])
    monkeypatch.setattr(type(iterant.registry.task("mazes")), "sample", small_mazes())
    runpy.run_path(str(SCRIPT), run_name="__main__")
    result = read_result(results / "measure-mazes-mazes-recall-a0.01-s3.json")
    assert result["seed"] == 3, "from the configuration of the run"
    assert result["figures"]["test precision"] == "bf16"
    assert result["figures"]["precision"] == "fp32", "of training, by the run's recipe"
    (record,) = read_records(results).all
    assert (record.model, record.seed) == ("mazes-recall-a0.01", 3)
    assert [count.name for count in record.counts] == ["201", "801"]
    theirs, _ = EXPERIMENTS["mazes-801"].make_table(read_records(results))
    assert theirs["all seeds"] == "0.00 % after 1, 0.00 % after 2"


def small_mazes() -> Any:
    """Mazes of 9×9 instead of any size: 801×801 would take a minute to generate."""
    plain = type(iterant.registry.task("mazes")).sample

    def sample(self: Any, count: int, *, size: Any = None, seed: int = 0) -> Any:
        return plain(self, count, size=9, seed=seed)

    return sample
