"""`iterant.solve` beside the command line's path and beside the dense network, in one run.

    >>> figures = bench_solve("mazes", size=59, count=10)
    >>> figures["ratio"]["dense / solve"]["median"]      # what `iterant.nets.fast` saves

The dense network computes every cell at every iteration, with the same halting rule. The command's
seconds are those that it reports: without reading, drawing and judging.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from iterant import registry
from iterant.bench.compare import Spread, contest
from iterant.engine import last, think
from iterant.nets import parameter_count
from iterant.nets.fast import accelerate, threads
from iterant.nets.protocol import Net, depth_of, readout_of
from iterant.solving import Answer, solutions, solve
from iterant.solving.problems import budget_for
from iterant.tasks.inputs import Problem
from iterant.tasks.protocol import Task
from iterant.training.device import device_of
from iterant.zoo import load


class Dense:
    """A network that `iterant.nets.fast.accelerate` leaves as it is."""

    def __init__(self, net: Net) -> None:
        """Wrap that network."""
        self.readout, self.depth = readout_of(net), depth_of(net)
        self.read, self.start, self.step, self.answer = net.read, net.start, net.step, net.answer


def bench_solve(
    task: Task | str = "mazes",
    *,
    run: str | os.PathLike[str] | None = None,
    size: Any = None,
    count: int = 10,
    rounds: int = 3,
    device: str = "auto",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Measure all three ways on ``count`` problems; ``run``: weights, the shipped ones for None.

    The dense network takes one round, since it is far slower. The figures are what JSON can hold:
    see `iterant.io.write_result`.
    """
    where = device_of(device)
    made = registry.task(task) if isinstance(task, str) else task
    net: Any = load(made.spec.name if run is None else run, where)
    size = made.spec.train_size if size is None else made.check_size(size)
    batch = made.sample(count, size=size, seed=seed)
    problems = [Problem(batch[row : row + 1]) for row in range(count)]
    inputs, dense = batch.inputs.to(where), Dense(net)
    budget = budget_for(made, problems[0])
    reported: list[float] = []
    plain: list[Answer] = []

    def by_command() -> None:
        solved = solutions(net, made, problems, max_steps=budget)
        reported.append(sum(one.seconds for one in solved))

    def wait() -> None:
        if where.type == "cuda":
            torch.cuda.synchronize(where)

    solve(dense, inputs, max_steps=min(budget, 20))
    answer = solve(net, inputs, max_steps=budget)  # kernels are compiled here
    took = contest(lambda: solve(net, inputs, max_steps=budget), by_command,
                   rounds=rounds, wait=wait, progress=progress)  # fmt: skip
    slow = contest(lambda: plain.append(solve(dense, inputs, max_steps=budget)), wait,
                   rounds=1, wait=wait)  # fmt: skip
    some, fast = min(200, int(answer.steps.min())), accelerate(net, inputs)
    with torch.no_grad(), threads(fast):
        alone = contest(lambda: last(think(fast, inputs, steps=some)),
                        lambda: last(think(dense, inputs, steps=some)),
                        rounds=rounds, wait=wait)  # fmt: skip
    iterations, ours, theirs = int(answer.steps.max()), Spread.of(took.ours), slow.ours[0]
    differ = (plain[0].prediction != answer.prediction).flatten(1).any(dim=1)
    beside_command = [a / b for a, b in zip(took.ours, reported, strict=True)]
    return {
        "task": made.spec.name,
        "device": where.type,
        "size": size,
        "problems": count,
        "parameters": parameter_count(net),
        "threads": torch.get_num_threads(),
        "load before": round(os.getloadavg()[0], 2),
        "iterations of the slowest problem": iterations,
        "settled": int(answer.settled.sum()),
        "solved": int(made.solved(answer.prediction.cpu(), batch).sum()),
        "answers that differ from the dense network's": int(differ.sum()),
        "largest difference of iterations": int((plain[0].steps - answer.steps).abs().max()),
        "seconds": {"solve": ours.median, "command": Spread.of(reported).median, "dense": theirs},
        "milliseconds an iteration": {
            "solve": 1e3 * ours.median / iterations,
            "dense": 1e3 * theirs / int(plain[0].steps.max()),
            "solve, without halting": 1e3 * Spread.of(alone.ours).median / some,
            "dense, without halting": 1e3 * Spread.of(alone.plain).median / some,
        },
        "ratio": {
            "solve / command": asdict(Spread.of(beside_command)),
            "dense / solve": asdict(Spread.of([theirs / one for one in took.ours])),
        },
    }


def solving_name(figures: dict[str, Any]) -> str:
    """What a result is called: task, device, problems and their size."""
    parts = [figures["task"], figures["device"], f"{figures['problems']}-of-{figures['size']}"]
    return "-".join(["bench-solve", *parts])
