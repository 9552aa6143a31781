"""Benchmarks of training and solving, each against a plain implementation.

    >>> name, figures = bench_train(task="mazes", width=32)
    >>> figures["ratio"]["median"]          # time of the plain step / ours
    >>> write_result(name, figures)

Each function returns the name of the result and its figures. The implementations ("sides") do the
same work in turns: a machine that is busy or hot slows all of them equally, so the figure to quote
is the ratio within a round, with its spread over the rounds.

The plain training step computes what ours computes, in the straightforward way of the reference
implementation: the problem is concatenated and convolved at every iteration; the head reads out
every iteration although training uses only the last; iterations before the trained segment are run
with gradients, which are dropped; the full unroll is run even where α = 1 gives it no weight.
Everything is float32, kernel by kernel. The loss is restated on purpose: a test compares it with
ours.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant import registry
from iterant.errors import UsageError, argument
from iterant.evaluation import Progress
from iterant.nets import PaperNet, parameter_count
from iterant.nets.from_recipe import build_network
from iterant.nets.protocol import Net, depth_of, readout_of
from iterant.rng import StepRng
from iterant.solving import default_max_steps, solve
from iterant.tasks.protocol import Problem
from iterant.tasks.protocol import task as named_task
from iterant.threads import load as machine_load
from iterant.training.objectives import Progressive, build_objective
from iterant.training.optim import build_optimizer, lr_factor
from iterant.training.recipe import Recipe
from iterant.training.recipe import recipe as named_recipe
from iterant.training.trainer import Trainer
from iterant.zoo import load

Result = tuple[str, dict[str, Any]]
"""The name of a result and its figures, for `iterant.io.write_result`."""
Sides = Mapping[str, Callable[[], Any]]
"""The work of each implementation."""
_EPOCH = 1000
"""Optimizer steps per epoch, for the learning rate of the first epoch, which is in warm-up."""


def compare(
    sides: Sides, *, rounds: int, device: torch.device, progress: Progress | None = None
) -> dict[str, list[float]]:
    """The seconds of each side in each round, one side after the other; warm them up before."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for done in range(1, rounds + 1):
        for side, work in sides.items():
            wait()
            start = time.perf_counter()
            work()
            wait()
            seconds[side].append(time.perf_counter() - start)
        if progress is not None:
            progress(done, rounds)
    return seconds


def ratio(slow: Iterable[float], fast: Iterable[float]) -> dict[str, float]:
    """How many times longer ``slow`` took than ``fast``, round by round."""
    ratios = [a / b for a, b in zip(slow, fast, strict=True)]
    return {"median": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}


def peak_memory(work: Callable[[], Any], device: torch.device) -> int:
    """Do this work; the most bytes that it allocated on the GPU at a time, 0 on a CPU."""
    if device.type != "cuda":
        work()
        return 0
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    work()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


def machine() -> dict[str, Any]:
    """Conditions that affect times: the threads of torch and the load of the machine."""
    return {"threads": torch.get_num_threads(), "load before": round(machine_load(), 2)}


