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


def test_batches_and_answers() -> None:
    batch = SUMS.sample(3, size=8)
    text = "Batch(3 problems: inputs (3, 1, 8), targets (3, 8)"
    assert repr(batch) == f"{text})"
    assert repr(Batch(batch.inputs, batch.targets * 0 - 1)) == f"{text}, answers not known)"
    steps = torch.tensor([4, 9])
    answer = Answer(torch.zeros(2, 5, 5), steps, steps, ("settled", "budget"))
    assert repr(answer) == "Answer(2 answers of 5 × 5: 1 settled, after 4 to 9 iterations)"


def test_curves_and_reports() -> None:
    net = iterant.load("prefix-sums")
    curve = iterant.evaluate(net, SUMS, size=1, count=1, max_steps=1)
    assert repr(curve).startswith("Curve(1 problem: ")
    subject = Subject(net, SUMS, label="mine")
    report = iterant.analyze([subject], what=["noise", "convergence"], size=8, count=2)
    assert repr(report) == "Report(noise, convergence of mine: 2 problems of prefix-sums, size 8)"
    assert "tensor" not in str(report)


def test_runs_and_solutions(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", {})
    run.set_status("stopped", step=3, steps=1200)
    assert repr(run) == f"RunFolder('{tmp_path}/run': stopped, 3 of 1,200 steps)"
    net, problems = iterant.load("prefix-sums"), gather(SUMS, "101").problems
    (solution,) = solutions(net, SUMS, problems, max_steps=3)
    assert repr(solution).startswith("Solution(")
    assert "not settled, stopped by budget after 3" in repr(solution)
