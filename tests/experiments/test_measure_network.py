"""`scripts/measure-network` on a tiny network: its result, and the rows that it fills."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from exact_networks import exact_prefix_sums, first_right
from small_networks import Ticking

import iterant
from iterant.evaluation import evaluate_batch
from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.records import read_records
from iterant.io import read_result
from iterant.tasks.protocol import Batch

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "measure-network"
SUMS = iterant.task("prefix-sums")
measure = runpy.run_path(str(SCRIPT))["measure"]


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


@pytest.mark.parametrize("steps", [2, 6, 30])
def test_both_counts_of_the_exact_network_are_known(steps: int) -> None:
    batch = SUMS.sample(40, size=10, seed=1)
    figures = measure(exact_prefix_sums(), SUMS, batch, steps)
    solved_at = first_right(batch.targets)
    early, late = solved_at <= steps, solved_at <= 2 * steps
    assert figures["solved"] == {str(steps): int(early.sum()), str(2 * steps): int(late.sum())}
    assert figures["wrong"] == (~late).nonzero().flatten().tolist()[:20]
    assert (figures["problems"], figures["lost"]) == (40, 0)
    assert figures["thinking"] == "everywhere"
    low, high = figures["interval"]
    assert low <= int(early.sum()) / 40 <= high


def test_a_local_rule_gives_the_counts_of_evaluate_batch() -> None:
    mazes, net = iterant.task("mazes"), iterant.load("mazes-messages")
    batch = mazes.sample(60, size=9, seed=2)
    plain = evaluate_batch(net, mazes, batch, steps=36, at=[18, 36])
    assert 0 < plain.solved[0] < plain.solved[1] < 60, "otherwise this tests nothing"
    assert list(measure(net, mazes, batch, 18)["solved"].values()) == plain.solved.tolist()
    figures = measure(net, mazes, batch, 200)
    assert figures["problems in portions that rest"] == 60
    assert figures["last iteration in which anything changed"] < 100
    assert figures["computations a square"] < 10


def test_answers_lost_between_the_two_checks() -> None:
    # Features count up to these numbers; an answer is right where all are odd.
    counts = torch.tensor([[4, 4], [9, 9], [3, 3], [8, 1]])
    batch = Batch(counts.float()[:, None], torch.ones_like(counts))
    figures = measure(Ticking(), SUMS, batch, 3)
    assert figures["solved"] == {"3": 4, "6": 1}
    assert (figures["wrong"], figures["lost"]) == ([0, 1, 3], 3)
    assert figures["peak"] == {"iterations": 1, "accuracy": 1.0}
    assert figures["solved by iteration"] == {"1": 4, "2": 0, "3": 4, "4": 1, "5": 3, "6": 1}
