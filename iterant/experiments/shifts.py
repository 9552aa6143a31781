"""Test networks on mazes unlike those of training: Knutson et al.'s grid, and Maze-Hard.

    >>> measure_mazes(["mazes", "runs/m-s0"], GRID, "results/runs/mazes.jsonl", processes=2)
    >>> measure_mazes(["mazes"], maze_hard("data/train"), "results/runs/mazes.jsonl")

The grid is size × loops (p) × where the start is, as in "On Logical Extrapolation for Mazes with
Recurrent and Implicit Networks" (arXiv 2410.03020): n = 9, 19 … 99, p = 0, 0.1 … 0.9, 0.99. A
network is a shipped name, a run or a folder of weights. Every cell of the grid is a test in the
record of its network (`iterant.experiments.records`), by SIZE KIND:PROBLEMS:ITERATIONS. The file is
written after every cell, and cells that it has are not computed again. This module needs neither
rich nor cyclopts: it also runs from a copy of the repository where only torch, numpy and
safetensors are installed.
"""

from __future__ import annotations

import multiprocessing
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from iterant import registry
from iterant.formatting import seconds
from iterant.halting import ExactRest
from iterant.io import read_json, read_lines
from iterant.io.files import PathLike, make_folder, write_lines
from iterant.io.results import make_result
from iterant.nets import parameter_count
from iterant.nets.protocol import Net, depth_of, like
from iterant.solving import BUDGET, LAST_LAYER, solve
from iterant.tasks.mazes.grid import descend, distances, from_image, shortest_paths, whole_cells
from iterant.tasks.protocol import Batch, Task, slices, with_problems
from iterant.zoo.loading import folder_of, load

SIZES = tuple(range(9, 100, 10))
LOOPS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
STARTS = ("dead-end", "any")
LONGER = 4
"""Answers are compared with those after this many times the iterations."""
ANY = "any shortest path"
"""The key of mazes whose answer is a shortest path, whichever, by iterations."""
HARD, UNIQUE = "maze-hard", "start=any,path=100-140"
"""The kinds of Maze-Hard (size 30, read from its files) and of Maze-Unique (size 29)."""
LABELS = ("first of down, left, right, up", "one shortest path", "median shortest paths")
"""The keys of the audit of labels: mazes whose label is that shortest path, mazes that have one
shortest path only, and how many paths a maze has."""

_SEED = 7
"""The seed of the mazes; training problems have another."""
_PIXELS_AT_ONCE = 1 << 20
"""Most pixels of the mazes that are solved together, to bound memory."""


@dataclass(frozen=True)
class MazeTest:
    """A cell of the grid: mazes of one size and kind."""

    size: int
    kind: str
    """As for the flag ``--problems``: ``start=any,p=0.1``; or a name, with ``data``"""
    count: int = 100
    steps: int = 0
    """Iterations; 0: as many as there are cells, and at least 1,000"""
    data: str | None = None
    """A folder of mazes to read; None: generated"""

    @property
    def name(self) -> str:
        """Size and kind in the keys of records: ``59 start=any,p=0.1``."""
        return f"{self.size} {self.kind}"

    @property
    def iterations(self) -> int:
        """Enough for the longest path that fits in the maze, so that answers settle."""
        return self.steps or max(1000, self.size**2)

    @property
    def key(self) -> str:
        """The key in records."""
        return f"{self.name}:{self.count}:{self.iterations}"

    def sample(self) -> tuple[Any, Batch]:
        """The task and its mazes."""
        task: Task = registry.task("mazes", data=self.data)
        task = task if self.data else with_problems(task, self.kind)
        return task, task.sample(self.count, size=self.size, seed=_SEED)


def grid(counts: dict[int, int] | int = 100, steps: int = 0) -> tuple[MazeTest, ...]:
    """Knutson et al.'s grid, small mazes first; ``counts``: mazes of a cell, or by size."""
    return tuple(
        MazeTest(n, f"start={start},p={p:g}", counts if isinstance(counts, int) else counts[n],
                 steps)
        for n in SIZES for p in LOOPS for start in STARTS
    )  # fmt: skip


GRID = grid()
LARGE = tuple(MazeTest(201, f"start={start},p=0.1", 25) for start in STARTS)
"""Mazes with loops that are larger than any in the grid."""


def maze_hard(data: PathLike, count: int = 1000) -> tuple[MazeTest, ...]:
    """Mazes of Maze-Hard, from a folder of its files, and of Maze-Unique's kind."""
    return MazeTest(30, HARD, count, data=str(data)), MazeTest(29, UNIQUE, count)


