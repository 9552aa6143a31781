"""Training, evaluation, solving and several processes, each beside another way of doing the same.

    >>> name, figures = bench_evaluate("mazes", width=32, size=13, count=50, steps=50)
    >>> figures["ratio"]["median"]          # how many times sooner the whole curve is there
    >>> write_result(name, figures)

Each function returns the name of the result and its figures.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
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
from iterant.bench.plain import EvenRng, PlainStep, plain_curve, progressive_of
from iterant.errors import UsageError
from iterant.evaluation import budget_of, evaluate_batch
from iterant.halting import StableAnswer
from iterant.nets import DeepThinking, FeedForward, build, parameter_count
from iterant.nets.factory import variant_config
from iterant.nets.protocol import Net, depth_of, readout_of
from iterant.rng import StepRng
from iterant.solving import budget_for, check_fits, solutions, solve
from iterant.tasks.inputs import Problem
from iterant.tasks.protocol import Batch
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


def bench_train(
    task: str = "prefix-sums",
    *,
    recipe: str = "paper",
    net: str | None = None,
    width: int | None = None,
    batch: int | None = None,
    steps: int = 20,
    rounds: int = 5,
    device: str = "auto",
    precision: str | None = None,
    seed: int = 0,
    memory: bool = True,
    progress: Progress | None = None,
) -> Result:
    """Our training step beside the plain one; None: as in the recipe.

    A round is ``steps`` updates of each side, from the same weights, on the same problems and with
    the same n and k, which are spread evenly over what the recipe may draw. Ours is the `Trainer`
    of a training run: on a GPU with CUDA graphs and, unless ``precision`` says otherwise, in bf16.
    """
    if steps < 1:
        raise UsageError(f"a round needs at least 1 step, got {steps}")
    where, spec = registry.device(device), registry.task(task).spec
    usual = named_recipe(recipe, spec.name, net)
    usual = usual.changed(precision="bf16") if where.type == "cuda" else usual
    changes = {"width": width, "batch": batch, "precision": precision}
    chosen = usual.changed(**{name: value for name, value in changes.items() if value is not None})
    network, _ = build_network(chosen, spec, seed)
    objective = progressive_of(network, chosen)
    draws = [objective.draw(EvenRng(seed, update, of=steps)) for update in range(steps)]
    how: dict[str, Any] = {"task": task, "recipe": chosen.described(), "seed": seed, "of": steps}
    sides = training(str(where), updates=list(range(steps)), **how)
    differs = [*([net] if net else [])]
    for name, sign in {"width": "w", "batch": "b", "precision": ""}.items():
        if getattr(chosen, name) != getattr(usual, name):
            differs.append(f"{sign}{getattr(chosen, name)}")
    figures = {
        "task": spec.name,
        "device": where.type,
        "recipe": chosen.name,
        "net": chosen.net,
        "parameters": parameter_count(network),
        "inputs": list(_problems(task, chosen, chosen.batch, seed).inputs.shape),
        "iterations": chosen.iterations,
        "alpha": chosen.alpha,
        "precision": {"ours": chosen.precision, "plain": "fp32"},
        "steps a round": steps,
        "mean of draws": {
            name: round(sum(draw[i] for draw in draws) / steps, 2) for i, name in enumerate("nk")
        },
        **machine(),
        "differs": differs,
        "memory": None,
    }
    if memory:  # of the longest step; on a GPU the graphs of all steps stay
        longest = max(range(steps), key=lambda update: draws[update][1])
        updates = [longest] if where.type == "cpu" else list(range(steps))
        figures["memory"] = peak_memory(training, where, updates=updates, **how)
    for work in sides.values():
        work()  # kernels are chosen and graphs captured here
    times = compare(sides, rounds=rounds, device=where, progress=progress)
    figures["steps per second"] = {side: steps / median for side, median in medians(times).items()}
    figures["seconds a step"] = {
        side: [round(seconds / steps, 6) for seconds in ones] for side, ones in times.items()
    }
    figures["ratio"] = ratio(times["plain"], times["ours"])
    return "-".join(["bench-train", spec.name, where.type, *differs]), figures


def training(
    device: str, task: str, recipe: dict[str, Any], seed: int, updates: list[int], of: int
) -> dict[str, Work]:
    """Some of ``of`` training updates, both ways."""
    chosen, where = Recipe().changed(**recipe), torch.device(device)
    batch = _problems(task, chosen, chosen.batch, seed).to(where)
    network, _ = build_network(chosen, registry.task(task).spec, seed)
    factor = lr_factor(chosen, 0, _EPOCH)

    def side(step: Trainer | PlainStep) -> Work:
        return lambda: [
            step.update(batch.inputs, batch.targets, EvenRng(seed, update, of), factor)
            for update in updates
        ]

    plain = PlainStep(network, chosen, where)  # copies the network, so it comes first
    return {"ours": side(Trainer(network, chosen, where)), "plain": side(plain)}


def _problems(task: str, recipe: Recipe, count: int, seed: int) -> Batch:
    """New training problems of a recipe."""
    source = registry.task(task)
    return source.sample(count, size=source.check_size(recipe.size), seed=seed)


def bench_evaluate(
    task: str = "prefix-sums",
    *,
    run: str | os.PathLike[str] | None = None,
    net: str = "dt-recall",
    width: int | None = None,
    size: Any = None,
    count: int = 100,
    steps: int = 100,
    rounds: int = 5,
    device: str = "auto",
    seed: int = 0,
    memory: bool = True,
    progress: Progress | None = None,
) -> Result:
    """Our evaluation beside the plain one; without ``run`` the network has random weights.

    Both give the same curve. A trained network (``run``) is also evaluated under a halting rule,
    which is where most of the time is saved.
    """
    if width is not None and width < 1:
        raise UsageError(f"width must be at least 1, got {width}")
    where, name = registry.device(device), registry.task(task).spec.name
    how: dict[str, Any] = {
        "task": task, "size": registry.task(task).check_size(size), "count": count,
        "steps": steps, "seed": seed, "net": net, "width": width,
        "run": None if run is None else os.fspath(run),
    }  # fmt: skip
    module, batch, sides = _evaluations(str(where), **how)
    peaks = peak_memory(evaluation, where, **how) if memory else None
    curve, plain_solved, halted = (work() for work in sides.values())
    if run is None:
        del sides["halting"]
    times = compare(sides, rounds=rounds, device=where, progress=progress)
    seconds, iterations, width = medians(times), budget_of(module, steps), module.config.width
    figures = {
        "task": name,
        "device": where.type,
        "net": type(module).__name__ if run is not None else net,
        "trained": run is not None,
        "width": width,
        "parameters": parameter_count(module),
        "inputs": list(batch.inputs.shape),
        "iterations": iterations,
        "problems counted differently": int((curve.solved - plain_solved).abs().max()),
        "not finite": curve.broken,
        **machine(),
        "iterations per second": {side: count * iterations / seconds[side] for side in SIDES},
        "seconds to the curve": {side: seconds[side] for side in SIDES},
        "ratio": ratio(times["plain"], times["ours"]),
        "memory": peaks,
    }
    if run is not None:
        figures["with halting"] = {
            "rule": str(StableAnswer()),
            "mean iterations": float(halted.iterations[-1]),
            "accuracy": {"halting": halted.end, "all iterations": curve.end},
            "ratio": ratio(times["plain"], times["halting"]),
            "seconds to the curve": {"ours": seconds["halting"], "plain": seconds["plain"]},
        }
    return f"bench-evaluate-{name}-{where.type}-w{width}{'-trained' * (run is not None)}", figures


def evaluation(device: str, **how: Any) -> dict[str, Work]:
    """The same evaluation, all ways."""
    return _evaluations(device, **how)[2]


def _evaluations(
    device: str,
    task: str,
    size: Any,
    count: int,
    steps: int,
    seed: int,
    run: str | None,
    net: str,
    width: int | None,
) -> tuple[DeepThinking | FeedForward, Batch, dict[str, Callable[[], Any]]]:
    source = registry.task(task)
    module: Any
    if run is None:
        spec = source.spec
        config = variant_config(
            net, spec.name, dims=spec.dims, channels=spec.channels, classes=spec.classes,
            readout=spec.readout, width=width,
        )  # fmt: skip
        module = build(config.kind, config, seed=seed)
        module.to(device)
    else:
        module = load(run, device)
    if not isinstance(module, DeepThinking | FeedForward):
        raise UsageError(
            f"there is no plain way for a {type(module).__name__}; give a run of dt, dt-recall, "
            "ff or ff-recall"
        )
    check_fits(module, source)
    size = tuple(size) if isinstance(size, list) else size  # JSON has no tuples
    batch = source.sample(count, size=size, seed=seed).to(device)
    budget, rule = budget_of(module, steps), StableAnswer()
    sides: dict[str, Callable[[], Any]] = {
        "ours": lambda: evaluate_batch(module, source, batch, steps=budget),
        "plain": lambda: plain_curve(module, source, batch, budget),
        "halting": lambda: evaluate_batch(module, source, batch, steps=budget, rule=rule),
    }
    return module, batch, sides


class Dense:
    """A network that `iterant.nets.fast.accelerate` leaves as it is."""

    def __init__(self, net: Net) -> None:
        """Wrap that network."""
        self.readout, self.depth = readout_of(net), depth_of(net)
        self.read, self.start, self.step, self.answer = net.read, net.start, net.step, net.answer


def bench_solve(
    task: str = "mazes",
    *,
    run: str | os.PathLike[str] | None = None,
    size: Any = None,
    count: int = 10,
    rounds: int = 3,
    device: str = "auto",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """`iterant.solve` beside the command line's path and beside the dense network.

    ``run``: weights, None for the shipped ones. The dense network computes every cell at every
    iteration, with the same halting rule; it takes one round, since it is far slower. The seconds
    of the command are those that it reports: without reading, drawing and checking.
    """
    where, source = registry.device(device), registry.task(task)
    net = load(source.spec.name if run is None else run, where)
    size = source.spec.train_size if size is None else source.check_size(size)
    batch = source.sample(count, size=size, seed=seed)
    problems = [Problem(batch[row : row + 1]) for row in range(count)]
    inputs, dense, reported = batch.inputs.to(where), Dense(net), list[float]()
    budget = budget_for(source, problems[0])

    def by_command() -> None:
        solved = solutions(net, source, problems, max_steps=budget)
        reported.append(sum(one.seconds for one in solved))

    answer = solve(net, inputs, max_steps=budget)  # kernels are compiled here
    times = compare(
        {"solve": lambda: solve(net, inputs, max_steps=budget), "command": by_command},
        rounds=rounds, device=where, progress=progress,
    )  # fmt: skip
    solve(dense, inputs, max_steps=min(budget, 20))
    start = time.perf_counter()
    plain = solve(dense, inputs, max_steps=budget)
    iterations, plain_iterations = int(answer.steps.max()), int(plain.steps.max())
    times |= {"command": reported, "dense": [time.perf_counter() - start]}
    seconds = medians(times)
    figures = {
        "task": source.spec.name,
        "device": where.type,
        "size": size,
        "problems": count,
        "parameters": parameter_count(net),
        **machine(),
        "iterations of the slowest problem": iterations,
        "settled": int(answer.settled.sum()),
        "solved": int(source.solved(answer.prediction.cpu(), batch).sum()),
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
            "solve / command": ratio(times["solve"], reported),
            "dense / solve": ratio(times["dense"] * rounds, times["solve"]),
        },
    }
    return f"bench-solve-{source.spec.name}-{where.type}-{count}-of-{size}", figures


def bench_scale(
    task: str = "mazes",
    *,
    recipe: str = "quick",
    width: int | None = None,
    batch: int | None = None,
    updates: int = 20,
    rounds: int = 3,
    processes: Sequence[int] = (1, 2),
    progress: Progress | None = None,
) -> Result:
    """Updates per second of several CPU processes on one run, and the share of communication.

    Strong scaling: the batch stays the same and is divided, as in training itself, with one
    all-reduce of the gradients per update. Communication ("talking") includes waiting for the
    slowest process. Each process has one thread; the first number of processes is what the others
    are compared with. Medians over the rounds.
    """
    if updates < 1 or rounds < 1 or not processes or min(processes) < 1:
        raise UsageError("at least one update, round and process are needed")
    changes = {} if width is None else {"width": width}
    changes |= {} if batch is None else {"batch": batch}
    how = {"task": task, "recipe": recipe, "changes": changes, "updates": updates}
    load_before = os.getloadavg()[0]
    measured: dict[int, list[dict[str, Any]]] = {count: [] for count in processes}
    for done in range(1, rounds + 1):
        for count in processes:
            measured[count].append(in_new_process(scaling, count, **how))
        if progress is not None:
            progress(done, rounds)
    rows, base = {}, 0.0
    for count, ones in measured.items():
        speeds = [one["updates per second"] for one in ones]
        speed = statistics.median(speeds)
        base = base or speed
        rows[str(count)] = {
            "updates per second": speed,
            "lowest": min(speeds),
            "highest": max(speeds),
            "times faster": speed / base,
            "efficiency": speed / base * processes[0] / count,
            "talking": statistics.median(one["talking"] for one in ones),
            "CPU seconds an update": statistics.median(one["CPU seconds"] for one in ones),
        }
    first = measured[processes[0]][0]
    return f"bench-scale-{task}-cpu", {
        "task": task,
        "recipe": recipe,
        "updates": updates,
        "rounds": rounds,
        **{key: first[key] for key in ("net", "parameters", "batch", "bytes an update")},
        "threads a process": 1,
        "load before": load_before,
        "processes": rows,
    }


class _Timed(ProcessGroup):
    """A process group that adds up the time of its communication."""

    talked = 0.0

    def _communicate(self, call: Callable[[], object]) -> None:
        start = time.perf_counter()
        super()._communicate(call)
        self.talked += time.perf_counter() - start


def scaling(task: str, recipe: str, changes: dict[str, Any], updates: int) -> dict[str, Any]:
    """The part of one process: a few updates to warm up, then those that count."""
    torch.set_num_threads(1)
    cpu, spec = torch.device("cpu"), registry.task(task).spec
    processes = _Timed(cpu)
    chosen = named_recipe(recipe, spec.name).changed(**changes)
    processes.check(chosen.batch)
    net, _ = build_network(chosen, spec, 0)
    trainer = Trainer(net, chosen, cpu, processes)
    batch = _problems(task, chosen, trainer.objective.takes(chosen.batch), 0)
    for update in range(_WARM_UP + updates):
        if update == _WARM_UP:
            talked = processes.talked
            start, cpu_start = time.perf_counter(), time.process_time()
        trainer.update(batch.inputs, batch.targets, StepRng(0, update), 1.0)
    seconds, parameters = time.perf_counter() - start, parameter_count(net)
    return {
        "net": chosen.net,
        "parameters": parameters,
        "batch": chosen.batch,
        "bytes an update": 4 * parameters,
        "updates per second": updates / seconds,
        "talking": (processes.talked - talked) / seconds,
        "CPU seconds": (time.process_time() - cpu_start) / updates,
    }
