"""``iterant bench``."""

from __future__ import annotations

from pathlib import Path

import pytest

from iterant.cli.main import run
from iterant.io import read_result


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as leaving:
        run(words)
    output, errors = capsys.readouterr()
    return leaving.value.code, output, errors


def test_bench_train_prints_a_table_and_writes_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peaks = {"ours": 2 << 20, "plain": 5 << 20}
    monkeypatch.setattr("iterant.bench.train.peak_on_cpu", lambda request: peaks[request.side])
    words = "bench train --task prefix-sums --width 4 --batch 2 --steps 1 --rounds 1 --device cpu"
    code, output, errors = command(capsys, *words.split(), "--out", str(tmp_path))
    assert (code, errors) == (0, "")
    path = tmp_path / "bench-train-prefix-sums-cpu-w4-b2.json"
    figures = read_result(path)["figures"]
    assert f"written to {path}" in output
    rows = {line.split()[0]: line for line in output.splitlines() if line.split()}
    assert f"{figures['steps per second']['ours']:.4g}" in rows["ours"]
    assert f"{figures['steps per second']['plain']:.4g}" in rows["plain"]
    assert f"{figures['ratio']['median']:.2f} times" in rows["ratio"]
    assert "2 MiB" in rows["ours"]
    assert "5 MiB" in rows["plain"]
    assert "2.50 times less" in rows["ratio"]
    assert figures["memory"]["plain"] == 5 << 20


def test_wrong_words_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (("trian",), 'Did you mean "train"?'),
        (("train", "--task", "maze"), "did you mean 'mazes'?"),
        (("train", "--recipe", "quick", "--no-memory"), "choose --recipe paper"),
        (("train", "--steps", "none"), "--steps"),
    ):
        code, output, errors = command(capsys, "bench", *words)
        assert (code, output) == (2, "")
        assert said in errors
        assert errors.count("\n") == 1
