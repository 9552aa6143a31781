"""What the benchmarks report, write and refuse. No test asserts a time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iterant import registry
from iterant.bench import (
    bench_evaluate,
    bench_solve,
    bench_train,
    evaluation_name,
    result_name,
    solving_name,
)
from iterant.bench.compare import Spread, Times, compare, process_growth
from iterant.bench.evaluate import evaluation
from iterant.bench.scale import bench_scale, measure
from iterant.bench.solve import Dense
from iterant.bench.train import training_step
from iterant.cli.main import run
from iterant.errors import IterantError, RecipeError, RunError, UnknownName, UsageError
from iterant.io import read_result, save_weights, write_result
from iterant.nets import PaperConfig, build
from iterant.nets.fast import accelerate
from iterant.tasks.mazes.task import Mazes
from iterant.training.recipe import Recipe
from iterant.zoo import load

TINY: dict[str, Any] = {"width": 4, "batch": 2, "steps": 1, "rounds": 1, "device": "cpu",
                        "memory": False}  # fmt: skip
SMALL: dict[str, Any] = {"size": 8, "count": 4, "steps": 6, "rounds": 2, "device": "cpu"}


class Machine:
    """A clock that only moves when submitted work is waited for, as on a GPU."""

    def __init__(self) -> None:
        self.now, self.pending = 0.0, 0.0
        self.order: list[str] = []

    def submit(self, name: str, seconds: float) -> None:
        self.order.append(name)
        self.pending += seconds

    def wait(self) -> None:
        self.now, self.pending = self.now + self.pending, 0.0


def test_sides_take_turns_and_are_waited_for() -> None:
    machine, seen = Machine(), list[tuple[int, int]]()
    machine.pending = 100.0  # submitted before, counted nowhere
    times = compare(
        {"ours": lambda: machine.submit("ours", 2), "plain": lambda: machine.submit("plain", 6)},
        rounds=3,
        wait=machine.wait,
        clock=lambda: machine.now,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert machine.order == ["ours", "plain"] * 3
    assert times.seconds == {"ours": [2.0] * 3, "plain": [6.0] * 3}
    assert times.ratio("plain", "ours") == Spread(3.0, 3.0, 3.0)
    assert seen == [(1, 3), (2, 3), (3, 3)]


@given(st.lists(st.tuples(st.floats(0.001, 1000), st.floats(0.1, 10)), min_size=1, max_size=9))
def test_the_ratio_is_taken_within_a_round(rounds: list[tuple[float, float]]) -> None:
    """So a machine that becomes slower does not change it."""
    seconds = {"a": [time for time, _ in rounds], "b": [time * factor for time, factor in rounds]}
    spread, factors = Times(seconds).ratio("b", "a"), sorted(factor for _, factor in rounds)
    assert spread.lowest == pytest.approx(factors[0])
    assert spread.highest == pytest.approx(factors[-1])
    assert spread.lowest <= spread.median <= spread.highest


@pytest.mark.parametrize("task", ["prefix-sums", "mazes", "chess"])
def test_training_figures(task: str, tmp_path: Path) -> None:
    recipe = registry.recipe("paper", task).changed(iterations=3)
    figures = bench_train(task, recipe=recipe, **{**TINY, "rounds": 3})
    assert figures["memory"] is None
    ratio = figures["ratio"]
    assert 0 < ratio["lowest"] <= ratio["median"] <= ratio["highest"]
    for side in ("ours", "plain"):
        assert figures["steps per second"][side] > 0
        assert len(figures["seconds a step"][side]) == 3
    assert figures["inputs"][0] == 2
    assert result_name(figures) == f"bench-train-{task}-cpu-w4-b2"
    path = write_result(result_name(figures), figures, seed=0, folder=tmp_path)
    assert json.loads(path.read_text())["figures"]["iterations"] == 3


def test_the_name_of_a_training_result_says_what_differs_from_the_recipe() -> None:
    recipe = Recipe(name="own", net="dt", width=4, batch=2, iterations=3, alpha=0.5)
    names = {
        "": {},
        "-bf16": {"precision": "bf16"},
        "-dt-recall": {"net": "dt-recall"},
    }
    for suffix, change in names.items():
        figures = bench_train("prefix-sums", recipe=recipe, **{**TINY, **change})
        assert result_name(figures) == f"bench-train-prefix-sums-cpu{suffix}"
        assert figures["precision"] == {"ours": change.get("precision", "fp32"), "plain": "fp32"}


def trained(folder: Path) -> Path:
    config = PaperConfig(dims=1, channels=1, width=4, head=(4,), recall_relu=True)
    net: Any = build(config.kind, config, seed=1)
    described = {"kind": config.kind, "config": config.described(), "task": "prefix-sums"}
    return save_weights(folder, described, net.state_dict())


def test_evaluation_figures() -> None:
    seen: list[tuple[int, int]] = []
    figures = bench_evaluate(
        "prefix-sums", width=4, memory=False, **SMALL, progress=lambda *done: seen.append(done)
    )
    assert seen == [(1, 2), (2, 2)]
    assert evaluation_name(figures) == "bench-evaluate-prefix-sums-cpu-w4"
    assert (figures["problems counted differently"], figures["inputs"]) == (0, [4, 1, 8])
    assert (figures["memory"], "with halting" in figures) == (None, False)
    assert 0 < figures["ratio"]["lowest"] <= figures["ratio"]["median"]
    for side in ("ours", "plain"):
        assert figures["iterations per second"][side] > 0
        assert figures["seconds to the curve"][side] > 0


def test_a_trained_network_is_also_evaluated_with_halting(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    figures = bench_evaluate(
        "prefix-sums", run=trained(tmp_path / "net"), patience=1, memory=False, **SMALL,
        progress=lambda *done: seen.append(done),
    )  # fmt: skip
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert evaluation_name(figures).endswith("w4-trained")
    assert 2 <= figures["with halting"]["mean iterations"] <= 6
    assert figures["with halting"]["ratio"]["median"] > 0


def test_solving_gives_the_same_answers_all_ways() -> None:
    figures = bench_solve("mazes", size=9, count=3, rounds=2, device="cpu")
    assert figures["answers that differ from the dense network's"] == 0
    assert figures["largest difference of iterations"] == 0
    assert figures["settled"] == figures["solved"] == figures["problems"] == 3
    assert all(seconds > 0 for seconds in figures["seconds"].values())
    ratio = figures["ratio"]["dense / solve"]
    assert ratio["lowest"] <= ratio["median"] <= ratio["highest"]
    assert solving_name(figures) == "bench-solve-mazes-cpu-3-of-9"
    dense = Dense(load("mazes"))
    assert accelerate(dense, Mazes().sample(1, size=5).inputs) is dense


def test_memory_of_a_training_step() -> None:
    width, batch, bits, m = 32, 64, 64, 10
    config = PaperConfig(dims=1, channels=1, width=width, recall_relu=True, head=(8, 4))
    grown = process_growth(
        training_step, side="plain", net={"kind": config.kind, "config": config.described()},
        recipe=Recipe(iterations=m, alpha=0.0).described(), inputs=[batch, 1, bits],
        targets=[batch, bits], update=0, of=1,
    )  # fmt: skip
    # α = 0 unrolls m iterations, and the inputs of five convolutions of each are saved.
    saved = 5 * m * 4 * width * batch * bits
    assert saved < grown < 8 * saved


def test_memory_of_an_evaluation() -> None:
    how: dict[str, Any] = {"task": "prefix-sums", "size": 2048, "count": 64, "steps": 60,
                           "seed": 0, "run": None, "net": "dt", "width": 2}  # fmt: skip
    peaks = {side: process_growth(evaluation, side=side, **how) for side in ("ours", "plain")}
    outputs = 4 * 64 * 2048 * 2 * 60
    assert peaks["plain"] > outputs
    assert peaks["plain"] - peaks["ours"] > outputs / 2, "ours keeps one iteration only"


def test_a_failed_memory_measurement_is_one_line() -> None:
    with pytest.raises(UsageError, match="unknown net 'nothing'") as error:
        process_growth(training_step, side="plain", net={"kind": "nothing", "config": {}},
                       recipe={}, inputs=[1], targets=[1], update=0, of=1)  # fmt: skip
    assert "\n" not in str(error.value)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_memory_on_a_gpu() -> None:
    figures = bench_train("prefix-sums", width=16, batch=4, steps=2, rounds=2)
    assert (figures["device"], figures["precision"]["ours"]) == ("cuda", "bf16")
    assert figures["memory"]["ours"] > 0
    assert figures["memory"]["plain"] > 0


REFUSED: list[tuple[Callable[..., Any], dict[str, Any], type[IterantError], str]] = [
    (bench_train, {"steps": 0}, UsageError, "at least 1 round of at least 1 step, got 1 of 0"),
    (bench_train, {"rounds": 0}, UsageError, "got 0 of 1"),
    (bench_train, {"recipe": "quick"}, UsageError, "choose --recipe paper"),
    (bench_train, {"recipe": "papre"}, UnknownName, "did you mean 'paper'?"),
    (bench_train, {"task": "maze"}, UnknownName, "did you mean 'mazes'?"),
    (bench_train, {"width": 0}, RecipeError, "width"),
    (bench_train, {"precision": "fp8"}, RecipeError, "precision"),
    (bench_train, {"device": "warp"}, UsageError, "warp"),
    (bench_evaluate, {"steps": 0}, UsageError, "at least 1 iteration, got 0"),
    (bench_evaluate, {"rounds": 0}, UsageError, "at least 1 round"),
    (bench_evaluate, {"net": "ff", "steps": 31}, UsageError, "ask for at most 30"),
    (bench_evaluate, {"net": "dt-recal"}, UnknownName, "did you mean 'dt-recall'?"),
    (bench_evaluate, {"width": 0}, UsageError, "width must be at least 1, got 0"),
    (bench_evaluate, {"run": "prefix-sums"}, UsageError, "no plain way for a LocalRule"),
    (bench_scale, {"updates": 0}, UsageError, "at least one"),
    (bench_scale, {"rounds": 0}, UsageError, "at least one"),
    (bench_scale, {"processes": ()}, UsageError, "at least one"),
]


@pytest.mark.parametrize(("bench", "change", "error", "message"), REFUSED)
def test_wrong_values(
    bench: Callable[..., Any], change: dict[str, Any], error: type[IterantError], message: str
) -> None:
    base: dict[Any, dict[str, Any]] = {
        bench_train: TINY,
        bench_evaluate: {"task": "prefix-sums", "width": 4, "memory": False, **SMALL},
    }
    with pytest.raises(error, match=re.escape(message)):
        bench(**{**base.get(bench, {}), **change})


def test_one_process_does_not_communicate() -> None:
    changes = {"width": 4, "batch": 4, "iterations": 3, "pool_slots": 8, "pool_shortest": 1,
               "watch_every": 0, "size": 8}  # fmt: skip
    figures = measure("prefix-sums", "quick", changes, 2)
    assert figures["talking"] == 0.0
    assert figures["updates per second"] > 0
    assert figures["bytes an update"] == 4 * figures["parameters"]


@pytest.mark.system
def test_two_processes_communicate() -> None:
    figures = bench_scale("prefix-sums", width=4, batch=4, updates=2, rounds=1, processes=(1, 2))
    one, two = (figures["processes"][count] for count in ("1", "2"))
    assert (one["talking"], one["times faster"]) == (0.0, 1.0)
    assert 0 < two["talking"] < 1
    assert two["efficiency"] == pytest.approx(two["times faster"] / 2)
    with pytest.raises(RunError, match="3 processes cannot be measured"):
        bench_scale("prefix-sums", batch=4, updates=1, rounds=1, processes=(3,))


COMMANDS = {
    "train --task prefix-sums --width 4 --batch 2 --steps 1 --rounds 1 --device cpu": (
        "bench-train-prefix-sums-cpu-w4-b2", "steps per second"),
    "evaluate --size 8 --count 4 --steps 5 --rounds 1 --device cpu --run net": (
        "bench-evaluate-prefix-sums-cpu-w4-trained", "iterations per second"),
    "solve --size 5 --count 2 --rounds 1 --device cpu": ("bench-solve-mazes-cpu-2-of-5", None),
}  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_print_a_table_and_write_a_result(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    trained(tmp_path / "net")
    peaks = {"ours": 2 << 20, "plain": 5 << 20}
    for module in ("train", "evaluate"):
        monkeypatch.setattr(f"iterant.bench.{module}.process_growth",
                            lambda _, *, side, **__: peaks[side])  # fmt: skip
    with pytest.raises(SystemExit) as end:
        run(["bench", *words.split(), "--out", "out"])
    output, errors = capsys.readouterr()
    assert (end.value.code, errors) == (0, "")
    name, speed = COMMANDS[words]
    figures = read_result(f"out/{name}.json")["figures"]
    assert f"written to out/{name}.json" in output
    if speed is None:
        assert f"{figures['ratio']['dense / solve']['median']:.2f} times" in output
        assert f"{figures['seconds']['solve']:.3g}" in output
        return
    rows = {line.split()[0]: line for line in output.splitlines() if line.split()}
    assert f"{figures[speed]['plain']:,.4g}".replace(",", "") in rows["plain"].replace(",", "")
    assert f"{figures['ratio']['median']:.2f} times" in rows["ratio"]
    assert "5 MiB" in rows["plain"]
    assert "2.50 times less" in rows["ratio"]
    assert ("ours, halting" in output) == (speed == "iterations per second")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("trian", 'Did you mean "train"?'),
        ("train --task maze", "did you mean 'mazes'?"),
        ("train --recipe quick --no-memory", "choose --recipe paper"),
        ("train --steps none", "--steps"),
    ],
)
def test_wrong_words(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run(["bench", *words.split()])
    output, errors = capsys.readouterr()
    assert (end.value.code, output) == (2, "")
    assert message in errors
    assert errors.count("\n") == 1