def bench_train(
    *,
    task: str = "prefix-sums",
    recipe: str = "paper",
    net: str | None = None,
    steps: int = 20,
    rounds: int = 5,
    device: str = "auto",
    seed: int = 0,
    memory: bool = True,
    progress: Progress | None = None,
    **changes: Any,
) -> Result:
    """Compare our training step with the plain one.

    A round is ``steps`` optimizer steps of each side, from the same weights, on the same problems
    and with the same n and k, which are spread evenly over the recipe's range. Ours is the
    `Trainer` of a training run: on a GPU with CUDA graphs and, unless ``precision`` says otherwise,
    in bf16. ``changes``: width, batch_size and precision, if they are not the recipe's.
    """
    target, task_object = registry.device(device), named_task(task)
    usual = named_recipe(recipe, task_object.spec.name, net)
    usual = usual.changed(precision="bf16") if target.type == "cuda" else usual
    full_recipe = usual.changed(
        **{key: value for key, value in changes.items() if value is not None}
    )
    net_object, _ = build_network(full_recipe.described(), task_object.spec, seed)
    batch = task_object.sample(
        full_recipe.batch_size, size=task_object.check_size(full_recipe.size), seed=seed
    )
    inputs, targets = batch.inputs.to(target), batch.targets.to(target)
    plain = PlainStep(net_object, full_recipe, target)  # copies the network, so it comes first
    ours, factor = Trainer(net_object, full_recipe, target), lr_factor(full_recipe, 0, _EPOCH)
    draws = [EvenRng(seed, step, of=steps) for step in range(steps)]
    pairs = [plain.objective.draw(rng) for rng in draws]  # n and k of every step
    sides: Sides = {
        "ours": lambda: [ours.step(inputs, targets, rng, factor) for rng in draws],
        "plain": lambda: [plain.step(inputs, targets, rng, factor) for rng in draws],
    }
    differs = [net] if net else []
    for name, sign in {"width": "w", "batch_size": "b", "precision": ""}.items():
        if getattr(full_recipe, name) != getattr(usual, name):
            differs.append(f"{sign}{getattr(full_recipe, name)}")
    conditions = machine()
    # Kernels are chosen and graphs captured in this first round.
    peaks = {side: peak_memory(work, target) for side, work in sides.items()}
    quotient = peaks["plain"] / max(peaks["ours"], 1)
    peak = {"what": "allocated on the GPU", **peaks, "ratio": quotient}
    times = compare(sides, rounds=rounds, device=target, progress=progress)
    speeds = {side: steps / statistics.median(seconds) for side, seconds in times.items()}
    figures = {
        "task": task_object.spec.name,
        "device": target.type,
        "recipe": full_recipe.name,
        "net": full_recipe.net,
        "parameters": parameter_count(net_object),
        "inputs": list(batch.inputs.shape),
        "iterations": full_recipe.iterations,
        "alpha": full_recipe.alpha,
        "precision": {"ours": full_recipe.precision, "plain": "fp32"},
        "steps a round": steps,
        "mean of draws": {
            name: round(statistics.fmean(column), 2)
            for name, column in zip("nk", zip(*pairs, strict=True), strict=True)
        },
        **conditions,
        "differs": differs,
        "memory": peak if memory and peaks["plain"] else None,
        "steps per second": speeds,
        "seconds a step": {
            side: [round(one / steps, 6) for one in seconds] for side, seconds in times.items()
        },
        "ratio": ratio(times["plain"], times["ours"]),
    }
    return "-".join(["bench-train", task_object.spec.name, target.type, *differs]), figures


class Dense:
    """A wrapper that `accelerate` does not recognise, so that the network stays dense."""

    def __init__(self, net: Net) -> None:
        self.readout, self.depth = readout_of(net), depth_of(net)
        self.read, self.start, self.step, self.answer = net.read, net.start, net.step, net.answer


