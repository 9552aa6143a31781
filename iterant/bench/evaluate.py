"""Our evaluation beside the plain one: iterations per second, time to the curve and peak memory.

    >>> figures = bench_evaluate("mazes", width=32, size=13, count=50, steps=50)
    >>> figures["ratio"]["median"]          # how many times sooner the whole curve is there

Both give the same curve. A trained network (``run``) is also evaluated under a halting rule, which
is where most of the time is saved.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from iterant import registry
from iterant.bench.compare import (
    Work,
    compare,
    gpu_peak,
    machine,
    memory_figures,
    process_growth,
    waiter,
)
from iterant.bench.plain import plain_curve
from iterant.errors import UsageError
from iterant.evaluation import Curve, budget_of, evaluate_batch
from iterant.halting import Rule, StableAnswer
from iterant.nets import DeepThinking, FeedForward, build, parameter_count
from iterant.nets.factory import variant_config
from iterant.solving.solver import check_fits
from iterant.tasks.protocol import Batch, Task
from iterant.zoo import load


def bench_evaluate(
    task: Task | str = "prefix-sums",
    *,
    run: str | os.PathLike[str] | None = None,
    net: str = "dt-recall",
    width: int | None = None,
    size: Any = None,
    count: int = 100,
    steps: int = 100,
    rounds: int = 5,
    patience: int = 30,
    device: str = "auto",
    seed: int = 0,
    memory: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Measure both evaluations; without ``run`` the network has random weights.

    The figures are for `iterant.io.write_result`.
    """
    if width is not None and width < 1:
        raise UsageError(f"width must be at least 1, got {width}")
    where = registry.device(device)
    name = task if isinstance(task, str) else task.spec.name
    task = registry.task(task) if isinstance(task, str) else task
    how: dict[str, Any] = {
        "size": task.check_size(size), "count": count, "steps": steps, "seed": seed, "net": net,
        "run": None if run is None else os.fspath(run), "width": width,
    }  # fmt: skip
    module, batch, sides = _sides(task, device=where, **how)
    peaks = None
    if memory and where.type == "cuda":
        allocated = {side: gpu_peak(work, where)[1] for side, work in sides.items()}
        peaks = memory_figures(allocated, "allocated on the GPU")
    elif memory:
        growth = {side: process_growth(evaluation, side=side, task=name, **how) for side in sides}
        peaks = memory_figures(growth, "growth of a process")
    iterations = budget_of(module, steps)
    curve, plain_solved = sides["ours"](), sides["plain"]()
    total = rounds * (1 if run is None else 2)

    def report(before: int) -> Callable[[int, int], None]:
        return lambda done, _: None if progress is None else progress(before + done, total)

    times = compare(sides, rounds=rounds, wait=waiter(where), progress=report(0))
    figures = {
        "task": task.spec.name,
        "device": where.type,
        "net": type(module).__name__ if run is not None else net,
        "trained": run is not None,
        "width": module.config.width,
        "parameters": parameter_count(module),
        "inputs": list(batch.inputs.shape),
        "iterations": iterations,
        "problems counted differently": int((curve.solved - plain_solved).abs().max()),
        "not finite": curve.broken,
        **machine(),
        "iterations per second": {side: count * iterations / times.median(side) for side in sides},
        "seconds to the curve": {side: times.median(side) for side in sides},
        "ratio": asdict(times.ratio("plain", "ours")),
        "memory": peaks,
    }
    if run is not None:
        rule = StableAnswer(patience)
        halting = {"ours": lambda: sides["ours"](rule), "plain": sides["plain"]}
        times = compare(halting, rounds=rounds, wait=waiter(where), progress=report(rounds))
        halted: Curve = sides["ours"](rule)
        figures["with halting"] = {
            "rule": str(rule),
            "mean iterations": float(halted.iterations[-1]),
            "accuracy": {"halting": halted.end, "all iterations": curve.end},
            "ratio": asdict(times.ratio("plain", "ours")),
            "seconds to the curve": {side: times.median(side) for side in sides},
        }
    return figures


def _sides(
    task: Task,
    *,
    size: Any,
    count: int,
    steps: int,
    seed: int,
    run: str | None,
    net: str,
    width: int | None,
    device: torch.device,
) -> tuple[DeepThinking | FeedForward, Batch, dict[str, Callable[..., Any]]]:
    """The network, the problems, and both ways to evaluate one on the other."""
    module: Any
    if run is not None:
        module = load(run, device)
    else:
        spec = task.spec
        config = variant_config(
            net, spec.name, dims=spec.dims, channels=spec.channels, classes=spec.classes,
            readout=spec.readout, width=width,
        )  # fmt: skip
        module = build(config.kind, config, seed=seed)
        module.to(device)
    if not isinstance(module, DeepThinking | FeedForward):
        raise UsageError(
            f"there is no plain way for a {type(module).__name__}; give a run of dt, dt-recall, "
            "ff or ff-recall"
        )
    check_fits(module, task)
    size = tuple(size) if isinstance(size, list) else size  # JSON has no tuples
    batch = task.sample(count, size=size, seed=seed).to(device)
    steps = budget_of(module, steps)

    def ours(rule: Rule | None = None) -> Curve:
        return evaluate_batch(module, task, batch, steps=steps, rule=rule)

    return module, batch, {"ours": ours, "plain": lambda: plain_curve(module, task, batch, steps)}


def evaluation(side: str, task: str, **how: Any) -> Work:
    """One side's evaluation on the CPU: see `process_growth`."""
    return _sides(registry.task(task), device=torch.device("cpu"), **how)[2][side]


def evaluation_name(figures: dict[str, Any]) -> str:
    """The name of the result: task, device, width, and whether the network was trained."""
    parts = ["bench-evaluate", figures["task"], figures["device"], f"w{figures['width']}"]
    return "-".join([*parts, *(["trained"] if figures["trained"] else [])])
