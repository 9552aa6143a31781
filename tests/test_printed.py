"""What people print is a line or a table that they can read, not pages of numbers."""

from __future__ import annotations

from pathlib import Path

import torch

import iterant
from iterant.analysis import Subject
from iterant.io import RunFolder
from iterant.solving import Answer, solutions
from iterant.tasks import Batch
from iterant.tasks.inputs import gather


def test_problems_are_one_line() -> None:
    batch = iterant.task("prefix-sums").sample(3, size=8)
    assert repr(batch) == "Batch(3 problems: inputs (3, 1, 8), targets (3, 8))"
    unknown = Batch(batch.inputs, batch.targets * 0 - 1)
    assert repr(unknown).endswith("targets (3, 8), answers not known)")


def test_answers_are_one_line() -> None:
    steps = torch.tensor([4, 9])
    answer = Answer(torch.zeros(2, 5, 5), steps, steps, ("settled", "budget"))
    assert repr(answer) == "Answer(2 answers of 5 × 5: 1 settled, after 4 to 9 iterations)"


def test_a_curve_and_a_report_say_what_was_found() -> None:
    net, task = iterant.load("prefix-sums"), iterant.task("prefix-sums")
    curve = iterant.evaluate(net, task, size=8, count=4, max_steps=60)
    assert repr(curve).startswith("Curve(4 problems: 100.0% solved after ")
    subject = Subject(net, task, label="mine")
    report = iterant.analyze([subject], what=["noise", "convergence"], size=8, count=2)
    assert repr(report) == ("Report(noise, convergence of mine: 2 problems of prefix-sums, size 8)")
    heads = [line for line in str(report).splitlines() if line.startswith("model")]
    assert heads[0].split() == ["model", "noise"]
    assert len(heads) > 1
    assert "tensor" not in str(report)


def test_one_of_anything_is_one() -> None:
    net, task = iterant.load("prefix-sums"), iterant.task("prefix-sums")
    batch = task.sample(1, size=1)
    assert repr(batch).startswith("Batch(1 problem: ")
    answer = iterant.solve(net, batch.inputs, max_steps=1)
    assert repr(answer) == "Answer(1 answer of 1: 0 settled, after 1 iteration)"
    assert task.describe(batch).caption == "1 bit"
    curve = iterant.evaluate(net, task, size=1, count=1, max_steps=1)
    assert repr(curve).startswith("Curve(1 problem: ")
    assert "after 1 iteration, " in repr(curve)


def test_a_run_and_a_solution_are_one_line(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", {})
    run.set_status("stopped", step=3, steps=1200)
    assert repr(run) == f"RunFolder('{tmp_path}/run': stopped, 3 of 1,200 updates)"
    task = iterant.task("prefix-sums")
    problems = gather(task, "101").problems
    (solution,) = solutions(iterant.load("prefix-sums"), task, problems)
    told = f"110; settled after {solution.steps} iterations; right"
    assert repr(solution) == f"Solution({problems[0].name or 'problem'}: {told})"


def test_a_solution_says_why_it_stopped() -> None:
    sums, mazes = iterant.task("prefix-sums"), iterant.task("mazes")
    net = iterant.load("prefix-sums")
    (found,) = solutions(net, sums, gather(sums, "101").problems, max_steps=3)
    assert "not settled, stopped by budget after 3 iterations" in repr(found)
    (none,) = solutions(iterant.load("mazes"), mazes, gather(mazes, "S#G").problems)
    assert repr(none) == "Solution(problem: no way leads from start to end; not tried)"
