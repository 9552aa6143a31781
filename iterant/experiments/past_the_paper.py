"""Tables and heat maps of mazes unlike the paper's, from records (`iterant.experiments.shifts`).

    >>> PAST["maze-shifts"].rows(records)[0]["network"]
    >>> PAST["maze-shifts"].save(records, "results/figures")     # one picture for each network

A network is what records call a model; a number is the mean over its seeds. Published numbers stand
beside ours, from `iterant.experiments.paper_numbers`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iterant.draw.figure import write_figure
from iterant.draw.plots import HeatMap, heat_maps_figure, stamp
from iterant.experiments.models import MODELS
from iterant.experiments.paper_numbers import PUBLISHED, Published
from iterant.experiments.records import Records
from iterant.experiments.shifts import (
    ANY,
    HARD,
    LABELS,
    LARGE,
    LONGER,
    LOOPS,
    SIZES,
    STARTS,
    UNIQUE,
)
from iterant.experiments.statistics import mean_of
from iterant.formatting import counted, markdown
from iterant.io.files import PathLike, make_folder

GOAL = 99.0
"""Per cent that every cell of the grid should reach."""
_GOOD = f"cells with ≥ {GOAL:g} % in every seed"
_CHANGED = f"answers changed after {LONGER} times the iterations"
_STARTS = {"dead-end": "start at a dead end", "any": "start anywhere"}
_GRID = {f"{n} start={start},p={p:g}": (n, p, start)
         for n in SIZES for p in LOOPS for start in STARTS}  # fmt: skip
_LARGE = tuple(test.name for test in LARGE)
_HARD, _UNIQUE = f"30 {HARD}", f"29 {UNIQUE}"


@dataclass(frozen=True)
class MazeResult:
    """One test of one network: mazes solved after some iterations."""

    seed: int
    problems: int
    exact: int
    any_path: int
    changed: int
    """Answers that changed after four times the iterations"""
    labels: Mapping[str, Any]
    """The audit of the labels; {}: none"""


Results = Mapping[str, Sequence[MazeResult]]
"""Of one network, by the name of the test: a result for each seed."""


@dataclass(frozen=True)
class MazeExperiment:
    """A table of networks on mazes unlike the paper's, and heat maps of those on the grid."""

    name: str
    title: str
    tests: tuple[str, ...]
    rows_of: Callable[[Mapping[str, Results], Mapping[str, str]], list[dict[str, str]]]
    note: str

    def results(self, records: Records) -> dict[str, Results]:
        """The results of every network that has some of its tests."""
        by_model: dict[str, dict[str, dict[int, MazeResult]]] = {}
        for record in records.all:
            for key, test in record.figures["tests"].items():
                name, problems = key.partition(":")[0], test["problems"]
                if ANY not in test or name not in self.tests:
                    continue
                steps = min(test["solved"], key=int)
                seeds = by_model.setdefault(record.model, {}).setdefault(name, {})
                # Of several tests of a seed the one with the most mazes counts.
                if record.seed not in seeds or seeds[record.seed].problems < problems:
                    seeds[record.seed] = MazeResult(
                        record.seed, problems, test["solved"][steps], test[ANY][steps],
                        test["answers changed"], test.get("labels", {}),
                    )  # fmt: skip
        return {
            model: {name: list(seeds.values()) for name, seeds in tests.items()}
            for model, tests in sorted(by_model.items())
        }

    def rows(self, records: Records) -> list[dict[str, str]]:
        """Its table."""
        parameters = {one.model: f"{one.figures['parameters']:,}" for one in records.all
                      if "parameters" in one.figures}  # fmt: skip
        return self.rows_of(self.results(records), parameters)

    def tables(self, records: Records) -> list[list[dict[str, str]]]:
        """Its table, and for Maze-Hard that of its labels."""
        audit = label_audit(records) if _HARD in self.tests else []
        return [table for table in (self.rows(records), audit) if table]

    def pictures(self, records: Records) -> dict[str, list[HeatMap]]:
        """The heat maps by file name, which cannot leave the folder whatever a record says."""
        return {
            re.sub(r"[^\w.-]", "_", f"{self.name}-{model}"):
                [_heat_map(model, results, start) for start in STARTS]
            for model, results in self.results(records).items()
            if results.keys() & _GRID.keys()
        }  # fmt: skip

    def save(self, records: Records, folder: PathLike) -> list[Path]:
        """Write its heat maps as PNG, and as SVG with a hash of their numbers."""
        pictures = self.pictures(records)
        return [
            write_figure(heat_maps_figure(maps), make_folder(folder) / f"{name}{ending}",
                         about=stamp(maps))
            for name, maps in pictures.items() for ending in (".png", ".svg")
        ]  # fmt: skip

    def state(self, records: Records) -> str:
        """How many networks were tested."""
        results = self.results(records)
        seeds = {(model, one.seed) for model, tests in results.items()
                 for test in tests.values() for one in test}  # fmt: skip
        return counted(len(seeds), "network")


