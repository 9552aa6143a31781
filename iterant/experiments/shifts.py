"""Mazes unlike those of training, Knutson et al.'s grid and Maze-Hard: tests and their tables.

    >>> measure_mazes(["mazes", "runs/m-s0"], GRID, "results/runs/mazes.jsonl", processes=2)
    >>> measure_mazes(["mazes"], maze_hard("data/train"), "results/runs/mazes.jsonl")
    >>> MAZE_EXPERIMENTS["maze-shifts"].make_table(read_results())[0]["network"]
    'max-plus'

The grid is size × loops (p) × where the start is, as in "On Logical Extrapolation for Mazes with
Recurrent and Implicit Networks" (arXiv 2410.03020): n = 9, 19 … 99, p = 0, 0.1 … 0.9, 0.99. A
network is a shipped name, a run or a folder of weights. Every cell of the grid is a test in the
record of its network (`iterant.experiments.records`), by SIZE KIND:PROBLEMS:ITERATIONS. The file is
written after every cell, and cells that it has are not computed again. In tables a network is what
records call a model, a number is the mean over its seeds, and published numbers stand beside ours.

This module needs neither rich nor cyclopts: it also runs from a copy of the repository where only
torch, numpy and safetensors are installed.
"""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import torch
from torch import Tensor

from iterant import registry
from iterant.errors import UsageError
from iterant.experiments.models import MODELS, Model
from iterant.experiments.records import ANY, Count, Records, TableRow, largest_tests
from iterant.experiments.statistics import mean_of
from iterant.formatting import counted, seconds
from iterant.halting import ExactRest
from iterant.io import read_json, read_lines
from iterant.io.files import PathLike, make_folder, write_lines
from iterant.io.results import make_result
from iterant.nets import parameter_count
from iterant.nets.protocol import Net, depth_of, like
from iterant.solving import Iteration, solve
from iterant.tasks.protocol import Batch, Task, slices, with_problems
from iterant.zoo.loading import folder_of, load

SIZES = tuple(range(9, 100, 10))
LOOPS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
STARTS = {"dead-end": "start at a dead end", "any": "start anywhere"}
LONGER = 4
"""Answers are compared with those after this many times the iterations."""

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


CELLS = {
    f"{n} start={start},p={p:g}": (n, p, start) for n in SIZES for p in LOOPS for start in STARTS
}
"""Size, loops and start of the cells of Knutson et al.'s grid by name, small mazes first."""
GRID = tuple(MazeTest(n, name.partition(" ")[2]) for name, (n, _, _) in CELLS.items())
"""The grid with 100 mazes in each cell."""
LARGE = tuple(MazeTest(201, f"start={start},p=0.1", 25) for start in STARTS)
"""Mazes with loops that are larger than any in the grid."""


BENCHMARKS = {
    "8afe470ae5f86f1471acec57682164fcc17203add6825f37ea13bcd935cd3647": "maze-hard",
    "960a49f35da55fdb7a3030695a5efcd8bad4d19f178f8208fce76e97731e2160": "maze-hard-test",
    "e1b55d52e0eaad447da274288a3a17c616fababbc74051611b8191f4504a3e4e": "maze-unique-test",
}
"""The published sets of mazes, by the SHA-256 of their inputs and labels."""


def maze_hard(data: PathLike, count: int = 1000) -> tuple[MazeTest, ...]:
    """The tests on a folder of published mazes, and on generated ones like those of Maze-Unique.

    Published are both halves of Maze-Hard, and the test set that Maze-Unique's generator makes.
    """
    digest = hashlib.sha256()
    for name in ("inputs", "labels"):
        path = Path(data) / f"all__{name}.npy"
        if not path.is_file():
            raise UsageError(f"{str(data)!r} has no file {path.name}; give a folder of Maze-Hard")
        digest.update(path.read_bytes())
    if digest.hexdigest() not in BENCHMARKS:
        raise UsageError(
            f"the mazes in {str(data)!r} are not a half of Maze-Hard nor the test set of "
            "Maze-Unique as published; for other mazes use iterant evaluate --data"
        )
    published = MazeTest(30, BENCHMARKS[digest.hexdigest()], count, data=str(data))
    return published, MazeTest(29, "start=any,path=100-140", count)


