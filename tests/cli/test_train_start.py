"""``iterant train --start``: a new run that begins where another one stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from iterant.cli.main import run
from iterant.io import RunFolder

SMALL = ("prefix-sums", "--width", "4", "--head", "4", "--size", "8", "--count", "50", "--batch",
         "10", "--epochs", "1", "--iterations", "3", "--pool-slots", "16", "--pool-shortest", "1",
         "--watch-count", "4", "--device", "cpu")  # fmt: skip


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str]:
    with pytest.raises(SystemExit) as leaving:
        run(["train", *words])
    return leaving.value.code, capsys.readouterr().err


def test_a_branch(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(capsys, *SMALL, "--out", "runs/a") == (0, "")
    code, errors = command(capsys, *SMALL, "--out", "runs/b", "--start", "runs/a", "--rate", "1e-9")
    assert (code, errors) == (0, "")
    assert RunFolder.open("runs/b").config["start"].endswith("a")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("prefix-sums --start nowhere --seeds 0-1", "--start is for one run"),
        ("--resume nowhere --start elsewhere", "leave out --start"),
        ("prefix-sums --start nowhere", "run folder 'nowhere' does not exist"),
    ],
)
def test_a_mistake_is_one_line(
    words: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    code, errors = command(capsys, *words.split())
    assert code in (1, 2)
    assert errors.count("\n") == 1
    assert said in errors
    assert list(tmp_path.iterdir()) == []