@torch.no_grad()
def measure_test(net: Net, test: MazeTest) -> dict[str, Any]:
    """The figures of one cell: mazes solved after the iterations and after four times as many.

    Mazes whose state is exactly at rest are not computed further: no answer can change any more.
    """
    start = time.monotonic()
    task, batch = test.sample()
    few, many = test.iterations, LONGER * test.iterations
    if depth := depth_of(net):
        few = many = depth
    solved, any_solved = {few: 0, many: 0}, {few: 0, many: 0}
    changed = at_rest = last = 0
    for rows in slices(len(batch), max(1, _PIXELS_AT_ONCE // batch.targets[0].numel())):
        part = batch[rows]
        inputs = like(net, part.inputs)
        first = solve(net, inputs, max_steps=few, rule=ExactRest())
        moving = torch.tensor([reason in (BUDGET, LAST_LAYER) for reason in first.stopped_by])
        at_rest += int((~moving).sum())
        last = max(last, int(first.steps.max()))
        before = first.prediction.cpu()
        after = before.clone()
        if moving.any() and many > few:
            longer = solve(net, inputs[moving.to(inputs.device)], max_steps=many, rule=ExactRest())
            after[moving] = longer.prediction.cpu()
        changed += int((before != after).flatten(1).any(dim=1).sum())
        for steps, prediction in {few: before, many: after}.items():
            solved[steps] += int(task.solved(prediction, part).sum())
            any_solved[steps] += int(task.any_right(prediction, part).sum())
    figures = {"labels": audit(batch)} if test.data else {}
    return figures | {
        "problems": len(batch),
        "solved": {str(steps): count for steps, count in solved.items()},
        ANY: {str(steps): count for steps, count in any_solved.items()},
        "answers changed": changed,
        "at rest": at_rest,
        "most iterations": last,
        "test seed": _SEED,
        "seconds": round(time.monotonic() - start, 2),
    }


def audit(batch: Batch) -> dict[str, Any]:
    """How the targets of mazes with several shortest paths were chosen, and how many there are."""
    mazes, targets = from_image(batch.inputs), whole_cells(batch.targets.numpy())
    steps = distances(mazes)
    paths = shortest_paths(mazes, steps)
    same = (descend(mazes, steps) == targets).all(axis=(1, 2))
    counts = int(same.sum()), int((paths == 1).sum()), float(np.median(paths))
    return dict(zip(LABELS, counts, strict=True))


def measure_mazes(
    networks: Sequence[PathLike],
    tests: Sequence[MazeTest],
    out: PathLike,
    *,
    model: str = "",
    processes: int = 1,
    budget: str | float | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = print,
) -> int:
    """Test these networks, write their records to a ``.jsonl`` file; return the tests left to do.

    Tests that the file has are skipped, so the same call continues an interrupted one. After
    ``budget`` no test is started. ``model``: the name in the records, and of the picture; by
    default the shipped name, or that of the run's folder without ``-sSEED``.
    """
    path, begin = Path(out), time.monotonic()
    make_folder(path.parent)
    limit = float("inf") if budget is None else seconds(budget)
    old = read_lines(path) if path.exists() else []
    known = {(line["figures"]["model"], line["seed"], key) for line in old
             for key in line["figures"]["tests"]}  # fmt: skip
    about = {str(network): _about(network, model) for network in networks}
    jobs = [
        (network, test) for test in tests for network, one in about.items()
        if (one["model"], one["seed"], test.key) not in known
    ]  # fmt: skip
    new: dict[str, dict[str, Any]] = {}
    todo, total = iter(jobs), len(jobs)
    with ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), torch.set_num_threads, (1,)
    ) as pool:
        running: dict[Future[dict[str, Any]], tuple[str, MazeTest]] = {}
        done = 0
        while True:
            for network, test in todo if time.monotonic() - begin < limit else ():
                running[pool.submit(_job, network, test, device)] = (network, test)
                if len(running) == processes:
                    break
            if not running:
                return total - done
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                (network, test), figures = running.pop(future), future.result()
                done += 1
                if network not in new:
                    one = about[network]
                    name = f"{one['model']}-s{one['seed']}"
                    which = f"maze-hard --data {test.data}" if test.data else "maze-shifts"
                    command = f"iterant reproduce {which} --networks {network}"
                    new[network] = make_result(name, one, seed=one["seed"], command=command)
                new[network]["figures"]["tests"][test.key] = figures
                write_lines(path, [*old, *new.values()])
                shares = [f"{count:g}" for count in figures[ANY].values()]
                say(f"{time.monotonic() - begin:.0f} s: {done} of {total}, "
                    f"{new[network]['name']}, {test.name}: {' and '.join(shares)} of "
                    f"{figures['problems']} in {figures['seconds']:.1f} s")  # fmt: skip


@lru_cache(maxsize=16)
def _network(network: str, device: str) -> Net:
    return load(network, device)


def _job(network: str, test: MazeTest, device: str) -> dict[str, Any]:
    return measure_test(_network(network, device), test)


def _about(network: PathLike, model: str) -> dict[str, Any]:
    """The record of a network without its tests."""
    folder = folder_of(network)
    config = read_json(folder / "config.json")
    card, recipe = config.get("card", {}), config.get("recipe", {})
    name = re.sub(r"-?s\d+$", "", folder.name) or folder.resolve().parent.name
    return {
        "model": model or name,
        "seed": config.get("seed", card.get("seed", 0)),
        "finished": True,
        "reduced": {},
        "network": str(network),
        "net": config["net"]["kind"] if "net" in config else config["kind"],
        "parameters": parameter_count(load(network)),
        "trained on": card.get("trained_on") or recipe.get("problems", ""),
        "tests": {},
        "studies": {},
        "filter": "none",
        "halting": f"at rest, or a number of iterations, then {LONGER} times as many",
    }
