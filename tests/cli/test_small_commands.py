"""``iterant info``, ``runs``, ``data`` and ``export``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch import nn

import iterant
from iterant.io import RunSummary, save_weights
from iterant.nets import LocalRuleConfig, build
from iterant.nets.factory import catalogue
from iterant.zoo import card


def test_info(command: Any) -> None:
    code, output, errors = command("info")
    assert (code, errors) == (0, "")
    words = [line.split() for line in output.splitlines()]
    first = {line[0] for line in words if line}
    assert {"iterant", "python", "torch", "numpy", "cpu", "chess"} <= first
    for count in ("3,123,600", "783,504", "12,056,976"):
        assert any(line[-1] == count and "dt-recall" in line for line in words if line)
    for name in ("mazes", "prefix-sums-paper"):
        assert [name, f"{card(name).parameters:,}"] in words
    assert sum(line[-1].replace(",", "").isdigit() for line in words if line) >= len(catalogue())


def test_info_without_a_package(monkeypatch: pytest.MonkeyPatch, command: Any) -> None:
    monkeypatch.setattr("iterant.cli.info.OPTIONAL", ("no-such-package",))
    _, output, _ = command("info")
    assert "no-such-package" in output
    assert "not installed" in output


def test_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Any) -> None:
    found = [
        RunSummary(
            Path("runs/m0"), "finished", None, "mazes", "best", 7, 2400, 2400, {"accuracy": 0.99812}
        ),
        RunSummary(Path("runs/broken"), "unreadable", "it is damaged", age_seconds=7300.0),
    ]
    monkeypatch.setattr("iterant.io.list_runs", lambda folder: found)
    code, output, errors = command("runs", str(tmp_path))
    assert (code, errors) == (0, "")
    good, broken = (
        next(line for line in output.splitlines() if str(run.path) in line) for run in found
    )
    for part in ("mazes", "best", " 7 ", "finished", "2,400 of 2,400", "accuracy 0.9981"):
        assert part in good
    assert "unreadable" in broken
    assert "2 h 2 min ago" in broken
    assert "runs/broken: it is damaged" in output


def test_runs_of_an_empty_folder(tmp_path: Path, command: Any) -> None:
    assert command("runs", str(tmp_path)) == (0, f"no runs under {tmp_path}\n", "")


ROWS = """PuzzleId,FEN,Moves,Rating,RatingDeviation,Popularity,NbPlays,Themes,GameUrl,OpeningTags
abcde,6k1/5ppp/8/8/8/8/5PPP/3R2K1 b - - 0 1,h7h6 d1d8,900,80,90,100,mateIn1 short,url,
wrong,not a board,a1a2 a2a3,900,80,90,100,short,url,
"""


def test_data_chess(tmp_path: Path, command: Any) -> None:
    source, out = tmp_path / "puzzles.csv", tmp_path / "packed"
    source.write_text(ROWS)
    code, output, errors = command("data", "chess", str(source), "--out", str(out))
    assert (code, errors) == (0, "")
    assert f"1 puzzle written to {out}" in output
    assert "2 rows read, 1 broken" in output
    assert "  line 3: " in output
    assert out.is_dir()
    code, output, errors = command("data", "chess", str(source), "--out", str(out))
    assert code == 2
    assert errors.count("\n") == 1


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    config = LocalRuleConfig(dims=1, channels=1)
    net = build(config.kind, config.described(), seed=1)
    assert isinstance(net, nn.Module)
    described = {"kind": config.kind, "config": config.described(), "task": "prefix-sums"}
    return save_weights(tmp_path / "w", described, net.state_dict())


def test_export(
    tmp_path: Path,
    weights: Path,
    command: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, output, errors = command("export", "w", "--to", "onnx")
    assert (code, errors) == (0, "")
    assert "w-onnx: read.onnx, step.onnx, answer.onnx, network.json" in output
    assert "over 10 iterations at 7, 33, 150" in output
    assert (tmp_path / "w-onnx" / "step.onnx").is_file()
    code, output, errors = command("export", str(weights), "--to", "hub", "--out", "h")
    assert (code, errors) == (0, "")
    assert 'iterant.load("h")' in output
    assert iterant.load("h") is not None
