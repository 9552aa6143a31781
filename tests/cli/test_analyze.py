"""``iterant analyze``: from run folders to a page, or one line that says why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from thinkers import small_net

from iterant.analysis import STUDIES
from iterant.cli.analyze import _STUDIES
from iterant.cli.main import run
from iterant.io import RunFolder, read_result


def analyze(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[object, str, str]:
    """Exit code, output and errors of ``iterant analyze …``."""
    with pytest.raises(SystemExit) as leaving:
        run(["analyze", *map(str, words)])
    output, errors = capsys.readouterr()
    return leaving.value.code, output, errors


@pytest.fixture
def maze_run(tmp_path: Path) -> Path:
    net: Any = small_net("mazes", "dt-recall")
    recipe = {"net": "dt-recall", "alpha": 0.5, "iterations": 30}
    config = {"task": "mazes", "net": net.described(), "recipe": recipe}
    folder = RunFolder.create(tmp_path / "m0", config)
    tensors: dict[str, torch.Tensor] = net.state_dict()
    folder.save("best", {f"net.{name}": tensor.float() for name, tensor in tensors.items()}, {})
    return folder.path


def test_runs_become_files_pictures_and_a_page(
    maze_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, failures = tmp_path / "out", tmp_path / "failures"
    code, output, errors = analyze(
        capsys, maze_run, maze_run, "--what", "noise", "move-end", "convergence", "--size", 9,
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


def test_what_is_skipped_is_said(
    maze_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--size", "5", "--count", "2", "--max-steps", "4", "--out", tmp_path / "out")
    code, output, _ = analyze(capsys, maze_run, *words)
    assert code == 0
    assert "m0: bit-flip skipped: mazes offers no flip()" in output
    assert "m0: swap skipped: an intervention after iteration 50 leaves nothing" in output


def test_features_that_explode_are_said(
    maze_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder.open(maze_run)
    tensors, _ = folder.load("best")
    folder.save("best", {name: 1e9 * tensor for name, tensor in tensors.items()}, {})
    words = ("--what", "noise", "convergence", "--size", "5", "--count", "2", "--max-steps", "9",
             "--out", tmp_path / "out")  # fmt: skip
    code, output, _ = analyze(capsys, maze_run, *words)
    assert code == 0
    assert "m0: noise: features of 2 of 2 problems became NaN or infinite; these count as" in output
    assert "nan" not in output


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--what", "nosie"], 2, "did you mean 'noise'"),
        (["--what", "swap", "--max-steps", "50"], 2, "leaves nothing to see"),
        (["--what", "swap", "--after", "2", "--count", "1"], 2, "batch of 1"),
        (["--what", "noise", "--max-steps", "0"], 2, "1 or more, got 0"),
        (["--what", "noise", "--size", "8"], 2, "try 9"),
        (["--what", "noise", "--count", "-3"], 2, "got -3"),
        (["--what", "bit-flip"], 2, "offers no flip()"),
        (["--what", "noise", "--tolerance", "-1"], 2, "above 0, got -1"),
        (["--task", "maze"], 2, "did you mean 'mazes'"),
        (["--device", "abacus"], 2, "unknown device"),
    ],
)
def test_a_wrong_value_is_one_line(
    words: list[str],
    code: int,
    said: str,
    maze_run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    left, output, errors = analyze(capsys, maze_run, *words, "--out", tmp_path / "out")
    assert (left, output) == (code, "")
    assert errors.startswith("iterant: error: ")
    assert errors.count("\n") == 1
    assert said in errors


def test_no_run_and_no_such_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, errors = analyze(capsys)
    assert (code, "which runs?" in errors) == (2, True)
    code, _, errors = analyze(capsys, tmp_path / "nothing", "--out", tmp_path / "out")
    assert (code, errors.count("\n")) == (1, 1)
    assert "does not exist" in errors


def test_the_help_names_every_study() -> None:
    assert _STUDIES.split(", ") == list(STUDIES)