def bench_solve(
    *,
    task: str = "mazes",
    run: str | None = None,
    size: str | None = None,
    count: int = 10,
    rounds: int = 3,
    device: str = "auto",
    seed: int = 0,
    trust: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Compare `iterant.solve` with the same on the dense network.

    ``run``: weights, None for the shipped ones. The dense network computes every cell at every
    iteration, with the same halting rule; it gets one round, since it is far slower.
    """
    target, task_object = registry.device(device), named_task(task)
    net = load(run or task_object.spec.name, target, trust=trust)
    problem_size = task_object.check_size(None) if size is None else task_object.parse_size(size)
    batch = task_object.sample(count, size=problem_size, seed=seed)
    inputs, dense = batch.inputs.to(target), Dense(net)
    budget = default_max_steps(task_object, Problem(batch[:1]))
    answer = solve(net, inputs, max_steps=budget)  # kernels are compiled here
    solve(dense, inputs, max_steps=min(budget, 20))
    conditions = machine()
    sides = {"solve": lambda: solve(net, inputs, max_steps=budget)}
    times = compare(sides, rounds=rounds, device=target, progress=progress)
    start = time.perf_counter()
    plain = solve(dense, inputs, max_steps=budget)
    times["dense"] = [time.perf_counter() - start]
    iterations, plain_iterations = int(answer.steps.max()), int(plain.steps.max())
    seconds = {side: statistics.median(each) for side, each in times.items()}
    figures = {
        "task": task_object.spec.name,
        "device": target.type,
        "size": problem_size,
        "problems": len(batch),
        "parameters": parameter_count(net),
        **conditions,
        "iterations of the slowest problem": iterations,
        "settled": int(answer.settled.sum()),
        "solved": int(task_object.solved(answer.prediction.cpu(), batch).sum()),
        "answers that differ from the dense network's": int(
            (plain.prediction != answer.prediction).flatten(1).any(dim=1).sum()
        ),
        "largest difference of iterations": int((plain.steps - answer.steps).abs().max()),
        "seconds": seconds,
        "milliseconds an iteration": {
            "solve": 1e3 * seconds["solve"] / iterations,
            "dense": 1e3 * seconds["dense"] / plain_iterations,
        },
        "ratio": {"dense / solve": ratio(times["dense"] * rounds, times["solve"])},
    }
    return (
        f"bench-solve-{task_object.spec.name}-{target.type}-{len(batch)}-of-{problem_size}",
        figures,
    )


_GOLDEN = 0.618033988749895
"""The fractional parts of its multiples are evenly spread, however many there are."""


@dataclass(frozen=True)
class EvenRng(StepRng):
    """Draws n and k of the progressive loss, spread evenly over their range within ``of`` steps.

    A few random draws may happen to be long or short; these have the mean length.
    """

    of: int

    def integer(self, low: int, high: int, what: str) -> int:
        if what == "prefix":
            fraction = (self.step + 0.5) / self.of
        else:
            fraction = (self.step * _GOLDEN + 0.5) % 1.0
        return low + int(fraction * (high - low + 1))


def iterate(net: PaperNet, inputs: Tensor, features: Tensor, index: int) -> Tensor:
    """(N, width, *space) features before -> after iteration ``index``; inputs (N, C, *space)."""
    if net.recall is not None:
        convolve = functional.conv1d if net.config.dims == 1 else functional.conv2d
        features = convolve(torch.cat([features, inputs], dim=1), net.recall.weight, padding=1)
        if net.config.recall_relu:
            features = torch.relu(features)
    after: Tensor = net.blocks_of(index)(features)
    return after


def plain_loss(
    net: PaperNet, inputs: Tensor, targets: Tensor, recipe: Recipe, n: int, k: int
) -> Tensor:
    """The paper's Algorithm 1 for given n and k: a scalar with its graph."""

    def unroll(features: Tensor, first: int, stop: int) -> tuple[Tensor, Tensor]:
        logits = features.new_empty(0)
        for index in range(first, stop):
            features = iterate(net, inputs, features, index)
            logits = net.head(features)
        return logits, features

    def cross_entropy(logits: Tensor) -> Tensor:
        losses = functional.cross_entropy(
            logits, targets, reduction="none", label_smoothing=recipe.label_smoothing
        )
        counted = net.readout.counted(inputs)
        return losses.mean() if counted is None else losses[counted].mean()

    alpha = recipe.alpha
    start = torch.relu(net.projection(inputs))
    full, _ = unroll(start, 0, recipe.iterations)
    loss = (1 - alpha) * cross_entropy(full) if alpha != 1 else inputs.new_zeros(())
    if alpha != 0:
        prefix = unroll(start, 0, n)[1].detach() if n else start
        segment, _ = unroll(prefix, n, n + k)
        loss = loss + alpha * cross_entropy(segment)
    return loss


def progressive_of(net: Net, recipe: Recipe) -> Progressive:
    """The recipe's objective, if the plain step can train this network by it."""
    objective = build_objective(recipe)
    if not isinstance(objective, Progressive) or not isinstance(net, PaperNet):
        raise UsageError(
            f"the plain step trains the paper's networks by its progressive loss, not "
            f"{recipe.net!r} by {recipe.objective!r}; choose {argument('recipe', 'paper')}"
        )
    return objective


class PlainStep:
    """Optimizer steps on a copy of a network."""

    def __init__(self, net: Net, recipe: Recipe, device: torch.device) -> None:
        self.recipe, self.objective = recipe, progressive_of(net, recipe)
        copied: Any = copy.deepcopy(net)
        self.net: PaperNet = copied.to(device)
        self.optimizer = build_optimizer(recipe, self.net)
        for group in self.optimizer.param_groups:
            group["fused"] = None  # torch's default
        for weight in self.net.parameters():
            # As in our step: weight decay also reaches the projection in steps with n > 0.
            weight.grad = torch.zeros_like(weight)

    def step(self, inputs: Tensor, targets: Tensor, rng: StepRng, lr_factor: float) -> Tensor:
        """One optimizer step at ``lr_factor`` times the learning rate; returns the loss."""
        self.optimizer.zero_grad(set_to_none=False)
        n, k = self.objective.draw(rng)
        loss = plain_loss(self.net, inputs, targets, self.recipe, n, k)
        torch.autograd.backward(loss)
        if self.recipe.grad_clip is not None:
            nn.utils.clip_grad_norm_(self.net.parameters(), self.recipe.grad_clip)
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.lr * group["lr_factor"] * lr_factor
        self.optimizer.step()
        return loss.detach()
