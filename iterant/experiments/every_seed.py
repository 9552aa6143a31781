"""Our own recipes from every seed, none left out, beside the paper's best numbers.

>>> every_seed_section("results")

They are made by ``scripts/every-seed``, which judges after a number of iterations and after twice
as many, on more and larger problems than records have; there are no curves, so they are no records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from iterant.experiments.damage import as_written
from iterant.experiments.older import has_changed, validations
from iterant.experiments.paper import PEAKS
from iterant.experiments.statistics import Value, summary, verdict
from iterant.runs import read_result
from iterant.runs.files import PathLike

RESULTS = {
    "best-prefix-sums-h200": "sums-ours",
    "best-mazes-h200": "mazes-ours",
    "best-mazes-more-h200": "mazes-ours",
    "best-mazes-two-epochs-h200": "mazes-ours",
    "best-mazes-two-epochs-more-h200": "mazes-ours",
    "best-mazes-walls-shaken-h200": "mazes-ours",
}
"""Results with a part for every seed, whose tests are named SIZE:PROBLEMS:ITERATIONS, by model."""

_HEAD = ["result", "network", "size", "iterations", "solved, mean over seeds", "the worst seed",
         "after twice as many", "seeds tested", "problems each", "the paper's best",
         "beside it"]  # fmt: skip
_ABOUT = (
    "None of the trained seeds is left out by how well it did; where fewer were tested than "
    "trained, that is for want of time. The paper's best is that of any of its networks on "
    "problems of that size, by its own recipe, with its own problems and numbers of iterations."
)


def every_seed_section(folder: PathLike) -> str:
    """As Markdown; "" where there is none."""
    files = {Path(folder) / f"{name}.json": model for name, model in RESULTS.items()}
    there = {file: model for file, model in files.items() if file.exists()}
    rows, remarks = list[list[str]](), list[str]()
    for file, model in there.items():
        with as_written(file, "scripts/every-seed"):
            rows += _rows(file)
            remarks += _remarks(file, model)
    if not rows:
        return ""
    table = [_HEAD, ["---"] * len(_HEAD), *rows]
    lines = ["| " + " | ".join(cells) + " |" for cells in table]
    return "\n".join(
        ["## Our own recipes from every seed", "", _ABOUT, "", *lines, "", *remarks,
         *([""] if remarks else [])]
    )  # fmt: skip


def _remarks(file: Path, model: str) -> Iterator[str]:
    """What has to be known of a result: where it came from, and whether its recipe is the last."""
    figures = read_result(file)["figures"]
    reached = validations(figures["seeds"])
    older = "by an older recipe" if has_changed(model, figures.get("recipe"), reached) else ""
    if told := [text for text in (older, figures.get("provenance", "")) if text]:
        yield f"- {file.stem}: {'; '.join(told)}."


def _rows(file: Path) -> Iterator[list[str]]:
    figures = read_result(file)["figures"]
    seeds: Mapping[str, Mapping[str, Any]] = figures["seeds"]
    tests = dict.fromkeys(key for part in seeds.values() for key in part)
    size_of = {key: found[1] for key in tests if (found := re.fullmatch(r"(\d+):\d+:\d+", key))}
    for key, size in size_of.items():
        parts = [part[key] for part in seeds.values() if key in part]
        shares = [100 * part["solved"] / part["problems"] for part in parts]
        twice = [100 * part["solved at twice"] / part["problems"] for part in parts]
        mean, later = summary(shares, max(part["problems"] for part in parts)), summary(twice)
        if mean is None or later is None:
            continue
        paper = _best(size)
        yield [
            f"[{file.stem}](results/{file.name})",
            _network(figures["recipe"], seeds),
            size,
            f"{parts[0]['iterations']:,}",
            Value(mean.mean, mean.error).told,
            f"{min(shares):.1f} %",
            f"{later.mean:.2f} %",
            f"{len(parts)} of {len(seeds)}",
            f"{parts[0]['problems']:,}",
            "–" if paper is None else paper.told,
            verdict(mean, paper),
        ]


def _network(recipe: Mapping[str, Any], seeds: Mapping[str, Mapping[str, Any]]) -> str:
    return f"{recipe['net']}, {_parameters(seeds)} parameters, {recipe['precision']}"


def _parameters(seeds: Mapping[str, Mapping[str, Any]]) -> str:
    found = [part["parameters"] for part in seeds.values() if "parameters" in part]
    return f"{found[0]:,}" if found else "?"


def _best(size: str) -> Value | None:
    return max(PEAKS.get(size, {}).values(), key=lambda value: value.mean, default=None)