class _AnswersAfter:
    """Keeps the answers after a number of iterations: a callback of `solve`."""

    copies = True  # of features it keeps none

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.kept: list[tuple[Tensor, Tensor]] = []
        """Indices of the samples that were still in the batch, and their answers"""

    def __call__(self, iteration: Iteration) -> None:
        if iteration.thought.step == self.steps:
            self.kept.append((iteration.rows.cpu(), iteration.thought.prediction.cpu()))


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
        part, early = batch[rows], _AnswersAfter(few)
        inputs = like(net, part.inputs)
        answer = solve(net, inputs, max_steps=many, rule=ExactRest(), callback=early)
        at_rest += int((answer.settled & (answer.steps <= few)).sum())
        last = max(last, min(few, int(answer.steps.max())))
        after = answer.prediction.cpu()
        before = after.clone()
        for kept, prediction in early.kept:
            before[kept] = prediction
        changed += int((before != after).flatten(1).any(dim=1).sum())
        for steps, prediction in {few: before, many: after}.items():
            solved[steps] += int(task.solved(prediction, part).sum())
            any_solved[steps] += int(task.any_right(prediction, part).sum())
    return {
        "problems": len(batch),
        "solved": {str(steps): count for steps, count in solved.items()},
        ANY: {str(steps): count for steps, count in any_solved.items()},
        "answers changed": changed,
        "at rest": at_rest,
        "most iterations": last,
        "test seed": _SEED,
        "seconds": round(time.monotonic() - start, 2),
    }


def measure_mazes(
    networks: Sequence[PathLike],
    tests: Sequence[MazeTest],
    out: PathLike,
    *,
    model: str = "",
    processes: int = 1,
    budget: str | float | None = None,
    device: str = "cpu",
    precision: str = "fp32",
    say: Callable[[str], None] = print,
) -> int:
    """Test these networks, write their records to a ``.jsonl`` file; return the tests left to do.

    Tests that the file has are skipped, so the same call continues an interrupted one. After
    ``budget`` no test is started. ``model``: the name in the records, and of the picture; by
    default the shipped name, or that of the run's folder without ``-sSEED``.
    """
    path, begin = Path(out), time.time()
    make_folder(path.parent)
    deadline = math.inf if budget is None else begin + seconds(budget)
    old = read_lines(path) if path.exists() else []
    known = {(line["figures"]["model"], line["seed"], key) for line in old
             for key in line["figures"]["tests"]}  # fmt: skip
    data = next((test.data for test in tests if test.data), None)
    new = {str(network): _empty_record(network, model, data, precision) for network in networks}
    names = Counter(record["name"] for record in new.values())
    if repeated := [name for name, count in names.items() if count > 1]:
        raise UsageError(f"two networks are {repeated[0]} in records; give them different folders")
    jobs = [
        (network, test) for test in tests for network, one in new.items()
        if (one["figures"]["model"], one["seed"], test.key) not in known
    ]  # fmt: skip
    done = 0
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), torch.set_num_threads, (1,)
    )
    try:
        running = {pool.submit(_job, *job, device, precision, deadline): job for job in jobs}
        for future in as_completed(running):
            (network, test), figures = running[future], future.result()
            if figures is None:  # after the deadline
                continue
            done += 1
            new[network]["figures"]["tests"][test.key] = figures
            write_lines(path, [*old, *(one for one in new.values() if one["figures"]["tests"])])
            shares = [f"{count:g}" for count in figures[ANY].values()]
            say(f"{time.time() - begin:.0f} s: {done} of {len(jobs)}, {new[network]['name']}, "
                f"{test.name}: {' and '.join(shares)} of {figures['problems']} "
                f"in {figures['seconds']:.1f} s")  # fmt: skip
    finally:
        pool.shutdown(cancel_futures=True)
    return len(jobs) - done


@lru_cache(maxsize=16)
def _network(network: str, device: str, precision: str) -> Any:
    net: Any = load(network, device)
    return net.to(registry.find("precision", precision))


def _job(
    network: str, test: MazeTest, device: str, precision: str, deadline: float
) -> dict[str, Any] | None:
    """The figures of one cell; None after the deadline."""
    if time.time() >= deadline:
        return None
    return measure_test(_network(network, device, precision), test)


