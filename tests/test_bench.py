"""What the benchmarks report, write and refuse; the plain step computes what ours computes.

No test asserts a time.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from small_networks import small_batch, small_net

import iterant
from iterant.bench import (
    Dense,
    EvenRng,
    PlainStep,
    bench_solve,
    bench_train,
    compare,
    plain_loss,
    ratio,
)
from iterant.cli.main import run
from iterant.errors import IterantError, RecipeError, UnknownName, UsageError
from iterant.io import read_result
from iterant.nets import build, paper_net
from iterant.nets.fast import accelerate
from iterant.training.objectives import Progressive
from iterant.training.recipe import Recipe
from iterant.training.recipe import recipe as named_recipe
from iterant.training.trainer import Trainer

TINY: dict[str, Any] = {"width": 4, "batch": 2, "steps": 1, "rounds": 1, "device": "cpu"}


def test_sides_take_turns_and_a_gpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    events = list[str]()
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: events.append("wait"))
    sides = {side: partial(events.append, side) for side in ("ours", "plain")}
    times = compare(sides, rounds=2, device=torch.device("cuda"))
    assert events == ["wait", "ours", "wait", "wait", "plain", "wait"] * 2
    assert {side: len(seconds) for side, seconds in times.items()} == {"ours": 2, "plain": 2}


def test_the_ratio_is_taken_within_a_round() -> None:
    """So a machine that becomes slower does not change it."""
    assert ratio([4, 80, 3], [2, 20, 1]) == {"median": 3, "lowest": 2, "highest": 4}


def test_training_figures() -> None:
    name, figures = bench_train(**{**TINY, "rounds": 2}, task="mazes", net="dt", precision="bf16")
    assert name == "bench-train-mazes-cpu-dt-w4-b2-bf16"
    assert figures["memory"] is None
    assert figures["precision"] == {"ours": "bf16", "plain": "fp32"}
    assert 0 < figures["ratio"]["lowest"] <= figures["ratio"]["median"]
    assert all(len(seconds) == 2 for seconds in figures["seconds a step"].values())
    assert figures["inputs"][0] == 2


def test_the_dense_network_gives_the_same_answers() -> None:
    name, figures = bench_solve(size="9", count=3, rounds=2, device="cpu")
    assert name == "bench-solve-mazes-cpu-3-of-9"
    assert figures["answers that differ from the dense network's"] == 0
    assert figures["largest difference of iterations"] == 0
    assert figures["settled"] == figures["solved"] == figures["problems"] == 3
    assert set(figures["seconds"]) == {"solve", "dense"}
    dense = Dense(iterant.load("mazes"))
    assert accelerate(dense, iterant.task("mazes").sample(1, size=5).inputs) is dense


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_memory_on_a_gpu() -> None:
    _, figures = bench_train(width=16, batch=4, steps=2, rounds=2)
    assert (figures["device"], figures["precision"]["ours"]) == ("cuda", "bf16")
    assert min(figures["memory"]["ours"], figures["memory"]["plain"]) > 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"recipe": "quick"}, UsageError, "choose recipe='paper'"),
        ({"task": "maze"}, UnknownName, "did you mean 'mazes'?"),
        ({"width": 0}, RecipeError, "width"),
    ],
)
def test_wrong_values(options: dict[str, Any], error: type[IterantError], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        bench_train(**{**TINY, **options})


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("train --width 4 --batch 2 --steps 1", "bench-train-prefix-sums-cpu-w4-b2"),
        ("solve --size 5 --count 2", "bench-solve-mazes-cpu-2-of-5"),
    ],
)  # fmt: skip
def test_commands_print_a_table_and_write_a_result(
    words: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("iterant.bench.peak_memory", lambda *_: 2 << 20)
    with pytest.raises(SystemExit) as end:
        run(["bench", *words.split(), "--rounds", "1", "--device", "cpu", "--out", "out"])
    output, errors = capsys.readouterr()
    assert (end.value.code, errors) == (0, "")
    figures = read_result(f"out/{name}.json")["figures"]
    assert f"written to out/{name}.json" in output
    quotient = figures["ratio"].get("dense / solve", figures["ratio"])
    assert f"{quotient['median']:.2f} times" in output
    if "memory" in figures:
        assert "peak memory: ours 2 MiB, plain 2 MiB, 1.00 times as much" in output


@pytest.mark.parametrize("problem", ["prefix-sums", "mazes", "chess"])
@pytest.mark.parametrize("variant", ["dt", "dt-recall", "ff-recall"])
def test_several_steps_lead_to_the_same_weights(problem: str, variant: str) -> None:
    recipe = named_recipe("paper", problem, variant)
    recipe = recipe.changed(iterations=4, width=4, label_smoothing=0.1)
    config = replace(paper_net(problem, variant), width=4, head=(4, 3))
    net, batch = build(config.kind, config, seed=1), small_batch(problem)
    inputs, cpu = batch.inputs.float(), torch.device("cpu")
    plain, trainer = PlainStep(net, recipe, cpu), Trainer(net, recipe, cpu)  # plain has a copy
    before = {name: weight.clone() for name, weight in plain.net.state_dict().items()}
    for step in range(4):
        rng = EvenRng(0, step, of=4)
        first = trainer.step(inputs, batch.targets, rng, 0.5)
        second = plain.step(inputs, batch.targets, rng, 0.5)
        assert float(first) == pytest.approx(float(second), rel=1e-4)
    after = plain.net.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in after)
    for name, weight in trainer.master.state_dict().items():
        moved = (weight - before[name]).abs().max()
        assert (weight - after[name]).abs().max() < 0.05 * moved + 1e-7, name


def test_the_head_runs_at_every_iteration() -> None:
    """The head at every iteration, the full unroll even at α = 1, the prefix with gradients."""
    net: Any = small_net("prefix-sums", "dt-recall")
    heads: list[bool] = []
    net.head.register_forward_hook(lambda *_: heads.append(torch.is_grad_enabled()))
    batch = small_batch("prefix-sums")
    plain_loss(net, batch.inputs, batch.targets, Recipe(iterations=5), n=2, k=3)
    assert heads == [True] * (5 + 2 + 3)


@pytest.mark.parametrize(("m", "count"), [(1, 8), (5, 10), (30, 20), (30, 200)])
def test_even_draws_have_the_mean_of_all_draws(m: int, count: int) -> None:
    objective = Progressive(Recipe(iterations=m))
    draws = [objective.draw(EvenRng(0, step, of=count)) for step in range(count)]
    assert all(0 <= n < m and 1 <= k <= m - n for n, k in draws)
    n, k = (sum(draw[i] for draw in draws) / count for i in (0, 1))
    assert n == pytest.approx((m - 1) / 2, abs=0.02 * m)
    # The mean of k given n is (m - n + 1) / 2.
    assert k == pytest.approx((m + 3) / 4, abs=0.03 * m)
