"""``iterant analyze``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from thinkers import small_net

from iterant.analysis import STUDIES
from iterant.cli.analyze import _STUDIES
from iterant.io import RunFolder, read_result


@pytest.fixture
def maze_run(tmp_path: Path) -> Path:
    net: Any = small_net("mazes", "dt-recall")
    recipe = {"net": "dt-recall", "alpha": 0.5, "iterations": 30}
    config = {"task": "mazes", "net": net.described(), "recipe": recipe}
    folder = RunFolder.create(tmp_path / "m0", config)
    tensors: dict[str, torch.Tensor] = net.state_dict()
    folder.save("best", {f"net.{name}": tensor.float() for name, tensor in tensors.items()}, {})
    return folder.path


def test_files_pictures_and_a_page(maze_run: Path, tmp_path: Path, command: Any) -> None:
    out, failures = tmp_path / "out", tmp_path / "failures"
    code, output, errors = command(
        "analyze", maze_run, maze_run, "--what", "noise", "move-end", "convergence", "--size", 9,
        "--count", 4, "--max-steps", 9, "--after", 3, "--seed", 2, "--out", out,
        "--save-failures", failures,
    )  # fmt: skip
    assert (code, errors) == (0, "")
    assert "m0 (2)" in output
    assert f"written to {out / 'index.html'}" in output
    assert "8 failures drawn" in output
    assert len(list(failures.glob("*.png"))) == 8
    assert {path.stem for path in out.glob("*.json")} == {
        "noise", "move-end", "convergence", "near-misses",
    }  # fmt: skip
    result = read_result(out / "noise.json")
    assert (result["seed"], result["figures"]["count"]) == (2, 4)
    assert result["figures"]["models"]["m0"]["findings"][0]["after"] == 3


def test_skipped_studies(maze_run: Path, tmp_path: Path, command: Any) -> None:
    words = ("--size", "5", "--count", "2", "--max-steps", "4", "--out", tmp_path / "out")
    code, output, _ = command("analyze", maze_run, *words)
    assert code == 0
    assert "m0: bit-flip skipped: mazes offers no flip()" in output
    assert "m0: swap skipped: an intervention after iteration 50 leaves nothing" in output


def test_networks_that_diverge(maze_run: Path, tmp_path: Path, command: Any) -> None:
    folder = RunFolder.open(maze_run)
    tensors, _ = folder.load("best")
    folder.save("best", {name: 1e9 * tensor for name, tensor in tensors.items()}, {})
    words = ("--what", "noise", "convergence", "--size", "5", "--count", "2", "--max-steps", "9",
             "--out", tmp_path / "out")  # fmt: skip
    code, output, _ = command("analyze", maze_run, *words)
    assert code == 0
    assert "m0: noise: features of 2 of 2 problems became NaN or infinite; these count as" in output
    assert "nan" not in output


def test_help_names_every_study() -> None:
    assert _STUDIES.split(", ") == list(STUDIES)
