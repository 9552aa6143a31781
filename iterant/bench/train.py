"""Our training step beside the plain one: steps per second and peak memory.

    >>> figures = bench_train("prefix-sums", recipe="paper", width=64)
    >>> figures["ratio"]["median"]          # how many times faster
    >>> write_result(result_name(figures), figures)

Both sides start from the same weights, see the same problems and take the same n and k, which are
spread evenly over what the recipe may draw. Ours is the `Trainer` of a training run: on a GPU with
CUDA graphs and, unless ``precision`` says otherwise, in bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
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
from iterant.bench.plain import EvenRng, PlainStep, progressive_of
from iterant.errors import UsageError
from iterant.nets import Net, build, parameter_count
from iterant.tasks.protocol import Task
from iterant.training.build import build_network
from iterant.training.optim import lr_factor
from iterant.training.recipe import Recipe
from iterant.training.trainer import Trainer

_STEPS: dict[str, Callable[[Net, Recipe, torch.device], Trainer | PlainStep]] = {
    "ours": Trainer,
    "plain": PlainStep,
}
_EPOCH = 1000
"""Updates per epoch, for the warm-up of the learning rate: as in the first epoch of a run."""


def bench_train(
    task: Task | str = "prefix-sums",
    *,
    recipe: Recipe | str = "paper",
    net: str | None = None,
    width: int | None = None,
    batch: int | None = None,
    steps: int = 20,
    rounds: int = 5,
    device: str = "auto",
    precision: str | None = None,
    seed: int = 0,
    memory: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Measure both steps; None: as in the recipe. A round is ``steps`` updates of each side.

    The figures are for `iterant.io.write_result`.
    """
    if min(steps, rounds) < 1:
        raise UsageError(
            f"a measurement needs at least 1 round of at least 1 step, got {rounds} of {steps}"
        )
    where = registry.device(device)
    task = registry.task(task) if isinstance(task, str) else task
    base = (
        registry.recipe(recipe, task.spec.name, net)
        if isinstance(recipe, str)
        else recipe.changed(**({"net": net} if net else {}))
    )
    usual = base.changed(precision="bf16") if where.type == "cuda" else base
    changes = {"width": width, "batch": batch, "precision": precision}
    recipe = usual.changed(**{name: value for name, value in changes.items() if value is not None})
    problems = task.sample(recipe.batch, size=task.check_size(recipe.size), seed=seed).to(where)
    inputs, targets = problems.inputs, problems.targets
    network, described = build_network(recipe, task.spec, seed)
    objective = progressive_of(network, recipe)
    rngs = [EvenRng(seed, update, of=steps) for update in range(steps)]
    draws = [objective.draw(rng) for rng in rngs]
    signs = {"width": "w", "batch": "b", "precision": ""}
    figures: dict[str, Any] = {
        "task": task.spec.name,
        "device": where.type,
        "recipe": recipe.name,
        "net": recipe.net,
        "parameters": parameter_count(network),
        "inputs": list(inputs.shape),
        "iterations": recipe.iterations,
        "alpha": recipe.alpha,
        "precision": {"ours": recipe.precision, "plain": "fp32"},
        "steps a round": steps,
        "mean of draws": {
            name: round(sum(draw[i] for draw in draws) / steps, 2) for i, name in enumerate("nk")
        },
        **machine(),
        "differs": [
            *([net] if net else []),
            *(
                f"{sign}{getattr(recipe, name)}"
                for name, sign in signs.items()
                if getattr(recipe, name) != getattr(usual, name)
            ),
        ],
        "memory": None,
    }
    if memory and where.type == "cpu":
        longest = max(range(steps), key=lambda update: draws[update][1])
        peaks = {
            side: process_growth(
                training_step, side=side, net=described, recipe=recipe.described(),
                inputs=list(inputs.shape), targets=list(targets.shape), update=longest, of=steps,
            )
            for side in _STEPS
        }  # fmt: skip
        figures["memory"] = memory_figures(peaks, "growth of a process by the longest step")

    def warmed_up(side: str) -> Work:
        # Kernels are chosen and graphs captured here, before anything is timed.
        step = _STEPS[side](build(described["kind"], described["config"], seed=seed), recipe, where)
        factor = lr_factor(recipe, 0, _EPOCH)

        def one_round() -> None:
            for rng in rngs:
                step.update(inputs, targets, rng, factor)

        one_round()
        return one_round

    sides, peaks = dict[str, Work](), dict[str, int]()
    for side in _STEPS:
        sides[side], peaks[side] = gpu_peak(partial(warmed_up, side), where)
    if memory and where.type == "cuda":
        figures["memory"] = memory_figures(peaks, "allocated on the GPU, at most")
    times = compare(sides, rounds=rounds, wait=waiter(where), progress=progress)
    return {
        **figures,
        "steps per second": {side: steps / times.median(side) for side in sides},
        "seconds a step": {
            side: [round(seconds / steps, 6) for seconds in times.seconds[side]] for side in sides
        },
        "ratio": asdict(times.ratio("plain", "ours")),
    }


def training_step(
    side: str,
    net: dict[str, Any],
    recipe: dict[str, Any],
    inputs: list[int],
    targets: list[int],
    update: int,
    of: int,
) -> Work:
    """One step of one side on the CPU, for problems of these shapes: see `process_growth`."""
    cpu = torch.device("cpu")
    step = _STEPS[side](build(net["kind"], net["config"]), Recipe().changed(**recipe), cpu)
    problems = torch.ones(inputs), torch.zeros(targets, dtype=torch.int64)
    return lambda: step.update(*problems, EvenRng(0, update, of), 1.0)


def result_name(figures: dict[str, Any]) -> str:
    """The name of the result: task, device and what differs from the recipe."""
    base = f"bench-train-{figures['task']}-{figures['device']}"
    return "-".join([base, *figures["differs"]])
