"""What the benchmarks report, write and refuse. No test asserts a time."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iterant.bench.benchmarks import (
    Dense,
    bench_evaluate,
    bench_scale,
    bench_solve,
    bench_train,
    evaluation,
    scaling,
    training,
)
from iterant.bench.compare import compare, peak_memory, ratio
from iterant.bench.options import EvaluateOptions, ScaleOptions, SolveOptions, TrainOptions
from iterant.cli.main import run
from iterant.errors import IterantError, RecipeError, RunError, UnknownName, UsageError
from iterant.io import read_result, save_weights
from iterant.nets import PaperConfig, build
from iterant.nets.fast import accelerate
from iterant.tasks.mazes.task import Mazes
from iterant.training.recipe import recipe as named_recipe
from iterant.zoo import load

CPU = torch.device("cpu")
TINY = TrainOptions(width=4, batch=2, steps=1, rounds=1, device="cpu", memory=False)
SMALL = EvaluateOptions(width=4, size="8", count=4, steps=6, rounds=2, device="cpu", memory=False)


def test_sides_take_turns_and_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock only moves when submitted work is waited for, as on a GPU."""
    now, pending, order, seen = 0.0, 100.0, list[str](), list[tuple[int, int]]()

    def submit(name: str, seconds: float) -> None:
        nonlocal pending
        order.append(name)
        pending += seconds

    def wait(_: torch.device) -> None:
        nonlocal now, pending
        now, pending = now + pending, 0.0

    monkeypatch.setattr(torch.cuda, "synchronize", wait)
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    times = compare(
        {"ours": lambda: submit("ours", 2), "plain": lambda: submit("plain", 6)},
        rounds=3,
        device=torch.device("cuda"),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert order == ["ours", "plain"] * 3
    assert times == {"ours": [2.0] * 3, "plain": [6.0] * 3}
    assert seen == [(1, 3), (2, 3), (3, 3)]


@given(st.lists(st.tuples(st.floats(0.001, 1000), st.floats(0.1, 10)), min_size=1, max_size=9))
def test_the_ratio_is_taken_within_a_round(rounds: list[tuple[float, float]]) -> None:
    """So a machine that becomes slower does not change it."""
    spread = ratio([time * factor for time, factor in rounds], [time for time, _ in rounds])
    factors = sorted(factor for _, factor in rounds)
    assert spread["lowest"] == pytest.approx(factors[0])
    assert spread["highest"] == pytest.approx(factors[-1])
    assert spread["lowest"] <= spread["median"] <= spread["highest"]


@pytest.mark.parametrize("task", ["prefix-sums", "mazes", "chess"])
@pytest.mark.parametrize("change", [{}, {"precision": "bf16"}, {"net": "dt"}])
def test_training_figures(task: str, change: dict[str, Any]) -> None:
    name, figures = bench_train(replace(TINY, task=task, rounds=2, **change))
    assert figures["memory"] is None
    assert figures["precision"] == {"ours": change.get("precision", "fp32"), "plain": "fp32"}
    assert 0 < figures["ratio"]["lowest"] <= figures["ratio"]["median"]
    assert all(len(seconds) == 2 for seconds in figures["seconds a step"].values())
    assert figures["inputs"][0] == 2
    differs = {"precision": "w4-b2-bf16", "net": "dt-w4-b2"}.get(next(iter(change), ""), "w4-b2")
    assert name == f"bench-train-{task}-cpu-{differs}"


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
        assert figures["with halting"]["ratio"]["median"] > 0


def test_solving_gives_the_same_answers_all_ways() -> None:
    name, figures = bench_solve(SolveOptions(size="9", count=3, rounds=2, device="cpu"))
    assert name == "bench-solve-mazes-cpu-3-of-9"
    assert figures["answers that differ from the dense network's"] == 0
    assert figures["largest difference of iterations"] == 0
    assert figures["settled"] == figures["solved"] == figures["problems"] == 3
    assert set(figures["seconds"]) == {"solve", "command", "dense"}
    dense = Dense(load("mazes"))
    assert accelerate(dense, Mazes().sample(1, size=5).inputs) is dense


def test_memory_of_a_training_step() -> None:
    recipe = named_recipe("paper", "prefix-sums")
    recipe = recipe.changed(width=32, batch=64, size=64, iterations=10, alpha=0.0)
    memory = peak_memory(training, CPU, TINY, recipe, [0])
    # α = 0 unrolls all iterations, and the inputs of five convolutions of each are saved.
    saved = 5 * 10 * 4 * 32 * 64 * 64
    assert saved < memory["plain"] < 8 * saved
    assert memory["ratio"] == memory["plain"] / memory["ours"]


def test_memory_of_an_evaluation() -> None:
    options = EvaluateOptions(size="2048", count=64, steps=60, net="dt", width=2)
    memory = peak_memory(evaluation, CPU, options)
    outputs = 4 * 64 * 2048 * 2 * 60
    assert memory["plain"] > outputs
    assert memory["plain"] - memory["ours"] > outputs / 2, "ours keeps one iteration only"


def test_a_failed_process_is_one_line() -> None:
    with pytest.raises(RunError, match="unknown task 'nothing'") as error:
        peak_memory(evaluation, CPU, EvaluateOptions(task="nothing"))
    assert "\n" not in str(error.value)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_memory_on_a_gpu() -> None:
    _, figures = bench_train(TrainOptions(width=16, batch=4, steps=2, rounds=2))
    assert (figures["device"], figures["precision"]["ours"]) == ("cuda", "bf16")
    assert min(figures["memory"]["ours"], figures["memory"]["plain"]) > 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (replace(TINY, steps=0), UsageError, "at least 1 step, got 0"),
        (replace(TINY, rounds=0), UsageError, "at least 1 round, got 0"),
        (replace(TINY, recipe="quick"), UsageError, "choose --recipe paper"),
        (replace(TINY, task="maze"), UnknownName, "did you mean 'mazes'?"),
        (replace(TINY, width=0), RecipeError, "width"),
        (replace(SMALL, steps=0), UsageError, "at least 1 iteration, got 0"),
        (replace(SMALL, net="ff", steps=31), UsageError, "ask for at most 30"),
        (replace(SMALL, net="dt-recal"), UnknownName, "did you mean 'dt-recall'?"),
        (replace(SMALL, width=0), RecipeError, "width"),
        (replace(SMALL, run="prefix-sums"), UsageError, "no plain way for a LocalRule"),
        (ScaleOptions(processes=()), UsageError, "at least one"),
    ],
)
def test_wrong_values(options: Any, error: type[IterantError], message: str) -> None:
    benches = {TrainOptions: bench_train, EvaluateOptions: bench_evaluate}
    bench: Any = benches.get(type(options), bench_scale)
    with pytest.raises(error, match=re.escape(message)):
        bench(options)


