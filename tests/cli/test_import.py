"""``iterant import``."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import iterant
from iterant.cli.main import run
from iterant.nets import DeepThinking, PaperConfig


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as leaving:
        run(words)
    output, errors = capsys.readouterr()
    return leaving.value.code, output, errors


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A maze network without recall, as the authors would have saved it."""
    with torch.device("meta"):  # only the shapes are wanted
        net = DeepThinking(PaperConfig(dims=2, channels=3, width=4, recall=False))
    tensors = {
        name.replace("projection", "projection.0").replace("block", "recur_block.0"): torch.ones(
            weight.shape
        )
        for name, weight in net.state_dict().items()
    }
    torch.save({"net": {f"module.{n}": t for n, t in tensors.items()}, "epoch": 7}, tmp_path / "m")
    return tmp_path / "m"


def test_import_writes_a_folder_that_loads(
    tmp_path: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ("import", str(checkpoint), "--task", "mazes", "--out", str(out))
    code, output, errors = command(capsys, *words)
    assert (code, errors) == (0, "")
    assert "deep-thinking, 2D, width 4, without recall, 4,284 parameters, after epoch 7" in output
    assert f'iterant.load("{out}")' in output
    assert isinstance(iterant.load(out), DeepThinking)
    code, output, errors = command(capsys, *words)
    assert (code, output) == (2, "")
    assert "is there already" in errors


def test_wrong_words_and_files_are_one_line(
    tmp_path: Path, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("--out", str(tmp_path / "out"))
    (tmp_path / "text").write_text("hello\n")
    for words, wanted, said in (
        ((str(checkpoint), "--task", "chess", *out), 1, "holds a network for images of 3 channels"),
        ((str(checkpoint), "--task", "maze", *out), 2, "did you mean 'mazes'?"),
        ((str(checkpoint), *out), 2, "--task"),
        ((str(checkpoint), "--task", "mazes"), 2, "--out"),
        ((str(tmp_path / "text"), "--task", "mazes", *out), 1, "(it is of another kind); nothing"),
        ((str(tmp_path / "none.pth"), "--task", "mazes", *out), 1, "does not exist"),
    ):
        code, output, errors = command(capsys, "import", *words)
        assert (code, output) == (wanted, "")
        assert said in errors
        assert errors.count("\n") == 1