def _empty_record(
    network: PathLike, model: str, data: str | None, precision: str
) -> dict[str, Any]:
    """The record of a network without its tests; ``data``: of Maze-Hard, if that is tested."""
    folder = folder_of(network)
    config = read_json(folder / "config.json")
    card, recipe = config.get("card", {}), config.get("recipe", {})
    model = model or re.sub(r"-?s\d+$", "", folder.name) or folder.resolve().parent.name
    seed = config.get("seed", card.get("seed", 0))
    which = f"maze-hard --data {data}" if data else "maze-shifts"
    figures = {
        "model": model,
        "seed": seed,
        "finished": True,
        "reduced": {},
        "network": str(network),
        "net": config["net"]["kind"] if "net" in config else config["kind"],
        "parameters": parameter_count(load(network)),
        "trained on": card.get("trained_on") or recipe.get("problems", ""),
        **({"test precision": precision} if precision != "fp32" else {}),
        "tests": {},
        "studies": {},
        "filter": "none",
        "halting": f"at rest, or a number of iterations, then {LONGER} times as many",
    }
    command = f"iterant reproduce {which} --networks {network}"
    return make_result(f"{model}-s{seed}", figures, seed=seed, command=command)


# Tables


_HARD, _HARD_TRAIN = "30 maze-hard-test", "30 maze-hard"
_UNIQUE, _LIKE_UNIQUE = "30 maze-unique-test", "29 start=any,path=100-140"
"""The names of the tests of `maze_hard`; published numbers are of the test sets."""

_RELEASED = "any shortest path: the released weights, reported by others"
_PEAK = "best checkpoint of a selected run, after more tuning than in the papers"
_EQR_CODE = "github.com/locuslab/EqR, supplements/maze_unique"
_EQR = "arXiv 2605.21488"
_BY_EQR = "measured by EqR's authors"

PUBLISHED = {
    _HARD: (
        ("HRM", "27M", "74.5 %", "81.6 %", _RELEASED, "arXiv 2506.21734"),
        ("TRM", "7M", "85.3 %", "90.7 %", f"reproductions 75 to 84; {_RELEASED}",
         "arXiv 2510.04871"),
        ("FPRM", "7M", "87 %", "", "", "arXiv 2606.18206"),
        ("Attractor", "27M", "93.1 %", "", "", "arXiv 2605.12466"),
    ),
    _UNIQUE: (
        ("HRM", "", "0.3 %", "", _BY_EQR, _EQR),
        ("TRM", "", "44.9 %", "", _BY_EQR, _EQR),
        ("URM", "", "51.4 %", "", _BY_EQR, _EQR),
        ("EqR", "", "93 %", "", "the best of 128 restarts by its own residual", _EQR),
        ("TRM, tuned", "42.2K", "99.4 %", "", _PEAK, _EQR_CODE),
        ("EqR, tuned", "42.2K", "99.6 %", "", _PEAK, _EQR_CODE),
        ("EqR, tuned", "66.4K", "100 %", "", _PEAK, _EQR_CODE),
        ("FRM", "8M", "98 ± 1.8 %", "", "3 seeds; peak 99.9", "arXiv 2606.29150"),
    ),
}  # fmt: skip
"""Numbers of others by test: network, parameters, exact, any shortest path, note, source. As
reported: we repeated none. The best reproduction of TRM on Maze-Hard, 83.67 ± 2.28 %, is alphaXiv's
(paper-implementations).
"""

PUBLISHED_ON_GRID = (
    ("DT-Net (DT-Recall)", "dead end, no loops", "100 % (up to 99×99 with 3,000 iterations)"),
    ("DT-Net (DT-Recall)", "anywhere, no loops",
     "72 % (falls with the number of ways out of the start)"),
    ("PI-Net", "anywhere, no loops", "94 %"),
)  # fmt: skip
"""Knutson et al.'s numbers: network, part of the grid, any shortest path."""

GOAL = 99.0
"""Per cent that every cell of the grid should reach."""

Results = Mapping[str, Sequence[Count]]
"""Of one network, by the name of the test: one for each seed."""

_PARTS = {
    f"{'anywhere' if start == 'any' else 'dead end'}, {'loops' if loops else 'no loops'}": {
        name for name, (_, p, of_cell) in CELLS.items() if (p > 0, of_cell) == (loops, start)
    }
    for loops in (False, True)
    for start in STARTS
}
"""Columns that each cover a part of the grid, with the names of its cells."""