def test_one_process_does_not_communicate() -> None:
    figures = scaling(ScaleOptions(task="prefix-sums", width=4, batch=4, updates=2))
    assert figures["talking"] == 0.0
    assert figures["updates per second"] > 0
    assert figures["bytes an update"] == 4 * figures["parameters"]


@pytest.mark.system
def test_two_processes_communicate() -> None:
    options = ScaleOptions(task="prefix-sums", width=4, batch=4, updates=2, rounds=1)
    _, figures = bench_scale(options)
    one, two = (figures["processes"][count] for count in ("1", "2"))
    assert (one["talking"], one["times faster"]) == (0.0, 1.0)
    assert 0 < two["talking"] < 1
    assert two["efficiency"] == pytest.approx(two["times faster"] / 2)
    with pytest.raises(RunError, match=r"3 processes ended early .*a batch of 4 cannot be shared"):
        bench_scale(replace(options, processes=(3,)))


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("train --task prefix-sums --width 4 --batch 2 --steps 1 --rounds 1 --device cpu",
         "bench-train-prefix-sums-cpu-w4-b2"),
        ("evaluate --size 8 --count 4 --steps 5 --rounds 1 --device cpu --run net",
         "bench-evaluate-prefix-sums-cpu-w4-trained"),
        ("solve --size 5 --count 2 --rounds 1 --device cpu", "bench-solve-mazes-cpu-2-of-5"),
    ],
)  # fmt: skip
def test_commands_print_a_table_and_write_a_result(
    words: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    trained(tmp_path / "net")
    peaks = {"ours": 2 << 20, "plain": 5 << 20}
    monkeypatch.setattr("iterant.bench.compare.in_new_process",
                        lambda _, side, *__: peaks[side])  # fmt: skip
    with pytest.raises(SystemExit) as end:
        run(["bench", *words.split(), "--out", "out"])
    output, errors = capsys.readouterr()
    assert (end.value.code, errors) == (0, "")
    figures = read_result(f"out/{name}.json")["figures"]
    assert f"written to out/{name}.json" in output
    quotient = figures["ratio"].get("dense / solve", figures["ratio"])
    assert f"{quotient['median']:.2f} times" in output
    assert ("ours, halting" in output) == ("trained" in name)
    if "memory" in figures:
        rows = {line.split()[0]: line for line in output.splitlines() if line.split()}
        assert "5 MiB" in rows["plain"]
        assert "2.50 times less" in rows["ratio"]