def _title(model: str) -> str:
    return MODELS[model].title if model in MODELS else model


def _share(results: Sequence[MazeResult], what: str) -> float:
    """Mean over seeds, in per cent; NaN without any."""
    shares = [100 * getattr(one, what) / one.problems for one in results]
    return math.fsum(shares) / len(shares) if shares else math.nan


def _floor(results: Sequence[MazeResult], what: str) -> str:
    """Mean over tests, rounded down: 100.00 % stands for all mazes only."""
    return f"{math.floor(100 * _share(results, what) + 1e-9) / 100:.2f} %" if results else ""


def _percent(results: Sequence[MazeResult], what: str) -> str:
    """Mean over seeds, with its standard error: ``99.50 ± 0.50 %``."""
    value = mean_of([100 * getattr(one, what) / one.problems for one in results])
    return "" if value is None else value.percent


def _seeds(tests: Results) -> str:
    """How many seeds there are, and in the cell with the fewest if not all are in every cell."""
    every = len({one.seed for results in tests.values() for one in results})
    fewest, size = min(
        ((len(results), _GRID[name][0]) for name, results in tests.items()), default=(every, 0)
    )
    first = f"{every}; from size {size} on at least {fewest}"
    return str(every) if fewest == every else first


def _heat_map(model: str, results: Results, start: str) -> HeatMap:
    names = [[f"{n} start={start},p={p:g}" for n in SIZES] for p in LOOPS]
    values = [[_share(results.get(name, ()), "any_path") for name in row] for row in names]
    return HeatMap(f"{_title(model)}, {_STARTS[start]}", "size n", "loops p",
                   [str(n) for n in SIZES], [f"{p:g}" for p in LOOPS], values)  # fmt: skip


_PARTS = {
    "dead end, no loops": (False, "dead-end"),
    "anywhere, no loops": (False, "any"),
    "dead end, loops": (True, "dead-end"),
    "anywhere, loops": (True, "any"),
}
"""Columns that each cover a part of the grid: whether there are loops, and the start."""
_KINDS = {"start=dead-end,p=0": "dead end, no loops", "start=any,p=0": "anywhere, no loops"}
"""The column of a published number, by the kind of the mazes."""


def _shift_rows(
    networks: Mapping[str, Results], parameters: Mapping[str, str]
) -> list[dict[str, str]]:
    columns = ("network", "parameters", "seeds", *_PARTS, "lowest cell", _GOOD, "exact, all cells",
               _CHANGED, "201×201, p = 0.1", "source")  # fmt: skip
    rows = []
    for model, tests in networks.items():
        cells = {name: results for name, results in tests.items() if name in _GRID}
        results = [one for test in cells.values() for one in test]
        large = [one for name in _LARGE for one in tests.get(name, ())]
        good = sum(
            all(100 * one.any_path >= GOAL * one.problems for one in test)
            for test in cells.values()
        )
        changed, mazes = sum(one.changed for one in results), sum(one.problems for one in results)
        rows.append(
            {"network": _title(model), "parameters": parameters.get(model, ""),
             "seeds": _seeds(cells), "lowest cell": _lowest(cells),
             _GOOD: f"{good} of {len(cells)}", "exact, all cells": _floor(results, "exact"),
             _CHANGED: f"{changed:,} of {mazes:,}", "201×201, p = 0.1": _floor(large, "any_path")}
            | {column: _part(cells, loops, start) for column, (loops, start) in _PARTS.items()}
        )  # fmt: skip
    for one in PUBLISHED:
        if one.test in _KINDS:
            number = f"{one.any_path:g} %" + (f" ({one.note})" if one.note else "")
            rows.append({"network": one.system, _KINDS[one.test]: number, "source": one.source})
    return [{column: row.get(column, "") for column in columns} for row in rows]


def _lowest(cells: Results) -> str:
    """The cell with the lowest mean over seeds."""
    if not cells:
        return ""
    name = min((name for name in _GRID if name in cells),
               key=lambda name: _share(cells[name], "any_path"))  # fmt: skip
    n, p, start = _GRID[name]
    return f"{_floor(cells[name], 'any_path')} (n = {n}, p = {p:g}, {_STARTS[start]})"


