"""Our training step beside the plain one: steps a second and peak memory, in one run.

    >>> figures = bench_train("prefix-sums", recipe="paper", width=64)
    >>> figures["ratio"]["median"]          # how many times faster
    >>> write_result(result_name(figures), figures)

Both sides start from the same weights, see the same problems and take the same draws of n and k,
which cover evenly what a recipe may draw. Ours is `iterant.training.trainer.Trainer` as a run has
it: on a GPU with captured graphs, in bfloat16 unless told otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import torch

from iterant import registry
from iterant.bench.compare import Contest, Spread, contest
from iterant.bench.memory import Request, peak_on_cpu
from iterant.bench.plain import Even, PlainStep, progressive_of
from iterant.errors import UsageError
from iterant.nets import build, parameter_count
from iterant.tasks.protocol import Batch, Task
from iterant.training.build import build_network, lr_factor
from iterant.training.device import device_of
from iterant.training.recipe import Recipe
from iterant.training.trainer import Trainer

_PRECISIONS = {"cuda": "bf16"}
"""What a device computes in unless told otherwise; elsewhere, what the recipe says."""

_EPOCH = 1000
"""Updates an epoch, for the warm-up of the rate: as in the first epoch of a run."""


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
    """Measure both steps; what is None is the recipe's. A round is ``steps`` updates each way.

    The figures are what JSON can hold: see `iterant.io.write_result`.
    """
    if min(steps, rounds) < 1:
        raise UsageError(
            f"a measurement needs at least 1 round of at least 1 step, got {rounds} of {steps}"
        )
    where = device_of(device)
    made = registry.task(task) if isinstance(task, str) else task
    base = (
        registry.recipe(recipe, made.spec.name, net)
        if isinstance(recipe, str)
        else recipe.changed(**({"net": net} if net else {}))
    )
    usual = base.changed(precision=_PRECISIONS.get(where.type, base.precision))
    told = {"width": width, "batch": batch, "precision": precision}
    chosen = usual.changed(**{name: value for name, value in told.items() if value is not None})
    problems = made.sample(chosen.batch, size=made.check_size(chosen.size), seed=seed).to(where)
    bench = _Bench(chosen, made, problems, where, seed, steps)
    differs = [*([net] if net else []), *_differences(usual, chosen)]
    figures = {**bench.described(), "differs": differs}
    figures["memory"] = bench.memory() if memory and where.type == "cpu" else None
    ours, ours_memory = bench.warmed(bench.ours)
    plain, plain_memory = bench.warmed(bench.plain)
    if memory and ours_memory is not None and plain_memory is not None:
        figures["memory"] = _compared(ours_memory, plain_memory, "allocated on the GPU, at most")
    took = contest(ours, plain, rounds=rounds, wait=bench.wait, progress=progress)
    return {**figures, **_speeds(took, steps)}


def result_name(figures: dict[str, Any]) -> str:
    """What a result is called: task, device, and whatever differs from the recipe's own."""
    base = f"bench-train-{figures['task']}-{figures['device']}"
    return "-".join([base, *figures["differs"]])


class _Bench:
    """Both sides of one measurement."""

    def __init__(
        self,
        recipe: Recipe,
        task: Task,
        problems: Batch,
        device: torch.device,
        seed: int,
        steps: int,
    ) -> None:
        self.recipe, self.task, self.problems, self.device = recipe, task, problems, device
        self.moments = [Even(seed, update, of=steps) for update in range(steps)]
        self.network, self.network_described = build_network(recipe, task.spec, seed)
        objective = progressive_of(self.network, recipe)
        self.draws = [objective.draw(rng) for rng in self.moments]

    def ours(self) -> Trainer:
        """Our side, from the beginning."""
        return Trainer(self._again(), self.recipe, self.device)

    def plain(self) -> PlainStep:
        """The plain side, from the same beginning, always in float32."""
        return PlainStep(self._again(), replace(self.recipe, precision="fp32"), self.device)

    def _again(self) -> Any:
        described = self.network_described
        return build(described["kind"], described["config"], seed=self.moments[0].seed)

    def wait(self) -> None:
        """Return when the device has done all it was told."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def warmed(
        self, make: Callable[[], Trainer | PlainStep]
    ) -> tuple[Callable[[], None], int | None]:
        """A round of one side, run once so that kernels are chosen and graphs captured.

        On a GPU, with the most that it allocated meanwhile.
        """
        on_gpu = self.device.type == "cuda"
        if on_gpu:
            self.wait()
            before = torch.cuda.memory_allocated(self.device)
            torch.cuda.reset_peak_memory_stats(self.device)
        step, (inputs, targets) = make(), (self.problems.inputs, self.problems.targets)
        factor = lr_factor(self.recipe, 0, _EPOCH)

        def once() -> None:
            for rng in self.moments:
                step.update(inputs, targets, rng, factor)

        once()
        self.wait()
        peak = torch.cuda.max_memory_allocated(self.device) - before if on_gpu else None
        return once, peak

    def memory(self) -> dict[str, Any]:
        """The growth of a process that takes the longest of the steps, either way."""
        longest = max(range(len(self.draws)), key=lambda update: self.draws[update][1])
        request = Request(
            side="ours",
            net=self.network_described,
            recipe=self.recipe.described(),
            inputs=tuple(self.problems.inputs.shape),
            targets=tuple(self.problems.targets.shape),
            update=longest,
            of=len(self.draws),
        )
        ours, plain = (peak_on_cpu(replace(request, side=side)) for side in ("ours", "plain"))
        return _compared(ours, plain, "growth of a process by the longest step")

    def described(self) -> dict[str, Any]:
        """What was measured, on what."""
        recipe, spec = self.recipe, self.task.spec
        mean = [sum(draw[i] for draw in self.draws) / len(self.draws) for i in (0, 1)]
        return {
            "task": spec.name,
            "device": self.device.type,
            "recipe": recipe.name,
            "net": recipe.net,
            "parameters": parameter_count(self.network),
            "inputs": list(self.problems.inputs.shape),
            "iterations": recipe.iterations,
            "alpha": recipe.alpha,
            "precision": {"ours": recipe.precision, "plain": "fp32"},
            "steps a round": len(self.moments),
            "mean of draws": {"n": round(mean[0], 2), "k": round(mean[1], 2)},
            "threads": torch.get_num_threads(),
            "load before": round(os.getloadavg()[0], 2),
        }


def _differences(usual: Recipe, chosen: Recipe) -> list[str]:
    """What was asked to be other than the recipe has it, for a result's name: w64, b10, fp32."""
    signs = {"width": "w", "batch": "b", "precision": ""}
    return [
        f"{sign}{getattr(chosen, field)}"
        for field, sign in signs.items()
        if getattr(chosen, field) != getattr(usual, field)
    ]


def _compared(ours: int, plain: int, what: str) -> dict[str, Any]:
    return {"what": what, "ours": ours, "plain": plain, "ratio": plain / max(ours, 1)}


def _speeds(took: Contest, steps: int) -> dict[str, Any]:
    """Steps a second either way, and their ratio with its spread."""
    sides = {"ours": took.ours, "plain": took.plain}
    speeds = {
        side: Spread.of([steps / seconds for seconds in times]).median
        for side, times in sides.items()
    }
    return {
        "steps per second": speeds,
        "seconds a step": {
            side: [round(seconds / steps, 6) for seconds in times] for side, times in sides.items()
        },
        "ratio": asdict(took.ratio),
    }
