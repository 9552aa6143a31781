"""Training gives the weights that were stored, and a resumed run equals an unbroken one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import iterant

# 50 optimizer steps of a narrow network on batches of 4.
SMALL: dict[str, Any] = {
    "seed": 3, "width": 12, "count": 125, "validation": 0.2, "batch": 4, "epochs": 2,
    "precision": "fp32", "watch_every": 0,
}  # fmt: skip
PAPER = {"count": 10, "epochs": 25}  # 2 batches an epoch, so that warm-up ends within 50 steps
# Some runs amplify rounding errors to whole digits within 50 steps. These settings do not: with
# ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 no weight differs by more than 2e-5.
STABLE: dict[tuple[str, str], dict[str, Any]] = {
    ("mazes", "quick"): {"net": "dt-recall", "iterations": 12},  # of the local rule: best
    ("prefix-sums", "paper"): PAPER,
    ("mazes", "paper"): {**PAPER, "size": 5},
    ("chess", "paper"): PAPER,
    ("chess", "quick"): {"seed": 4},
    ("prefix-sums", "best"): {"seed": 4},
}


@pytest.mark.parametrize("problem", ["prefix-sums", "mazes", "chess"])
@pytest.mark.parametrize("recipe", ["quick", "paper", "best"])
def test_weights_after_fifty_steps(golden: Any, tmp_path: Path, problem: str, recipe: str) -> None:
    """Initial weights, and how far last and averaged weights have moved away from them."""
    settings = {**SMALL, **STABLE.get((problem, recipe), {}), "recipe": recipe, "device": "cpu"}
    out = tmp_path / "run"
    stopped = iterant.train(problem, out=tmp_path / "initial", time_limit=1e-9, **settings)
    assert (stopped.state, stopped.status.step) == ("stopped", 0)
    assert iterant.train(problem, out=out, **settings).state == "finished"
    initial = weights(tmp_path / "initial", "last")
    seen = {"initial": {name: summary(value) for name, value in initial.items()}}
    for which in ("last", "averaged"):
        if (out / "checkpoints" / f"{which}.json").exists():
            trained = weights(out, which)
            assert trained.keys() == initial.keys()
            seen[which] = {name: summary(trained[name] - initial[name]) for name in initial}
    golden(f"weights-{problem}-{recipe}", seen, rel=0, abs=1e-3)


def weights(run: Path, which: str) -> dict[str, Tensor]:
    net: Any = iterant.load(run, which=which)
    tensors: dict[str, Tensor] = net.state_dict()
    return tensors


def summary(values: Tensor) -> list[Any]:
    """The shape, the norm (as a logarithm: its size does not matter) and values beside the norm."""
    flat = values.double().flatten()
    norm = flat.norm()
    some = flat[:: max(1, flat.numel() // 4)][:4] / norm
    return [list(values.shape), *(round(value, 6) for value in [norm.log().item(), *some.tolist()])]


TINY: dict[str, Any] = {
    "width": 4, "head": (4,), "size": 8, "count": 125, "batch": 10, "epochs": 4, "iterations": 6,
    "average": 0.9, "watch_every": 2, "watch_count": 4, "validate_every": 1, "checkpoint_every": 1,
}  # fmt: skip
OBJECTIVES: dict[str, dict[str, Any]] = {
    "progressive": {"recipe": "paper", "alpha": 0.5, "warmup": 2, "milestones": (3,)},
    "progressive-n0": {"recipe": "paper"},
    "run-time-weighted": {"recipe": "paper"},
    "pool": {"recipe": "quick", "pool_slots": 32, "pool_shortest": 1},
}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_resumed_run_equals_an_unbroken_one(tmp_path: Path, objective: str) -> None:
    """Bit for bit: every tensor of every checkpoint, and the metrics but for the times."""
    settings = {**TINY, **OBJECTIVES[objective], "objective": objective, "device": "cpu"}
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    iterant.train("prefix-sums", out=whole, **settings)
    # Time limits stop it at the start and somewhere in the middle.
    run = iterant.train("prefix-sums", out=broken, time_limit=1e-3, **settings)
    assert run.state == "stopped"
    iterant.train(resume=broken, device="cpu", time_limit=0.2)
    assert iterant.train(resume=broken, device="cpu").state == "finished"
    assert checkpoints(whole).keys() == checkpoints(broken).keys() >= {"last", "best"}
    for which, tensors in checkpoints(whole).items():
        resumed = checkpoints(broken)[which]
        assert tensors.keys() == resumed.keys()
        for name, value in tensors.items():
            assert torch.equal(value, resumed[name]), (which, name)
    assert metrics(whole) == metrics(broken) != []


def checkpoints(run: Path) -> dict[str, dict[str, Tensor]]:
    """All tensors of each checkpoint, with those of the optimizer."""
    return {
        index.stem: {
            name: value
            for file in sorted(index.parent.glob(f"{index.stem}-*.safetensors"))
            for name, value in load_file(file).items()
        }
        for index in sorted((run / "checkpoints").glob("*.json"))
    }


def metrics(run: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [
        {key: value for key, value in record.items() if "second" not in key} for record in records
    ]
