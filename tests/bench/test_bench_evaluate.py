"""Evaluation beside the plain way: the same curves, and what the measurement says and refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from thinkers import small_batch, small_net

import iterant
from iterant.bench import bench_evaluate, evaluation_name
from iterant.bench.evaluate import Subject, plain_curve
from iterant.bench.memory import growth
from iterant.cli.main import run
from iterant.errors import UnknownName, UsageError
from iterant.evaluation import judge
from iterant.io import read_result, save_weights
from iterant.nets import DeepThinking, FeedForward, PaperConfig, build

PAPER = [(task, net) for task in ("prefix-sums", "mazes", "chess")
         for net in ("dt", "dt-recall", "ff", "ff-recall")]  # fmt: skip


@pytest.mark.parametrize(("problem", "variant"), PAPER)
def test_both_ways_give_one_curve(problem: str, variant: str) -> None:
    net, batch, task = small_net(problem, variant), small_batch(problem), iterant.task(problem)
    assert isinstance(net, DeepThinking | FeedForward)
    first = judge(net, task, batch, steps=1)
    with torch.no_grad():
        wanted = iterant.last(iterant.think(net, batch.inputs, steps=6)).prediction
    batch = type(batch)(batch.inputs, wanted, batch.extras)  # so that some are right
    curve = judge(net, task, batch, steps=12)
    assert int(curve.solved[5]) == len(batch)
    assert plain_curve(net, task, batch, 12).tolist() == curve.solved.tolist()
    assert first.steps == (1,)


def trained(folder: Path) -> Path:
    """Weights in a folder, as good as trained for these tests."""
    config = PaperConfig(dims=1, channels=1, width=4, head=(4,), recall_relu=True)
    net: Any = build(config.kind, config, seed=1)
    described = {"kind": config.kind, "config": config.described(), "task": "prefix-sums"}
    return save_weights(folder, described, net.state_dict())


SMALL: dict[str, Any] = {"size": 8, "count": 4, "steps": 6, "rounds": 2, "device": "cpu"}


def test_what_is_reported() -> None:
    seen: list[tuple[int, int]] = []
    figures = bench_evaluate(
        "prefix-sums", width=4, memory=False, **SMALL, progress=lambda *told: seen.append(told)
    )
    assert seen == [(1, 2), (2, 2)]
    assert evaluation_name(figures) == "bench-evaluate-prefix-sums-cpu-w4"
    assert figures["problems counted differently"] == 0
    assert figures["inputs"] == [4, 1, 8]
    assert figures["memory"] is None
    assert "with halting" not in figures
    assert 0 < figures["ratio"]["lowest"] <= figures["ratio"]["median"]
    for side in ("ours", "plain"):
        assert figures["iterations per second"][side] > 0
        assert figures["seconds to the curve"][side] > 0


def test_a_trained_network_halts_too(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    figures = bench_evaluate(
        "prefix-sums", run=trained(tmp_path / "net"), patience=1, memory=False, **SMALL,
        progress=lambda *told: seen.append(told),
    )  # fmt: skip
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert evaluation_name(figures).endswith("w4-trained")
    assert 2 <= figures["with halting"]["mean iterations"] <= 6
    assert figures["with halting"]["ratio"]["median"] > 0


def test_memory_of_all_outputs_kept() -> None:
    subject = Subject("prefix-sums", 2048, 64, 60, 0, None, "dt", 2)
    peaks = {
        side: growth("iterant.bench.evaluate", {**vars(subject), "side": side})
        for side in ("ours", "plain")
    }
    kept = 4 * 64 * 2048 * 2 * 60
    assert peaks["plain"] > kept
    assert peaks["plain"] - peaks["ours"] > kept / 2, "ours keeps one iteration only"


def test_wrong_values_are_refused(tmp_path: Path) -> None:
    config = {"dims": 1, "channels": 1, "width": 2, "hidden": 2}
    rule: Any = build("local-rule", config)
    described = {"kind": "local-rule", "config": config}
    local = save_weights(tmp_path / "local", described, rule.state_dict())
    for words, error, said in (
        ({"steps": 0}, UsageError, "at least 1 iteration, got 0"),
        ({"rounds": 0}, UsageError, "at least 1 round"),
        ({"net": "ff", "steps": 31}, UsageError, "ask for at most 30"),
        ({"task": "maze"}, UnknownName, "did you mean 'mazes'?"),
        ({"net": "dt-recal"}, UnknownName, "did you mean 'dt-recall'?"),
        ({"run": local}, UsageError, "no plain way for a LocalRule"),
        ({"width": 0}, UsageError, "width must be at least 1, got 0"),
    ):
        given: dict[str, Any] = {"task": "prefix-sums", "width": 4, "memory": False, **SMALL}
        with pytest.raises(error, match=re.escape(said)):
            bench_evaluate(**{**given, **words})


def test_the_command_prints_a_table_and_writes_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peaks = {"ours": 2 << 20, "plain": 5 << 20}
    monkeypatch.setattr(
        "iterant.bench.evaluate.growth", lambda module, request: peaks[request["side"]]
    )
    words = "bench evaluate --size 8 --count 4 --steps 5 --rounds 1 --device cpu"
    folder = str(trained(tmp_path / "net"))
    with pytest.raises(SystemExit) as leaving:
        run([*words.split(), "--run", folder, "--out", str(tmp_path)])
    output, errors = capsys.readouterr()
    assert (leaving.value.code, errors) == (0, "")
    path = tmp_path / "bench-evaluate-prefix-sums-cpu-w4-trained.json"
    figures = read_result(path)["figures"]
    assert f"written to {path}" in output
    rows = {line.split()[0].strip(","): line for line in output.splitlines() if line.split()}
    assert f"{figures['iterations per second']['plain']:,.4g}" in rows["plain"]
    assert f"{figures['ratio']['median']:.2f} times" in rows["ratio"]
    assert "5 MiB" in rows["plain"]
    assert "2.50 times less" in rows["ratio"]
    assert "ours, halting" in output