@dataclass(frozen=True)
class MazeExperiment:
    """Tables of networks on mazes unlike the paper's."""

    name: str
    title: str
    note: str
    tests: Collection[str]
    """Their names"""
    make_rows: Callable[[dict[str, Results], dict[str, TableRow]], list[TableRow]]
    """From the results of all networks and what is known of each"""
    place = "Past the paper"
    models: ClassVar[tuple[Model, ...]] = ()
    """It trains none"""

    def results(self, records: Records) -> dict[str, Results]:
        """The results of every network that has some of its tests."""
        by_model: dict[str, dict[str, list[Count]]] = {}
        for record in records.all:
            for test in record.counts:
                if test.any_path and test.name in self.tests:
                    by_model.setdefault(record.model, {}).setdefault(test.name, []).append(test)
        return {
            model: {name: largest_tests(tests) for name, tests in by_name.items()}
            for model, by_name in sorted(by_model.items())
        }

    def make_table(self, records: Records) -> list[TableRow]:
        """Networks of ours, and published numbers."""
        known = {
            one.model: {
                "parameters": f"{one.figures['parameters']:,}",
                "trained on": one.figures.get("trained on") or "the paper's mazes",
            }
            for one in records.all if "parameters" in one.figures
        }  # fmt: skip
        rows = self.make_rows(self.results(records), known)
        columns = dict.fromkeys(column for row in rows for column in row)
        return [{column: row.get(column, "") for column in columns} for row in rows]

    def state(self, records: Records) -> str:
        """How many networks were tested."""
        results = self.results(records)
        seeds = {(model, one.seed) for model, tests in results.items()
                 for test in tests.values() for one in test}  # fmt: skip
        return counted(len(seeds), "network")


_DT_RECALL = {
    f"dt-recall-{recipe}{mazes}": f"DT-Recall, {by}, {trained}"
    for recipe, by in (("paper", "paper's recipe"), ("pool", "our recipe"))
    for mazes, trained in (
        ("", "paper's mazes"),
        ("-start-any", "starts anywhere"),
        ("-p0.003", "loops p = 0.003"),
        ("-p0.1", "loops p = 0.1"),
    )
}
"""Titles of the networks of the paper that were trained by two recipes on four kinds of mazes."""


def network_title(model: str) -> str:
    """The name of a network in tables and pictures."""
    return MODELS[model].title if model in MODELS else _DT_RECALL.get(model, model)


def exact(test: Count) -> float:
    """Per cent of the answers that equal the label, after the fewest iterations."""
    return 100 * test.solved[min(test.solved)] / test.problems


def any_path(test: Count) -> float:
    """Per cent of the answers that are a shortest path, whichever."""
    return 100 * test.any_path[min(test.solved)] / test.problems


def _percent(tests: Sequence[Count], share: Callable[[Count], float]) -> str:
    """Mean over seeds, with its standard error: ``99.50 ± 0.50 %``."""
    mean = mean_of(list(map(share, tests)))
    return "" if mean is None else mean.percent


def _floor(tests: Sequence[Count], share: Callable[[Count], float] = any_path) -> str:
    """Mean over tests, rounded down: 100.00 % stands for all mazes only."""
    return f"{math.floor(100 * fmean(map(share, tests)) + 1e-9) / 100:.2f} %" if tests else ""


def _lowest(cells: Results) -> str:
    """The cell with the lowest mean over seeds."""
    means = {name: fmean(map(any_path, cells[name])) for name in CELLS if name in cells}
    if not means:
        return ""
    name = min(means, key=lambda name: means[name])
    n, p, start = CELLS[name]
    where = f" (n = {n}, p = {p:g}, {STARTS[start]})" if means[name] < 100 else ""
    return f"{_floor(cells[name])}{where}"


