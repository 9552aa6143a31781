"""Benchmarks of training, evaluation, solving and several processes, each against a baseline.

    >>> options = EvaluateOptions(task="mazes", width=32, size="13", count=50, steps=50)
    >>> name, figures = bench_evaluate(options)
    >>> figures["ratio"]["median"]          # time of the plain evaluation / ours
    >>> write_result(name, figures)

Each function returns the name of the result and its figures.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from iterant import registry
from iterant.bench.compare import (
    SIDES,
    Progress,
    Work,
    compare,
    in_new_process,
    machine,
    medians,
    peak_memory,
    ratio,
)
from iterant.bench.options import EvaluateOptions, ScaleOptions, SolveOptions, TrainOptions
from iterant.bench.plain import EvenRng, PlainStep, plain_curve, progressive_of
from iterant.errors import UsageError
from iterant.evaluation import budget_of, evaluate_batch
from iterant.halting import StableAnswer
from iterant.nets import DeepThinking, FeedForward, parameter_count
from iterant.nets.protocol import Net, depth_of, readout_of
from iterant.rng import StepRng
from iterant.solving import budget_for, check_fits, solutions, solve
from iterant.tasks.inputs import Problem
from iterant.tasks.protocol import Batch, Size, Task
from iterant.training.distributed import ProcessGroup
from iterant.training.optim import lr_factor
from iterant.training.recipe import Recipe
from iterant.training.recipe import recipe as named_recipe
from iterant.training.trainer import Trainer, build_network
from iterant.zoo import load

Result = tuple[str, dict[str, Any]]
"""The name of a result and its figures, for `iterant.io.write_result`."""
_EPOCH = 1000
"""Updates per epoch, for the warm-up of the learning rate: as in the first epoch of a run."""
_WARM_UP = 3
"""Updates before those that are timed, of several processes."""


def bench_train(options: TrainOptions, progress: Progress | None = None) -> Result:
    """Compare our training step with the plain one; options that are None are the recipe's.

    A round is ``steps`` updates of each side, from the same weights, on the same problems and with
    the same n and k, which are spread evenly over the recipe's range. Ours is the `Trainer`
    of a training run: on a GPU with CUDA graphs and, unless ``precision`` says otherwise, in bf16.
    """
    steps, seed = options.steps, options.seed
    if steps < 1:
        raise UsageError(f"a round needs at least 1 step, got {steps}")
    device, spec = registry.device(options.device), registry.task(options.task).spec
    usual = named_recipe(options.recipe, spec.name, options.net)
    usual = usual.changed(precision="bf16") if device.type == "cuda" else usual
    recipe = _changed(usual, options, "width", "batch", "precision")
    network, _ = build_network(recipe, spec, seed)
    objective = progressive_of(network, recipe)
    draws = [objective.draw(EvenRng(seed, update, of=steps)) for update in range(steps)]
    sides = training(device, options, recipe, list(range(steps)))
    differs = [options.net] if options.net else []
    for name, sign in {"width": "w", "batch": "b", "precision": ""}.items():
        if getattr(recipe, name) != getattr(usual, name):
            differs.append(f"{sign}{getattr(recipe, name)}")
    figures = {
        "task": spec.name,
        "device": device.type,
        "recipe": recipe.name,
        "net": recipe.net,
        "parameters": parameter_count(network),
        "inputs": list(_problems(options.task, recipe, recipe.batch, seed).inputs.shape),
        "iterations": recipe.iterations,
        "alpha": recipe.alpha,
        "precision": {"ours": recipe.precision, "plain": "fp32"},
        "steps a round": steps,
        "mean of draws": {
            name: round(sum(draw[i] for draw in draws) / steps, 2) for i, name in enumerate("nk")
        },
        **machine(),
        "differs": differs,
        "memory": None,
    }
    if options.memory:  # of the longest step; on a GPU the graphs of all steps stay
        longest = max(range(steps), key=lambda update: draws[update][1])
        updates = [longest] if device.type == "cpu" else list(range(steps))
        figures["memory"] = peak_memory(training, device, options, recipe, updates)
    for work in sides.values():
        work()  # kernels are chosen and graphs captured here
    times = compare(sides, rounds=options.rounds, device=device, progress=progress)
    figures["steps per second"] = {side: steps / median for side, median in medians(times).items()}
    figures["seconds a step"] = {
        side: [round(seconds / steps, 6) for seconds in rounds] for side, rounds in times.items()
    }
    figures["ratio"] = ratio(times["plain"], times["ours"])
    return "-".join(["bench-train", spec.name, device.type, *differs]), figures


def training(
    device: torch.device, options: TrainOptions, recipe: Recipe, updates: list[int]
) -> dict[str, Work]:
    """The work of these training updates of a round, by side."""
    batch = _problems(options.task, recipe, recipe.batch, options.seed).to(device)
    network, _ = build_network(recipe, registry.task(options.task).spec, options.seed)
    factor = lr_factor(recipe, 0, _EPOCH)
    draws = [EvenRng(options.seed, update, of=options.steps) for update in updates]

    def side(step: Trainer | PlainStep) -> Work:
        return lambda: [step.step(batch.inputs, batch.targets, rng, factor) for rng in draws]

    plain = PlainStep(network, recipe, device)  # copies the network, so it comes first
    return {"ours": side(Trainer(network, recipe, device)), "plain": side(plain)}


def _changed(recipe: Recipe, options: object, *names: str) -> Recipe:
    """The recipe with those of the named options that are not None."""
    values = {name: getattr(options, name) for name in names}
    return recipe.changed(**{name: value for name, value in values.items() if value is not None})


def _problems(task: str, recipe: Recipe, count: int, seed: int) -> Batch:
    """New training problems of a recipe."""
    source = registry.task(task)
    return source.sample(count, size=source.check_size(recipe.size), seed=seed)


def _size(task: Task, text: str | None) -> Size:
    return task.check_size(None) if text is None else task.parse_size(text)


def bench_evaluate(options: EvaluateOptions, progress: Progress | None = None) -> Result:
    """Compare our evaluation with the plain one; without ``run`` the network has random weights.

    Both give the same curve. A trained network (``run``) is also evaluated with a halting rule,
    which saves most of the time.
    """
    device, trained = registry.device(options.device), options.run is not None
    net, task, batch = _evaluated(device, options)
    peaks = peak_memory(evaluation, device, options) if options.memory else None
    sides = evaluation(device, options)
    curve, plain_solved, halted = (work() for work in sides.values())
    if not trained:
        del sides["halting"]
    times = compare(sides, rounds=options.rounds, device=device, progress=progress)
    seconds, iterations = medians(times), budget_of(net, options.steps)
    name, width = task.spec.name, net.config.width
    figures = {
        "task": name,
        "device": device.type,
        "net": type(net).__name__ if trained else options.net,
        "trained": trained,
        "width": width,
        "parameters": parameter_count(net),
        "inputs": list(batch.inputs.shape),
        "iterations": iterations,
        "problems counted differently": int((curve.solved - plain_solved).abs().max()),
        "not finite": curve.broken,
        **machine(),
        "iterations per second": {side: len(batch) * iterations / seconds[side] for side in SIDES},
        "seconds to the curve": {side: seconds[side] for side in SIDES},
        "ratio": ratio(times["plain"], times["ours"]),
        "memory": peaks,
    }
    if trained:
        figures["with halting"] = {
            "rule": str(StableAnswer()),
            "mean iterations": float(halted.iterations[-1]),
            "accuracy": {"halting": halted.end, "all iterations": curve.end},
            "ratio": ratio(times["plain"], times["halting"]),
            "seconds to the curve": {"ours": seconds["halting"], "plain": seconds["plain"]},
        }
    return f"bench-evaluate-{name}-{device.type}-w{width}{'-trained' * trained}", figures


def evaluation(device: torch.device, options: EvaluateOptions) -> dict[str, Callable[[], Any]]:
    """The work of the same evaluation, by side."""
    net, task, batch = _evaluated(device, options)
    budget, rule = budget_of(net, options.steps), StableAnswer()
    return {
        "ours": lambda: evaluate_batch(net, task, batch, steps=budget),
        "plain": lambda: plain_curve(net, task, batch, budget),
        "halting": lambda: evaluate_batch(net, task, batch, steps=budget, rule=rule),
    }


def _evaluated(
    device: torch.device, options: EvaluateOptions
) -> tuple[DeepThinking | FeedForward, Task, Batch]:
    """The network, the task and the problems."""
    task, net = registry.task(options.task), None
    if options.run is None:
        recipe = _changed(named_recipe("paper", task.spec.name, options.net), options, "width")
        net = build_network(recipe, task.spec, options.seed)[0]
    else:
        net = load(options.run)
    if not isinstance(net, DeepThinking | FeedForward):
        raise UsageError(
            f"there is no plain way for a {type(net).__name__}; give a run of dt, dt-recall, "
            "ff or ff-recall"
        )
    check_fits(net, task)
    batch = task.sample(options.count, size=_size(task, options.size), seed=options.seed)
    return net.to(device), task, batch.to(device)


class Dense:
    """A wrapper that `accelerate` does not recognise, so that the network stays dense."""

    def __init__(self, net: Net) -> None:
        """Wrap this network."""
        self.readout, self.depth = readout_of(net), depth_of(net)
        self.read, self.start, self.step, self.answer = net.read, net.start, net.step, net.answer


def bench_solve(options: SolveOptions, progress: Progress | None = None) -> Result:
    """Compare `iterant.solve` with `iterant solve` (the command) and with the dense network.

    ``run``: weights, None for the shipped ones. The dense network computes every cell at every
    iteration, with the same halting rule; it gets one round, since it is far slower. The seconds of
    the command are those that it reports: without reading, drawing and checking.
    """
    device, task, count = (
        registry.device(options.device),
        registry.task(options.task),
        options.count,
    )
    net, size = load(options.run or task.spec.name, device), _size(task, options.size)
    batch = task.sample(count, size=size, seed=options.seed)
    problems = [Problem(batch[row : row + 1]) for row in range(count)]
    inputs, dense, command_seconds = batch.inputs.to(device), Dense(net), list[float]()
    budget = budget_for(task, problems[0])

    def run_command() -> None:
        results = solutions(net, task, problems, max_steps=budget)
        command_seconds.append(sum(solution.seconds for solution in results))

    answer = solve(net, inputs, max_steps=budget)  # kernels are compiled here
    sides = {"solve": lambda: solve(net, inputs, max_steps=budget), "command": run_command}
    times = compare(sides, rounds=options.rounds, device=device, progress=progress)
    solve(dense, inputs, max_steps=min(budget, 20))
    start = time.perf_counter()
    plain = solve(dense, inputs, max_steps=budget)
    iterations, plain_iterations = int(answer.steps.max()), int(plain.steps.max())
    times |= {"command": command_seconds, "dense": [time.perf_counter() - start]}
    seconds = medians(times)
    figures = {
        "task": task.spec.name,
        "device": device.type,
        "size": size,
        "problems": count,
        "parameters": parameter_count(net),
        **machine(),
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
        "ratio": {
            "solve / command": ratio(times["solve"], command_seconds),
            "dense / solve": ratio(times["dense"] * options.rounds, times["solve"]),
        },
    }
    return f"bench-solve-{task.spec.name}-{device.type}-{count}-of-{size}", figures


def bench_scale(options: ScaleOptions, progress: Progress | None = None) -> Result:
    """Updates per second of several CPU processes on one run, and the share of communication.

    Strong scaling: the batch stays the same and is divided, as in training itself, with one
    all-reduce of the gradients per update. Communication ("talking") includes waiting for the
    slowest process. Each process has one thread; the first number of processes is what the others
    are compared with. Medians over the rounds.
    """
    processes, rounds = options.processes, options.rounds
    if options.updates < 1 or rounds < 1 or not processes or min(processes) < 1:
        raise UsageError("at least one update, round and process are needed")
    load_before = os.getloadavg()[0]
    results: dict[int, list[dict[str, Any]]] = {count: [] for count in processes}  # a dict a round
    for done in range(1, rounds + 1):
        for count in processes:
            results[count].append(in_new_process(scaling, options, processes=count))
        if progress is not None:
            progress(done, rounds)
    rows, base = {}, 0.0
    for count, round_results in results.items():
        speeds = [result["updates per second"] for result in round_results]
        speed = statistics.median(speeds)
        base = base or speed
        rows[str(count)] = {
            "updates per second": speed,
            "lowest": min(speeds),
            "highest": max(speeds),
            "times faster": speed / base,
            "efficiency": speed / base * processes[0] / count,
            "talking": statistics.median(result["talking"] for result in round_results),
            "CPU seconds an update": statistics.median(
                result["CPU seconds"] for result in round_results
            ),
        }
    first = results[processes[0]][0]
    return f"bench-scale-{options.task}-cpu", {
        "task": options.task,
        "recipe": options.recipe,
        "updates": options.updates,
        "rounds": rounds,
        **{key: first[key] for key in ("net", "parameters", "batch", "bytes an update")},
        "threads a process": 1,
        "load before": load_before,
        "processes": rows,
    }


class _TimedGroup(ProcessGroup):
    """A process group that adds up the seconds of its communication."""

    seconds = 0.0

    def _communicate(self, call: Callable[[], object]) -> None:
        start = time.perf_counter()
        super()._communicate(call)
        _TimedGroup.seconds += time.perf_counter() - start


def scaling(options: ScaleOptions) -> dict[str, Any]:
    """Run in each process: a few updates to warm up, then those that are timed."""
    torch.set_num_threads(1)
    cpu, spec = torch.device("cpu"), registry.task(options.task).spec
    group = _TimedGroup(cpu) if int(os.environ.get("WORLD_SIZE", "1")) > 1 else None
    recipe = _changed(named_recipe(options.recipe, spec.name), options, "width", "batch")
    net, _ = build_network(recipe, spec, 0)
    trainer = Trainer(net, recipe, cpu, group)
    batch = _problems(options.task, recipe, trainer.objective.new_problems, 0)
    for update in range(_WARM_UP + options.updates):
        if update == _WARM_UP:
            communication = _TimedGroup.seconds
            start, cpu_start = time.perf_counter(), time.process_time()
        trainer.step(batch.inputs, batch.targets, StepRng(0, update), 1.0)
    seconds, parameters = time.perf_counter() - start, parameter_count(net)
    return {
        "net": recipe.net,
        "parameters": parameters,
        "batch": recipe.batch,
        "bytes an update": 4 * parameters,
        "updates per second": options.updates / seconds,
        "talking": (_TimedGroup.seconds - communication) / seconds,
        "CPU seconds": (time.process_time() - cpu_start) / options.updates,
    }
