"""A command that cannot write what it is to write says so before it does anything else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from iterant import registry
from iterant.cli.main import run as run_command
from iterant.training.data import TrainingSet
from iterant.zoo import loading

BELOW_A_FILE = "file/below"
COMMANDS = [
    ["evaluate", "mazes", "--json", f"{BELOW_A_FILE}/a.json"],
    ["evaluate", "mazes", "--json", "no name.json"],
    ["evaluate", "mazes", "--save", f"{BELOW_A_FILE}/a.png"],
    ["analyze", "mazes", "--out", BELOW_A_FILE],
    ["analyze", "mazes", "--save-failures", BELOW_A_FILE],
    ["bench", "train", "--out", BELOW_A_FILE],
    ["bench", "evaluate", "--out", BELOW_A_FILE],
    ["bench", "scale", "--out", BELOW_A_FILE],
    ["bench", "solve", "--out", BELOW_A_FILE],
    ["reproduce", "--all", "--write", f"{BELOW_A_FILE}/R.md"],
    ["reproduce", "--all", "--write", "."],
    ["sample", "mazes", "--save", f"{BELOW_A_FILE}/a.png"],
    ["solve", "mazes", "--save", f"{BELOW_A_FILE}/a.gif"],
    ["sweep", "study.toml", "--results", BELOW_A_FILE],
    ["train", "prefix-sums", "--out", BELOW_A_FILE],
    ["train", "prefix-sums", "--seeds", "0-1", "--out", BELOW_A_FILE],
    ["export", "prefix-sums", "--to", "hub", "--out", BELOW_A_FILE],
    ["import", "model.pth", "--task", "mazes", "--out", BELOW_A_FILE],
    ["data", "chess", "puzzles.csv", "--out", BELOW_A_FILE],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_places_are_looked_at_first(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("model.pth").write_bytes(b"nothing")
    Path("puzzles.csv").write_text("nothing")
    Path("study.toml").write_text('task = "prefix-sums"\nseeds = "0-1"\n[fields]\nepochs = 1\n')
    before = sorted(Path().iterdir())

    def work(*given: Any, **how: Any) -> None:
        raise AssertionError("work began")

    monkeypatch.setattr(TrainingSet, "of", work)
    if words[0] not in ("train", "sweep", "export", "import"):  # these need it to know the place
        monkeypatch.setattr(registry, "task", work)
        monkeypatch.setattr(loading, "load", work)
    with pytest.raises(SystemExit) as ended:
        run_command(words)
    said = capsys.readouterr().err
    assert said.startswith("iterant: error: ")
    assert said.count("\n") == 1
    assert re.search("is no folder|there is no folder|no name|it is a folder", said)
    assert ended.value.code == 2
    assert sorted(Path().iterdir()) == before
