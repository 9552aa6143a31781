"""What people print is one line or a table, not pages of numbers."""

from __future__ import annotations

from pathlib import Path

import torch

import iterant
from iterant.analysis import Subject
from iterant.io import RunFolder
from iterant.solving import Answer, solutions
from iterant.tasks import Batch
from iterant.tasks.inputs import gather

SUMS = iterant.task("prefix-sums")


def test_one_line_says_what_an_object_is(tmp_path: Path) -> None:
    batch, net = SUMS.sample(3, size=8), iterant.load("prefix-sums")
    assert repr(batch) == "Batch(3 problems: inputs (3, 1, 8), targets (3, 8))"
    assert "answers not known" in repr(Batch(batch.inputs, batch.targets * 0 - 1))
    steps = torch.tensor([4, 9])
    answer = Answer(torch.zeros(2, 5, 5), steps, steps, ("settled", "budget"))
    assert repr(answer) == "Answer(2 answers of 5 × 5: 1 settled, after 4 to 9 iterations)"
    report = iterant.analyze([Subject(net, SUMS, "mine")], what=["noise"], size=8, count=2)
    assert repr(report) == "Report(noise of mine: 2 problems of prefix-sums, size 8)"
    run = RunFolder.create(tmp_path / "run", {})
    run.set_status("stopped", step=3, steps=1200)
    assert repr(run) == f"RunFolder('{tmp_path}/run': stopped, 3 of 1,200 steps)"
    (solution,) = solutions(net, SUMS, gather(SUMS, "101").problems, max_steps=3)
    assert "not settled, stopped by budget after 3" in repr(solution)
