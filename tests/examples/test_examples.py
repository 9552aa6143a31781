"""The worked examples: short, and they do what they say on small settings."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

import iterant
from iterant import registry
from iterant.cli.main import run as run_command
from iterant.tasks import Task

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))
TINY: dict[str, Any] = {
    "epochs": 1, "count": 60, "batch_size": 10, "iterations": 4, "pool_slots": 20,
    "pool_shortest": 2, "pool_longest": None, "monitor_every": 0,
}  # fmt: skip


@pytest.fixture(autouse=True)
def beside_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if Python were started in the folder of examples; runs go elsewhere."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"train": TINY, "evaluate": {"count": 3, "max_steps": 4}, "solve": {"max_steps": 4},
             "analyze": {"count": 2, "max_steps": 8}}  # fmt: skip
    for name, changes in small.items():
        function = getattr(iterant, name)
        monkeypatch.setattr(
            iterant, name, lambda *args, f=function, c=changes, **how: f(*args, **{**how, **c})
        )
    runpy.run_path(str(path), run_name="__main__")
    assert list(Path("runs").iterdir())


def test_the_flood_is_the_region_of_the_spring() -> None:
    task: Task = importlib.import_module("flood_fill").FloodFill()
    batch = task.sample(20, size=12, seed=4)
    for (ground, spring), wet in zip(batch.inputs.numpy(), batch.targets.numpy(), strict=True):
        regions, _ = ndimage.label(ground)
        assert np.array_equal(wet, regions == regions[spring > 0])
    assert 0.1 < batch.targets.float().mean() < 0.9


@pytest.mark.parametrize(
    ("task", "net"),
    [
        ("prefix-sums", "gated_network:Gated"),
        ("flood_fill:FloodFill", "local-rule"),
        ("running_sum:RunningSum", "local-rule"),
    ],
)
def test_user_defined_tasks_and_networks_on_the_command_line(task: str, net: str) -> None:
    small = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()
             if value is not None]  # fmt: skip
    for line in (
        f"train {task} --net {net} --out runs/f {' '.join(small)}",
        "evaluate runs/f --size 12 --count 3 --max-steps 4 --trust-code",
        "analyze runs/f --what zeros --size 9 --count 2 --max-steps 4 --trust-code",
        f"solve {task} --size 9 --net runs/f --save thought.json --trust-code",
        f"solve {task} --size 9 --net runs/f --save thought.gif --trust-code",
        f"sample {task} --size 9 --save problem.png",
        "train --resume runs/f --trust-code",
    ):
        registry._allowed.clear()  # a command is a process
        with pytest.raises(SystemExit) as end:
            run_command(line.split())
        assert end.value.code == 0, line


def test_three_classes_are_learned_on_short_strings_and_right_on_long_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluate, curves = iterant.evaluate, []

    def smaller(net: Any, task: Task, **how: Any) -> Any:
        curves.append(evaluate(net, task, size=64, count=20, max_steps=100))
        return curves[0]

    monkeypatch.setattr(iterant, "evaluate", smaller)
    runpy.run_path(str(EXAMPLES / "running_sum.py"), run_name="__main__")
    assert curves[0].end >= 0.9


def test_user_defined_task_and_network_are_found_again() -> None:
    """From objects in Python, a run that needs nothing but its folder."""
    fill = importlib.import_module("flood_fill").FloodFill()
    gated = importlib.import_module("gated_network").Gated
    run = iterant.train(fill, net=gated, out="runs/both", **TINY)
    assert (run.config["task"], run.config["net"]["kind"]) == (
        "flood_fill:FloodFill",
        "gated_network:Gated",
    )
    report = iterant.analyze("runs/both", what="zeros", size=9, count=2, max_steps=4)
    assert report.table()[1][0] == "both"
    assert iterant.train(resume="runs/both").state == "finished"
    assert isinstance(iterant.load("runs/both"), gated)
