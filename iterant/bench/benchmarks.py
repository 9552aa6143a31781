"""Benchmarks of training, evaluation and solving, each against a plain implementation.

    >>> options = EvaluateOptions(task="mazes", width=32, size="13", count=50, steps=50)
    >>> name, figures = bench_evaluate(options)
    >>> figures["ratio"]["median"]          # time of the plain evaluation / ours
    >>> write_result(name, figures)

Each function returns the name of the result and its figures. The implementations ("sides") do the
same work in turns: a machine that is busy or hot slows all of them equally, so the figure to quote
is the ratio within a round, with its spread over the rounds.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from iterant import registry
from iterant.bench.options import EvaluateOptions, SolveOptions, TrainOptions
from iterant.bench.plain import EvenRng, PlainStep, plain_curve, progressive_of
from iterant.errors import UsageError
from iterant.evaluation import budget_of, evaluate_batch
from iterant.halting import StableAnswer
from iterant.nets import DeepThinking, FeedForward, parameter_count
from iterant.nets.from_recipe import build_network
from iterant.nets.protocol import Net, depth_of, readout_of
from iterant.solving import budget_for, check_fits, solve
from iterant.tasks.protocol import Problem, Size, Task
from iterant.tasks.user import task as named_task
from iterant.training.optim import lr_factor
from iterant.training.recipe import Recipe
from iterant.training.recipe import recipe as named_recipe
from iterant.training.trainer import Trainer
from iterant.zoo import load

Result = tuple[str, dict[str, Any]]
"""The name of a result and its figures, for `iterant.io.write_result`."""
Sides = Mapping[str, Callable[[], Any]]
"""The work of each implementation."""
Progress = Callable[[int, int], None]
"""Called with the number of rounds done and of all rounds."""
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


def peak_memory(prepare: Callable[[], Sides], device: torch.device) -> dict[str, Any] | None:
    """Peak bytes on the GPU of ours and the plain side, and their ratio; None on a CPU."""
    if device.type != "cuda":
        return None
    peaks = {}
    for side in ("ours", "plain"):
        work = prepare()[side]
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        torch.cuda.synchronize(device)
        peaks[side] = torch.cuda.max_memory_allocated(device) - before
    ratio = peaks["plain"] / max(peaks["ours"], 1)
    return {"what": "allocated on the GPU", **peaks, "ratio": ratio}


def machine() -> dict[str, Any]:
    """Conditions that affect times: the threads of torch and the load of the machine."""
    return {"threads": torch.get_num_threads(), "load before": round(os.getloadavg()[0], 2)}


def bench_train(options: TrainOptions, progress: Progress | None = None) -> Result:
    """Compare our training step with the plain one; options that are None are the recipe's.

    A round is ``steps`` optimizer steps of each side, from the same weights, on the same problems
    and with the same n and k, which are spread evenly over the recipe's range. Ours is the
    `Trainer` of a training run: on a GPU with CUDA graphs and, unless ``precision`` says otherwise,
    in bf16.
    """
    steps, seed = options.steps, options.seed
    device, task = registry.device(options.device), named_task(options.task)
    usual = named_recipe(options.recipe, task.spec.name, options.net)
    usual = usual.changed(precision="bf16") if device.type == "cuda" else usual
    recipe = _changed(usual, options, "width", "batch", "precision")
    network, _ = build_network(recipe.described(), task.spec, seed)
    batch = task.sample(recipe.batch_size, size=task.check_size(recipe.size), seed=seed)
    draws = [EvenRng(seed, step, of=steps) for step in range(steps)]
    pairs = [progressive_of(network, recipe).draw(rng) for rng in draws]  # n and k of every step

    def prepare() -> Sides:
        net, _ = build_network(recipe.described(), task.spec, seed)
        plain = PlainStep(net, recipe, device)  # copies the network, so it comes first
        ours, factor = Trainer(net, recipe, device), lr_factor(recipe, 0, _EPOCH)
        inputs, targets = batch.inputs.to(device), batch.targets.to(device)
        return {
            "ours": lambda: [ours.step(inputs, targets, rng, factor) for rng in draws],
            "plain": lambda: [plain.step(inputs, targets, rng, factor) for rng in draws],
        }

    differs = [options.net] if options.net else []
    for name, sign in {"width": "w", "batch_size": "b", "precision": ""}.items():
        if getattr(recipe, name) != getattr(usual, name):
            differs.append(f"{sign}{getattr(recipe, name)}")
    conditions = machine()
    memory = peak_memory(prepare, device) if options.memory else None
    sides = prepare()
    for work in sides.values():
        work()  # kernels are chosen and graphs captured here
    times = compare(sides, rounds=options.rounds, device=device, progress=progress)
    speeds = {side: steps / statistics.median(rounds) for side, rounds in times.items()}
    figures = {
        "task": task.spec.name,
        "device": device.type,
        "recipe": recipe.name,
        "net": recipe.net,
        "parameters": parameter_count(network),
        "inputs": list(batch.inputs.shape),
        "iterations": recipe.iterations,
        "alpha": recipe.alpha,
        "precision": {"ours": recipe.precision, "plain": "fp32"},
        "steps a round": steps,
        "mean of draws": {
            name: round(statistics.fmean(column), 2)
            for name, column in zip("nk", zip(*pairs, strict=True), strict=True)
        },
        **conditions,
        "differs": differs,
        "memory": memory,
        "steps per second": speeds,
        "seconds a step": {
            side: [round(seconds / steps, 6) for seconds in rounds]
            for side, rounds in times.items()
        },
        "ratio": ratio(times["plain"], times["ours"]),
    }
    return "-".join(["bench-train", task.spec.name, device.type, *differs]), figures


def _changed(recipe: Recipe, options: object, *names: str) -> Recipe:
    """The recipe with those of the named options that are not None."""
    values = {name: getattr(options, name) for name in names}
    return recipe.changed(**{name: value for name, value in values.items() if value is not None})


def _size(task: Task, text: str | None) -> Size:
    return task.check_size(None) if text is None else task.parse_size(text)


def bench_evaluate(options: EvaluateOptions, progress: Progress | None = None) -> Result:
    """Compare our evaluation with the plain one; without ``run`` the network has random weights.

    Both give the same curve. A trained network (``run``) is also evaluated with a halting rule,
    which saves most of the time.
    """
    device, trained = registry.device(options.device), options.run is not None
    task = named_task(options.task)
    if options.run is not None:
        net = load(options.run)
    else:
        recipe = _changed(named_recipe("paper", task.spec.name, options.net), options, "width")
        net, _ = build_network(recipe.described(), task.spec, options.seed)
    if not isinstance(net, DeepThinking | FeedForward):
        raise UsageError(
            f"there is no plain way for a {type(net).__name__}; give a run of dt, dt-recall, "
            "ff or ff-recall"
        )
    check_fits(net.to(device), task)
    size = _size(task, options.size)
    batch = task.sample(options.count, size=size, seed=options.seed).to(device)
    steps, rule = budget_of(net, options.steps), StableAnswer()
    sides: dict[str, Callable[[], Any]] = {
        "ours": lambda: evaluate_batch(net, task, batch, steps=steps),
        "plain": lambda: plain_curve(net, task, batch, steps),
    }
    if trained:
        sides["halting"] = lambda: evaluate_batch(net, task, batch, steps=steps, rule=rule)
    memory = peak_memory(lambda: sides, device) if options.memory else None
    curve, plain_solved, *halted = (work() for work in sides.values())
    conditions = machine()
    times = compare(sides, rounds=options.rounds, device=device, progress=progress)
    name, width = task.spec.name, net.config.width
    seconds = {side: statistics.median(rounds) for side, rounds in times.items()}
    figures = {
        "task": name,
        "device": device.type,
        "net": type(net).__name__ if trained else options.net,
        "trained": trained,
        "width": width,
        "parameters": parameter_count(net),
        "inputs": list(batch.inputs.shape),
        "iterations": steps,
        "problems counted differently": int((curve.solved - plain_solved).abs().max()),
        "not finite": curve.broken,
        **conditions,
        "iterations per second": {
            side: len(batch) * steps / seconds[side] for side in ("ours", "plain")
        },
        "seconds to the curve": {side: seconds[side] for side in ("ours", "plain")},
        "ratio": ratio(times["plain"], times["ours"]),
        "memory": memory,
    }
    if trained:
        figures["with halting"] = {
            "rule": str(rule),
            "mean iterations": float(halted[0].iterations[-1]),
            "accuracy": {"halting": halted[0].end, "all iterations": curve.end},
            "ratio": ratio(times["plain"], times["halting"]),
            "seconds to the curve": {"ours": seconds["halting"], "plain": seconds["plain"]},
        }
    return f"bench-evaluate-{name}-{device.type}-w{width}{'-trained' * trained}", figures


class Dense:
    """A wrapper that `accelerate` does not recognise, so that the network stays dense."""

    def __init__(self, net: Net) -> None:
        self.readout, self.depth = readout_of(net), depth_of(net)
        self.read, self.start, self.step, self.answer = net.read, net.start, net.step, net.answer


def bench_solve(options: SolveOptions, progress: Progress | None = None) -> Result:
    """Compare `iterant.solve` with the same on the dense network.

    ``run``: weights, None for the shipped ones. The dense network computes every cell at every
    iteration, with the same halting rule; it gets one round, since it is far slower.
    """
    device, task = registry.device(options.device), named_task(options.task)
    net = load(options.run or task.spec.name, device, trust=options.trust_code)
    size = _size(task, options.size)
    batch = task.sample(options.count, size=size, seed=options.seed)
    inputs, dense = batch.inputs.to(device), Dense(net)
    budget = budget_for(task, Problem(batch[:1]))
    answer = solve(net, inputs, max_steps=budget)  # kernels are compiled here
    solve(dense, inputs, max_steps=min(budget, 20))
    conditions = machine()
    sides = {"solve": lambda: solve(net, inputs, max_steps=budget)}
    times = compare(sides, rounds=options.rounds, device=device, progress=progress)
    start = time.perf_counter()
    plain = solve(dense, inputs, max_steps=budget)
    times["dense"] = [time.perf_counter() - start]
    iterations, plain_iterations = int(answer.steps.max()), int(plain.steps.max())
    seconds = {side: statistics.median(rounds) for side, rounds in times.items()}
    figures = {
        "task": task.spec.name,
        "device": device.type,
        "size": size,
        "problems": len(batch),
        "parameters": parameter_count(net),
        **conditions,
        "iterations of the slowest problem": iterations,
        "settled": int(answer.settled.sum()),
        "solved": int(task.solved(answer.prediction.cpu(), batch).sum()),
        "answers that differ from the dense network's": int(
            (plain.prediction != answer.prediction).flatten(1).any(dim=1).sum()
        ),
        "largest difference of iterations": int((plain.steps - answer.steps).abs().max()),
        "seconds": seconds,
        "milliseconds an iteration": {
            "solve": 1e3 * seconds["solve"] / iterations,
            "dense": 1e3 * seconds["dense"] / plain_iterations,
        },
        "ratio": {"dense / solve": ratio(times["dense"] * options.rounds, times["solve"])},
    }
    return f"bench-solve-{task.spec.name}-{device.type}-{len(batch)}-of-{size}", figures
