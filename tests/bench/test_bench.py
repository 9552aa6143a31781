"""What the benchmarks report, write and refuse. No test asserts a time."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from iterant.bench.benchmarks import Dense, bench_evaluate, bench_solve, bench_train, compare, ratio
from iterant.bench.options import EvaluateOptions, SolveOptions, TrainOptions
from iterant.cli.main import run
from iterant.errors import IterantError, RecipeError, UnknownName, UsageError
from iterant.io import read_result, save_weights
from iterant.nets import PaperConfig, build
from iterant.nets.fast import accelerate
from iterant.tasks.mazes.task import Mazes
from iterant.zoo import load

TINY = TrainOptions(width=4, batch=2, steps=1, rounds=1, device="cpu")
SMALL = EvaluateOptions(width=4, size="8", count=4, steps=6, rounds=2, device="cpu")


def test_sides_take_turns_and_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU, before the clock is read at the start and at the end of a side."""
    events, seen = list[str](), list[tuple[int, int]]()

    def clock() -> int:
        events.append("clock")
        return len(events)

    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: events.append("wait"))
    monkeypatch.setattr(time, "perf_counter", clock)
    times = compare(
        {"ours": lambda: events.append("ours"), "plain": lambda: events.append("plain")},
        rounds=2,
        device=torch.device("cuda"),
        progress=lambda done, total: seen.append((done, total)),
    )
    sides = [["wait", "clock", side, "wait", "clock"] for side in ("ours", "plain")]
    assert events == (sides[0] + sides[1]) * 2
    assert times == {"ours": [3, 3], "plain": [3, 3]}
    assert seen == [(1, 2), (2, 2)]


def test_the_ratio_is_taken_within_a_round() -> None:
    """So a machine that becomes slower does not change it."""
    assert ratio([4, 80, 3], [2, 20, 1]) == {"median": 3, "lowest": 2, "highest": 4}


def test_training_figures() -> None:
    name, figures = bench_train(replace(TINY, task="mazes", net="dt", precision="bf16", rounds=2))
    assert name == "bench-train-mazes-cpu-dt-w4-b2-bf16"
    assert figures["memory"] is None
    assert figures["precision"] == {"ours": "bf16", "plain": "fp32"}
    assert 0 < figures["ratio"]["lowest"] <= figures["ratio"]["median"]
    assert all(len(seconds) == 2 for seconds in figures["seconds a step"].values())
    assert figures["inputs"][0] == 2


def trained(folder: Path) -> str:
    config = PaperConfig(dims=1, channels=1, width=4, head=(4,), recall_relu=True)
    net: Any = build(config.kind, config, seed=1)
    described = {"kind": config.kind, "config": config.described(), "task": "prefix-sums"}
    return str(save_weights(folder, described, net.state_dict()))


@pytest.mark.parametrize("has_run", [False, True])
def test_evaluation_figures(has_run: bool, tmp_path: Path) -> None:
    path = trained(tmp_path / "net") if has_run else None
    name, figures = bench_evaluate(replace(SMALL, run=path))
    assert name == f"bench-evaluate-prefix-sums-cpu-w4{'-trained' if has_run else ''}"
    assert (figures["problems counted differently"], figures["inputs"]) == (0, [4, 1, 8])
    assert 0 < figures["ratio"]["lowest"] <= figures["ratio"]["median"]
    assert set(figures["iterations per second"]) == {"ours", "plain"}
    assert ("with halting" in figures) == has_run
    if has_run:
        assert figures["with halting"]["mean iterations"] == 6


def test_the_dense_network_gives_the_same_answers() -> None:
    name, figures = bench_solve(SolveOptions(size="9", count=3, rounds=2, device="cpu"))
    assert name == "bench-solve-mazes-cpu-3-of-9"
    assert figures["answers that differ from the dense network's"] == 0
    assert figures["largest difference of iterations"] == 0
    assert figures["settled"] == figures["solved"] == figures["problems"] == 3
    assert set(figures["seconds"]) == {"solve", "dense"}
    dense = Dense(load("mazes"))
    assert accelerate(dense, Mazes().sample(1, size=5).inputs) is dense


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_memory_on_a_gpu() -> None:
    _, figures = bench_train(TrainOptions(width=16, batch=4, steps=2, rounds=2))
    assert (figures["device"], figures["precision"]["ours"]) == ("cuda", "bf16")
    assert min(figures["memory"]["ours"], figures["memory"]["plain"]) > 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (replace(TINY, recipe="quick"), UsageError, "choose recipe='paper'"),
        (replace(TINY, task="maze"), UnknownName, "did you mean 'mazes'?"),
        (replace(TINY, width=0), RecipeError, "width"),
        (replace(SMALL, net="ff", steps=31), UsageError, "ask for at most 30"),
        (replace(SMALL, net="dt-recal"), UnknownName, "did you mean 'dt-recall'?"),
        (replace(SMALL, run="prefix-sums"), UsageError, "no plain way for a LocalRule"),
    ],
)
def test_wrong_values(options: Any, error: type[IterantError], message: str) -> None:
    bench: Any = bench_train if isinstance(options, TrainOptions) else bench_evaluate
    with pytest.raises(error, match=re.escape(message)):
        bench(options)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("train --width 4 --batch 2 --steps 1", "bench-train-prefix-sums-cpu-w4-b2"),
        ("evaluate --size 8 --count 4 --steps 5 --run net",
         "bench-evaluate-prefix-sums-cpu-w4-trained"),
        ("solve --size 5 --count 2", "bench-solve-mazes-cpu-2-of-5"),
    ],
)  # fmt: skip
def test_commands_print_a_table_and_write_a_result(
    words: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    trained(tmp_path / "net")
    peaks = {"ours": 2 << 20, "plain": 5 << 20, "ratio": 2.5}
    monkeypatch.setattr("iterant.bench.benchmarks.peak_memory", lambda *_: peaks)
    with pytest.raises(SystemExit) as end:
        run(["bench", *words.split(), "--rounds", "1", "--device", "cpu", "--out", "out"])
    output, errors = capsys.readouterr()
    assert (end.value.code, errors) == (0, "")
    figures = read_result(f"out/{name}.json")["figures"]
    assert f"written to out/{name}.json" in output
    quotient = figures["ratio"].get("dense / solve", figures["ratio"])
    assert f"{quotient['median']:.2f} times" in output
    assert ("ours, halting" in output) == ("trained" in name)
    if "memory" in figures:
        assert "peak memory: ours 2 MiB, plain 5 MiB, 2.50 times as much" in output