def _shift_rows(networks: dict[str, Results], known: dict[str, TableRow]) -> list[TableRow]:
    """A row for each network on the grid, then published numbers on parts of it."""
    rows = []
    for model, by_name in networks.items():
        cells = {name: tests for name, tests in by_name.items() if name in CELLS}
        results = [one for tests in cells.values() for one in tests]
        large = [one for test in LARGE for one in by_name.get(test.name, ())]
        parts = {column: [one for name in names & cells.keys() for one in cells[name]]
                 for column, names in _PARTS.items()}  # fmt: skip
        good = sum(all(any_path(one) >= GOAL for one in tests) for tests in cells.values())
        changed = sum(one.figures["answers changed"] for one in results)
        rows.append({
            "network": network_title(model),
            **known.get(model, {}),
            "seeds": str(len({one.seed for one in results})),
            **{column: _floor(tests) for column, tests in parts.items()},
            "lowest cell": _lowest(cells),
            f"cells with ≥ {GOAL:g} % in every seed": f"{good} of {len(cells)}",
            "exact, all cells": _floor(results, exact),
            f"answers changed after {LONGER} times the iterations":
                f"{changed:,} of {sum(one.problems for one in results):,}",
            "201×201, p = 0.1": _floor(large),
        })  # fmt: skip
    for network, part, number in PUBLISHED_ON_GRID:
        rows.append({"network": network, part: number, "source": "arXiv 2410.03020"})
    return rows


def _hard_rows(networks: dict[str, Results], known: dict[str, TableRow]) -> list[TableRow]:
    """Ours and published numbers on Maze-Hard and Maze-Unique."""
    rows = []
    for name, title, ours in (
        (_HARD, "Maze-Hard, test half", ""),
        (_UNIQUE, "Maze-Unique, test set", ""),
        (_HARD_TRAIN, "Maze-Hard, training half", ", not trained on"),
        (_LIKE_UNIQUE, "like Maze-Unique", ", generated"),
    ):
        for model, by_name in networks.items():
            if tests := by_name.get(name):
                most = max(one.problems for one in tests)
                rows.append({
                    "network": network_title(model), "mazes": f"{title}{ours}",
                    "parameters": known.get(model, {}).get("parameters", ""),
                    "exact": _percent(tests, exact),
                    "any shortest path": _percent(tests, any_path), "seeds": str(len(tests)),
                    "note": f"{most:,} mazes",
                })  # fmt: skip
        for network, size, equal, shortest, note, source in PUBLISHED.get(name, ()):
            rows.append({
                "network": network, "mazes": title, "parameters": size, "exact": equal,
                "any shortest path": shortest, "seeds": "", "note": note, "source": source,
            })  # fmt: skip
    return rows


_EXPERIMENTS = (
    MazeExperiment(
        "maze-shifts", "Mazes with loops, and starts anywhere",
        "Knutson et al.'s grid: sizes 9, 19 … 99, loops p = 0, 0.1 … 0.9, 0.99 (each wall of "
        "the lattice is also opened with probability p), start at a dead end or on any open "
        "cell. Any shortest path counts, unless the column says exact. A network runs until "
        "its state is at rest, or for n² iterations (at least 1,000), then "
        f"{LONGER} times as long. Knutson et al. report that DT-Net and PI-Net collapse with "
        "loops, however long they run. DT-Recall, the paper's network, by the paper's recipe and "
        "by our replay pool, on mazes of 9×9: one seed, 10 mazes per cell up to 59×59, after 500 "
        "and after 2,000 iterations, in fp16.",
        {*CELLS, *(test.name for test in LARGE)}, _shift_rows,
    ),
    MazeExperiment(
        "maze-hard", "Maze-Hard and Maze-Unique",
        "Exact: the answer equals the label, one of many shortest paths. The published systems "
        "were trained on the training half of Maze-Hard; ours saw neither half in training, and "
        "its recipe was chosen with the help of the training half. Maze-Unique's test set is the "
        "one that its generator makes (github.com/locuslab/EqR, seed 42). Our mazes like those are "
        "29×29, start anywhere, path of 100 to 140 steps. All labels of both halves of Maze-Hard, "
        "1,000 each, are the path down the distance to the goal which takes the first of down, "
        "left, right, up; no maze has a single shortest path, the medians are 3,873,744 and "
        "3,755,808. Max-plus has distances and pointers built in, which the published systems "
        "have not.",
        {_HARD, _HARD_TRAIN, _UNIQUE, _LIKE_UNIQUE}, _hard_rows,
    ),
)  # fmt: skip
MAZE_EXPERIMENTS: dict[str, MazeExperiment] = {one.name: one for one in _EXPERIMENTS}
"""By name."""
