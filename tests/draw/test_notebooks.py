"""What notebooks show of our objects."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import iterant
from iterant.analysis import Subject
from iterant.draw import png
from iterant.evaluation import Curve
from iterant.io import RunFolder
from iterant.nets import build
from iterant.solving import solutions
from iterant.tasks.inputs import gather

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("name", ["prefix-sums", "mazes", "chess"])
def test_description(name: str) -> None:
    task = iterant.task(name)
    shown = task.describe(task.sample(1, seed=1))
    assert shown._repr_png_().startswith(PNG)
    assert shown._repr_png_() == png(shown)


def test_curve() -> None:
    low, high = (
        Curve(steps=(1, 2, 3), solved=torch.tensor(solved), count=10, change=0.0)
        for solved in ([0, 1, 2], [0, 9, 10])
    )
    assert low._repr_png_().startswith(PNG)
    assert low._repr_png_() != high._repr_png_()


def test_report() -> None:
    task = iterant.task("prefix-sums")
    rule = build("local-rule", {"dims": 1, "channels": 1}, seed=0)
    subject = Subject(rule, task, label="<mine>")
    report = iterant.analyze(subject, what=["zeros"], size=8, count=2, max_steps=4)
    shown = report._repr_html_()
    assert "&lt;mine&gt;" in shown
    assert "<mine>" not in shown
    assert "data:image/png;base64," in shown
    assert "<html" not in shown  # a part of somebody else's page


def test_run(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "a&b", {"seed": 0})
    run.set_status("stopped", reason="time <over>", step=1200, steps=5000, best={"validation": 0.5})
    shown = run._repr_html_()
    assert "a&amp;b" in shown
    assert "stopped, time &lt;over&gt;, 1,200 of 5,000 updates, 50.0% on validation" in shown


def test_answers_and_solutions() -> None:
    task = iterant.task("mazes")
    net = iterant.load("mazes")
    answer = iterant.solve(net, task.sample(2, size=5, seed=1).inputs)
    assert "2 answers</b> of 16 × 16: 2 settled, after" in answer._repr_html_()
    problems = gather(iterant.task("prefix-sums"), "101").problems
    (solution,) = solutions(iterant.load("prefix-sums"), iterant.task("prefix-sums"), problems)
    assert "110; settled after" in solution._repr_html_()
    assert solution._repr_html_().endswith("iterations; right")
