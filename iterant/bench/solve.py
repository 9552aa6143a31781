"""`iterant.solve` beside the command line's path and beside the dense network.

    >>> figures = bench_solve("mazes", size=59, count=10)
    >>> figures["ratio"]["dense / solve"]["median"]      # what `iterant.nets.fast` saves

The dense network computes every cell at every iteration, with the same halting rule. The command's
seconds are those that it reports: without reading, drawing and checking.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from iterant import registry
from iterant.bench.compare import Spread, compare, machine, waiter
from iterant.nets import parameter_count
from iterant.nets.protocol import Net, depth_of, readout_of
from iterant.solving import Answer, solutions, solve
from iterant.solving.problems import budget_for
from iterant.tasks.inputs import Problem
from iterant.tasks.protocol import Task
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
    """Measure all three on ``count`` problems; ``run``: weights, None for the shipped ones.

    The dense network takes one round, since it is far slower. The figures are for
    `iterant.io.write_result`.
    """
    where = registry.device(device)
    task = registry.task(task) if isinstance(task, str) else task
    net: Any = load(task.spec.name if run is None else run, where)
    size = task.spec.train_size if size is None else task.check_size(size)
    batch = task.sample(count, size=size, seed=seed)
    problems = [Problem(batch[row : row + 1]) for row in range(count)]
    inputs, dense = batch.inputs.to(where), Dense(net)
    budget = budget_for(task, problems[0])
    reported: list[float] = []
    answers: list[Answer] = []

    def by_command() -> None:
        solved = solutions(net, task, problems, max_steps=budget)
        reported.append(sum(one.seconds for one in solved))

    solve(dense, inputs, max_steps=min(budget, 20))
    answer = solve(net, inputs, max_steps=budget)  # kernels are compiled here
    wait = waiter(where)
    times = compare(
        {"solve": lambda: solve(net, inputs, max_steps=budget), "command": by_command},
        rounds=rounds, wait=wait, progress=progress,
    )  # fmt: skip
    slow = compare(
        {"dense": lambda: answers.append(solve(dense, inputs, max_steps=budget))},
        rounds=1, wait=wait,
    ).median("dense")  # fmt: skip
    (plain,), ours = answers, times.seconds["solve"]
    iterations = int(answer.steps.max())
    differ = (plain.prediction != answer.prediction).flatten(1).any(dim=1)
    return {
        "task": task.spec.name,
        "device": where.type,
        "size": size,
        "problems": count,
        "parameters": parameter_count(net),
        **machine(),
        "iterations of the slowest problem": iterations,
        "settled": int(answer.settled.sum()),
        "solved": int(task.solved(answer.prediction.cpu(), batch).sum()),
        "answers that differ from the dense network's": int(differ.sum()),
        "largest difference of iterations": int((plain.steps - answer.steps).abs().max()),
        "seconds": {
            "solve": times.median("solve"),
            "command": Spread.of(reported).median,
            "dense": slow,
        },
        "milliseconds an iteration": {
            "solve": 1e3 * times.median("solve") / iterations,
            "dense": 1e3 * slow / int(plain.steps.max()),
        },
        "ratio": {
            "solve / command": asdict(
                Spread.of([a / b for a, b in zip(ours, reported, strict=True)])
            ),
            "dense / solve": asdict(Spread.of([slow / seconds for seconds in ours])),
        },
    }


def solving_name(figures: dict[str, Any]) -> str:
    """The name of the result: task, device, problems and their size."""
    parts = [figures["task"], figures["device"], f"{figures['problems']}-of-{figures['size']}"]
    return "-".join(["bench-solve", *parts])
