"""The networks written by hand are as right as they say."""

from __future__ import annotations

from pathlib import Path

import torch

import iterant
from iterant.engine import State
from iterant.halting import Fixed
from web.written import written_mazes, written_sums


def test_the_maze_rule_solves_and_recovers(tmp_path: Path) -> None:
    net, task = iterant.load(written_mazes(tmp_path / "w")), iterant.task("mazes")
    batch = task.sample(10, size=21, seed=1)
    answer = iterant.solve(net, batch.inputs, max_steps=400, rule=Fixed(400))
    assert task.solved(answer.prediction, batch).all()
    start = iterant.last(iterant.think(net, batch.inputs, steps=0)).features
    noise = torch.randn(start.shape, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        after = iterant.last(
            iterant.think(net, batch.inputs, steps=400, state=State(start + noise))
        )
    assert task.solved(after.prediction, batch).all()


def test_the_sums_rule_knows_one_more_position_an_iteration(tmp_path: Path) -> None:
    net, task = iterant.load(written_sums(tmp_path / "w")), iterant.task("prefix-sums")
    batch = task.sample(10, size=40, seed=1)
    with torch.no_grad():
        for thought in iterant.think(net, batch.inputs, steps=40):
            known = torch.where(batch.targets == 0, 1.0, -1.0) * (torch.arange(40) < thought.step)
            assert torch.equal(thought.features[:, 0], known)
    answer = iterant.solve(net, batch.inputs, max_steps=40, rule=Fixed(40))
    assert task.solved(answer.prediction, batch).all()