def _part(tests: Results, loops: bool, start: str) -> str:
    """Per cent with any shortest path over some cells of the grid."""
    chosen = [one for name, results in tests.items() for one in results
              if (_GRID[name][1] > 0, _GRID[name][2]) == (loops, start)]  # fmt: skip
    return _floor(chosen, "any_path")


def _hard_rows(
    networks: Mapping[str, Results], parameters: Mapping[str, str]
) -> list[dict[str, str]]:
    rows = []
    for test, name in ((_HARD, "Maze-Hard"), (_UNIQUE, "Maze-Unique")):
        for model, tests in networks.items():
            if results := tests.get(test):
                half = "training half" if test == _HARD else "generated"
                mazes = f"{name}, {half}, {max(one.problems for one in results):,} mazes"
                rows.append(_hard_row(_title(model), mazes, parameters.get(model, ""))
                            | {"exact": _percent(results, "exact"),
                               "any shortest path": _percent(results, "any_path"),
                               "seeds": str(len(results))})  # fmt: skip
        rows += [
            _published(one, f"{name}, published test set") for one in PUBLISHED if one.test == test
        ]
    return rows


def _hard_row(network: str, mazes: str, parameters: str) -> dict[str, str]:
    return {"network": network, "mazes": mazes, "parameters": parameters, "exact": "",
            "any shortest path": "", "seeds": "", "note": "", "source": ""}  # fmt: skip


def _published(one: Published, mazes: str) -> dict[str, str]:
    exact, any_path = ("" if value is None else f"{value:g} %"
                       for value in (one.exact, one.any_path))  # fmt: skip
    return _hard_row(one.system, mazes, one.parameters) | {
        "exact": exact, "any shortest path": any_path, "note": one.note,
        "source": one.source or "reported; not found by us",
    }  # fmt: skip


def label_audit(records: Records) -> list[dict[str, str]]:
    """A table of how Maze-Hard's labels were chosen; [] without a test on its files."""
    results = PAST["maze-hard"].results(records).values()
    audits = [(one.problems, one.labels) for tests in results for one in tests.get(_HARD, ())
              if all(one.labels.get(name) is not None for name in LABELS)]  # fmt: skip
    if not audits:
        return []
    problems, labels = max(audits, key=lambda audit: audit[0])
    same, unique, median = (labels[name] for name in LABELS)
    cells = {
        "labels that are the path down the distance to the goal which takes the first of down, "
        "left, right, up": f"{same:,} of {problems:,}",
        "mazes with one shortest path": f"{unique:,} of {problems:,}",
        "median number of shortest paths": f"{median:,.0f}",
    }
    return [{"Maze-Hard, training half": name, "mazes": text} for name, text in cells.items()]


def section(records: Records) -> str:
    """Its part of RESULTS.md."""
    blocks = []
    for one in PAST.values():
        blocks += [f"### {one.title}", f"`iterant reproduce {one.name}`", one.note]
        blocks += [
            f"[![{name}](results/figures/{name}.png)](results/figures/{name}.svg)"
            for name in one.pictures(records)
        ]
        blocks += map(markdown, one.tables(records))
    return "\n\n".join(blocks)


PAST: dict[str, MazeExperiment] = {
    one.name: one for one in (
        MazeExperiment(
            "maze-shifts", "Mazes with loops, and starts anywhere", (*_GRID, *_LARGE), _shift_rows,
            "Knutson et al.'s grid: sizes 9, 19 … 99, loops p = 0, 0.1 … 0.9, 0.99 (each wall of "
            "the lattice is also opened with probability p), start at a dead end or on any open "
            "cell. Any shortest path counts, unless the column says exact. A network runs until "
            "its state is at rest, or for n² iterations (at least 1,000), then "
            f"{LONGER} times as long. Knutson et al. report that DT-Net and PI-Net collapse with "
            "loops, however long they run.",
        ),
        MazeExperiment(
            "maze-hard", "Maze-Hard and Maze-Unique", (_HARD, _UNIQUE), _hard_rows,
            "Exact: the answer equals the label, one of many shortest paths. **Ours is on the "
            "training half of Maze-Hard, on which we did not train, because we do not have the "
            "test half;** the published numbers are of networks trained on that half and judged on "
            "the test half. Our mazes of Maze-Unique's kind are generated: 29×29, start anywhere, "
            "path of 100 to 140 steps.",
        ),
    )
}  # fmt: skip
"""By name."""
