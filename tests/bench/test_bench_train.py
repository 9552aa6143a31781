"""The measurement itself: what it reports and what it refuses. No test asserts a time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from iterant import registry
from iterant.bench import bench_train, result_name
from iterant.bench.memory import Request, peak_on_cpu
from iterant.errors import RecipeError, UnknownName, UsageError
from iterant.io import write_result
from iterant.nets import PaperConfig
from iterant.training.recipe import Recipe


@pytest.mark.parametrize("task", ["prefix-sums", "mazes", "chess"])
def test_every_task_is_measured(task: str) -> None:
    seen: list[int] = []
    figures = bench_train(
        task,
        recipe=registry.recipe("paper", task).changed(iterations=3),
        width=4,
        batch=2,
        steps=2,
        rounds=3,
        device="cpu",
        memory=False,
        progress=lambda done, _: seen.append(done),
    )
    assert seen == [1, 2, 3]
    assert figures["memory"] is None
    ratio = figures["ratio"]
    assert 0 < ratio["lowest"] <= ratio["median"] <= ratio["highest"]
    for side in ("ours", "plain"):
        assert figures["steps per second"][side] > 0
        assert len(figures["seconds a step"][side]) == 3
        assert figures["precision"][side] == "fp32"
    assert figures["inputs"][0] == 2
    assert result_name(figures) == f"bench-train-{task}-cpu-w4-b2"


def test_a_result_says_what_differs_and_can_be_written(tmp_path: Path) -> None:
    recipe = Recipe(name="own", net="dt", width=4, batch=2, iterations=3, alpha=0.5)
    common: dict[str, Any] = {
        "recipe": recipe,
        "steps": 1,
        "rounds": 1,
        "device": "cpu",
        "memory": False,
    }
    figures = bench_train("prefix-sums", **common)
    assert result_name(figures) == "bench-train-prefix-sums-cpu"
    low = bench_train("prefix-sums", precision="bf16", **common)
    assert low["precision"] == {"ours": "bf16", "plain": "fp32"}
    assert result_name(low) == "bench-train-prefix-sums-cpu-bf16"
    other = bench_train("prefix-sums", net="dt-recall", **common)
    assert other["parameters"] > figures["parameters"]
    assert result_name(other) == "bench-train-prefix-sums-cpu-dt-recall"
    path = write_result(result_name(figures), figures, seed=0, folder=tmp_path)
    assert json.loads(path.read_text())["figures"]["alpha"] == 0.5


def test_memory_is_that_of_the_step_alone() -> None:
    width, batch, bits, m = 32, 64, 64, 10
    config = PaperConfig(dims=1, channels=1, width=width, recall_relu=True, head=(8, 4))
    request = Request(
        side="plain",
        net={"kind": config.kind, "config": config.described()},
        recipe=Recipe(iterations=m, alpha=0.0).described(),
        inputs=(batch, 1, bits),
        targets=(batch, bits),
        update=0,
        of=1,
    )
    features = 4 * width * batch * bits
    # α = 0 unrolls m iterations: at least the input of each of five convolutions is kept.
    kept = 5 * m * features
    assert kept < peak_on_cpu(request) < 8 * kept


def test_a_process_that_fails_is_one_line() -> None:
    request = Request("plain", {"kind": "nothing", "config": {}}, {}, (1,), (1,), 0, 1)
    with pytest.raises(UsageError, match="unknown net 'nothing'") as refusal:
        peak_on_cpu(request)
    assert "\n" not in str(refusal.value)


def test_wrong_values_are_refused() -> None:
    for words, error, said in (
        ({"steps": 0}, UsageError, "at least 1 round of at least 1 step, got 5 of 0"),
        ({"rounds": 0}, UsageError, "got 0 of 1"),
        ({"recipe": "quick"}, UsageError, "choose --recipe paper"),
        ({"recipe": "papre"}, UnknownName, "did you mean 'paper'?"),
        ({"task": "maze"}, UnknownName, "did you mean 'mazes'?"),
        ({"width": 0}, RecipeError, "width"),
        ({"precision": "fp8"}, RecipeError, "precision"),
        ({"device": "warp"}, UsageError, "warp"),
    ):
        given: dict[str, Any] = {"width": 4, "batch": 2, "steps": 1, "memory": False}
        with pytest.raises(error, match=re.escape(said)):
            bench_train(**{**given, **words})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_memory_is_measured_by_its_allocator() -> None:
    figures = bench_train("prefix-sums", width=16, batch=4, steps=2, rounds=2)
    assert figures["device"] == "cuda"
    assert figures["precision"]["ours"] == "bf16"
    assert figures["memory"]["ours"] > 0
    assert figures["memory"]["plain"] > 0
