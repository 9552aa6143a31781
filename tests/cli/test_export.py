"""``iterant export``."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

import iterant
from iterant.cli.main import run
from iterant.io import save_weights
from iterant.nets import LocalRuleConfig, build


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as leaving:
        run(words)
    output, errors = capsys.readouterr()
    return leaving.value.code, output, errors


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    config = LocalRuleConfig(dims=1, channels=1)
    net = build(config.kind, config.described(), seed=1)
    assert isinstance(net, nn.Module)
    described = {"kind": config.kind, "config": config.described(), "task": "prefix-sums"}
    return save_weights(tmp_path / "w", described, net.state_dict())


def test_export_writes_folders_and_says_so(
    tmp_path: Path,
    weights: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output, errors = command(capsys, "export", "w", "--to", "onnx")
    assert (code, errors) == (0, "")
    assert "w-onnx: read.onnx, step.onnx, answer.onnx, network.json" in output
    assert "over 10 iterations at 7, 33, 150" in output
    assert (tmp_path / "w-onnx" / "step.onnx").is_file()
    code, output, errors = command(capsys, "export", str(weights), "--to", "hub", "--out", "h")
    assert (code, errors) == (0, "")
    assert 'iterant.load("h")' in output
    assert iterant.load("h") is not None


def test_wrong_words_are_one_line(
    tmp_path: Path, weights: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in (
        ((str(weights), "--to", "keras"), "keras"),
        ((str(weights),), "--to"),
        ((str(tmp_path / "none"), "--to", "onnx"), "does not exist"),
        ((str(weights), "--to", "hub", "--out", str(weights)), "is there already"),
    ):
        code, output, errors = command(capsys, "export", *words)
        assert code in (1, 2)
        assert (output, errors.count("\n")) == ("", 1)
        assert said in errors
