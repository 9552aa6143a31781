"""``iterant sample``, ``info``, ``runs``, ``import`` and ``analyze``; ``export``: tests/golden."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.image import imread

import iterant
from cli.files import authors_checkpoint, maze_run
from iterant import registry
from iterant.analysis import STUDIES
from iterant.cli.analyze import _STUDIES
from iterant.io import RunFolder, read_result
from iterant.nets import DeepThinking
from iterant.zoo import card


def test_samples_without_their_solution(command: Any) -> None:
    """With it: tests/golden."""
    task = registry.task("mazes")
    batch = task.sample(1, seed=3)
    description = task.describe(replace(batch, targets=torch.full_like(batch.targets, -1)))
    code, output, errors = command("sample", "mazes", "--seed", "3", "--no-solution")
    assert (code, errors) == (0, "")
    assert output.startswith(f"{description.title}\n{description.text}")


def test_samples_of_several_sizes_and_their_picture(
    monkeypatch: pytest.MonkeyPatch, command: Any
) -> None:
    monkeypatch.setattr("iterant.cli.solve._PICTURES", 3)
    words = ("mazes", "--size", "5", "7", "--count", "2", "--save", "m.png")
    code, output, errors = command("sample", *words)
    assert (code, errors) == (0, "iterant: m.png shows the first 3 of 4\n")
    walls = [len(line) for line in output.splitlines() if line and set(line) == {"#"}]
    assert walls == [7] * 4 + [9] * 4
    colours = {tuple(pixel) for pixel in np.round(imread("m.png") * 255).reshape(-1, 4)[:, :3]}
    assert {(0, 0, 0), (255, 255, 255), (0, 255, 0), (255, 0, 0)} <= colours


def test_info(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:  # of a clone that was never installed
        if package == "torch":
            return "2.11"
        raise metadata.PackageNotFoundError(package)

    assert iterant.__version__  # from now on an attribute, which is restored at the end
    monkeypatch.delitem(vars(iterant), "__version__")
    monkeypatch.setattr(metadata, "version", version)
    code, output, errors = command("info")
    assert (code, errors) == (0, "")
    rows = [line.split() for line in output.splitlines()]
    assert rows[1][:2] == ["iterant", "0+source"]
    assert ["chess", "not", "installed"] in rows
    assert ["mazes", f"{card('mazes')['parameters']:,}"] in rows
    assert ["mazes", "dt-recall", "783,504"] in rows


def test_runs(command: Any) -> None:
    assert command("runs", ".") == (0, "no runs under .\n", "")
    config = {"task": "mazes", "recipe": {"name": "best"}, "seed": 7}
    run = RunFolder.create("runs/m0", config)
    run.set_status("finished", step=2400, steps=2400, best={"accuracy": 0.99812})
    RunFolder.create("runs/broken", {})
    RunFolder.create("runs/plain", {"recipe": None})
    Path("runs/broken/status.json").write_text("{")
    code, output, errors = command("runs")
    assert (code, errors) == (0, "")
    _, broken, good, plain, reason = output.splitlines()
    assert plain.split()[:2] == ["runs/plain", "created"]
    for part in ("mazes", "best", " 7 ", "finished", "2,400 of 2,400", "accuracy 99.8 %", " s ago"):
        assert part in good
    assert "unreadable" in broken
    assert reason.startswith("runs/broken: ")
    assert "status.json" in reason


def test_import(command: Any) -> None:
    authors_checkpoint(Path("m"))
    words = ("import", "m", "--task", "mazes", "--out", "out")
    code, output, errors = command(*words)
    assert (code, errors) == (0, "")
    assert "deep-thinking, 2D, width 4, without recall, 4,284 parameters, after epoch 7" in output
    assert isinstance(iterant.load("out"), DeepThinking)
    assert "is there already" in command(*words)[2]


def test_analyze(tmp_path: Path, command: Any) -> None:
    run, out, failures = maze_run(tmp_path / "m0"), tmp_path / "out", tmp_path / "failures"
    code, output, errors = command(
        "analyze", run, run, "--what", "noise", "move-end", "convergence", "--size", 9,
        "--count", 4, "--max-steps", 9, "--after", 3, "--seed", 2, "--out", out,
        "--save-failures", failures,
    )  # fmt: skip
    assert (code, errors) == (0, "")
    assert "m0 (2)" in output
    assert (out / "index.html").exists()
    assert len(list(failures.glob("*.png"))) == 8
    result = read_result(out / "noise.json")
    assert (result["seed"], result["figures"]["count"]) == (2, 4)
    assert result["figures"]["models"]["m0"]["findings"][0]["after"] == 3


def test_analyze_skips_and_diverges(tmp_path: Path, command: Any) -> None:
    run = RunFolder.open(maze_run(tmp_path / "m0"))
    tensors: dict[str, torch.Tensor] = run.load("best")[0]
    run.save("best", {name: 1e9 * tensor for name, tensor in tensors.items()}, {})
    code, output, _ = command("analyze", "m0", "--size", "5", "--count", "2", "--max-steps", "4")
    assert code == 0
    assert "m0: bit-flip skipped: the task mazes has no method flip" in output
    assert "m0: swap skipped: it takes 51 iterations or more, got 4" in output
    assert "m0: noise: features of 2 of 2 problems became NaN or infinite" in output
    assert " nan" not in output


def test_help_names_every_study() -> None:
    assert _STUDIES.split(", ") == list(STUDIES)
