"""Filling rows without curves: networks that nobody has a run of are trained, then all are tested.

    >>> wanted = uncounted(EXPERIMENTS["mazes-201"], counts)
    >>> count(wanted, records, results="results", runs="runs/campaign", device="cuda", train=...)

A run folder that a campaign left is not trained again. Networks of the paper think in half
precision on a GPU; local rules think only where something changes, on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from iterant import names
from iterant.evaluation import judge_far
from iterant.experiments.campaign import EXACT, is_over
from iterant.experiments.counts import Counts
from iterant.experiments.layout import Counted, Experiment
from iterant.experiments.measuring import SEED, Say
from iterant.experiments.models import MODELS, Unit, usual_seconds
from iterant.experiments.records import Records
from iterant.nets import parameter_count
from iterant.nets.local_rule import LocalRule
from iterant.nets.protocol import Net
from iterant.runs import RunFolder, write_result
from iterant.runs.files import PathLike
from iterant.training.stopping import Clock
from iterant.zoo.loading import load

AGAIN = "recorded-already.jsonl"
"""Where records go of networks that are trained again because their weights are gone."""

Train = Callable[[Sequence[Unit], Path], object]
"""Trains units, and leaves their records there."""


@dataclass(frozen=True)
class Wanted:
    """A test of one network."""

    row: Counted
    unit: Unit


def uncounted(experiment: Experiment, counts: Counts, seeds: int | None = None) -> list[Wanted]:
    """What there is no result of: a seed of every row, then the next."""
    rows = [row for row in experiment.counted if row.seeds]
    there = {row: {one.seed for one in counts.of(row.model, row.size)} for row in rows}
    most = max((seeds or row.seeds for row in rows), default=0)
    return [
        Wanted(row, Unit(row.model, seed))
        for seed in range(most)
        for row in rows
        if seed < (seeds or row.seeds) and seed not in there[row]
    ]


def estimate_counts(wanted: Sequence[Wanted], runs: PathLike) -> float:
    """Seconds on an H200, one after the other."""
    training = {one.unit for one in wanted if run_of(one.unit, runs) is None}
    return sum(usual_seconds(MODELS[unit.model]) for unit in training) + sum(
        one.row.takes for one in wanted
    )


def run_of(unit: Unit, runs: PathLike) -> RunFolder | None:
    """Its run folder, if more training could not change what is tested."""
    for name in (f"{unit.name}-{EXACT}", unit.name):
        if (Path(runs) / name / "config.json").exists():
            run = RunFolder.open(Path(runs) / name)
            if is_over(run):
                return run
    return None


def count(
    wanted: Sequence[Wanted],
    records: Records,
    *,
    results: PathLike,
    runs: PathLike,
    device: str,
    train: Train,
    limit: float | None = None,
    say: Say = print,
) -> list[Wanted]:
    """Train what has no run, test, write a result each; returns those that were left over."""
    clock = Clock(limit)
    untrained = dict.fromkeys(one.unit for one in wanted if run_of(one.unit, runs) is None)
    for known, out in ((False, Path(results) / "runs"), (True, Path(runs) / AGAIN)):
        units = [unit for unit in untrained if (unit.name in records.names) == known]
        if units:
            train(units, out)
    left = []
    for one in wanted:
        run = run_of(one.unit, runs)
        if run is None or clock.over:
            left.append(one)
            continue
        say(f"{one.unit.name}: {one.row.problems} problems of size {one.row.size}, after "
            f"{one.row.iterations:,} iterations and twice as many")  # fmt: skip
        say(f"{one.unit.name}: written to {_tested(one, run, results, device)}")
    return left


def _tested(one: Wanted, run: RunFolder, results: PathLike, device: str) -> Path:
    """Test one network and write what it solves."""
    row, word = one.row, MODELS[one.unit.model].task
    task, (net, precision) = names.task(word), _laid_out(load(run.path), device)
    batch = task.sample(row.problems, size=int(row.size), seed=SEED)
    far = judge_far(net, task, batch, row.iterations)
    figures = {
        "network": one.unit.name, "model": row.model, "parameters": parameter_count(net),
        "precision": precision, "filter": "none",
        "halting": "a fixed number of iterations, then twice as many",
        f"size {row.size}": {**far.figures(), "test seed": SEED},
    }  # fmt: skip
    name = f"measure-{word}-{one.unit.name}-{row.size}"
    return write_result(name, figures, seed=one.unit.seed, folder=results)


def _laid_out(net: Net, device: str) -> tuple[Net, str]:
    """The network where it thinks fastest, and its precision."""
    whole: Any = net
    if isinstance(net, LocalRule):
        return net, EXACT
    if not device.startswith("cuda"):
        return whole.to(device), EXACT
    return whole.to(device, torch.float16), "fp16"
