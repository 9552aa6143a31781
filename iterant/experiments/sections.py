"""Our own recipes from every seed, none left out, beside the paper's best numbers.

>>> every_seed_section("results")

They are made by ``scripts/every-seed``, which judges after a number of iterations and after twice
as many, on more and larger problems than records have; there are no curves, so they are no records.

Single runs that were trained and tested by hand, beside the paper's numbers.

They have no curves and are no records, so they count in no mean; but they are measured, and some
of them are all that there is so far. Which results these are is listed here, by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from iterant.experiments.counts import has_changed, validations
from iterant.experiments.models import MODELS
from iterant.experiments.paper_numbers import PEAKS
from iterant.experiments.records import as_written
from iterant.experiments.statistics import Value, summary, verdict
from iterant.formatting import markdown_table
from iterant.io import read_result
from iterant.io.files import PathLike

SINGLES = (
    "train-prefix-sums-paper-h200-fp16-s0",
    "train-prefix-sums-paper-h200-bf16-s0",
    "train-mazes-paper-h200-s0-resumed",
    "measure-mazes-best-s0-small",
)
"""Results with "size N": a peak or a count of problems solved, a size each."""

_HEAD = (
    "| result | network | seed | size | ours | the paper |\n| --- | --- | --- | --- | --- | --- |"
)


def singles_section(folder: PathLike) -> str:
    """As Markdown; "" where there is none."""
    rows = list[str]()
    for name in SINGLES:
        with as_written(
            Path(folder) / f"{name}.json", "scripts/train-and-test and measure-network"
        ):
            rows += _rows(Path(folder), name)
    if not rows:
        return ""
    about = (
        "Trained and tested by hand on one seed, before records were kept or outside them; they "
        "count in no mean above. The paper's numbers are means over seeds."
    )
    return "\n".join(["## Single runs", "", about, "", _HEAD, *rows, ""])


def _rows(folder: Path, name: str) -> Iterator[str]:
    file = folder / f"{name}.json"
    if not file.exists():
        return
    result = read_result(file)
    figures = result["figures"]
    recipe = figures.get("recipe", {})
    for key, test in figures.items():
        found = re.fullmatch(r"size (\d+)", key)
        if found is None:
            continue
        size = found[1]
        cells = [f"[{name}](results/{name}.json)", _network(figures), str(result["seed"]), size,
                 _ours(test), _paper(recipe, size)]  # fmt: skip
        yield "| " + " | ".join(cells) + " |"


def _network(figures: Mapping[str, Any]) -> str:
    recipe = figures.get("recipe")
    if recipe:
        return f"{recipe['net']}, α = {recipe['alpha']:g}, {recipe['precision']}"
    return f"ours, {figures['parameters']:,} parameters, {MODELS['mazes-ours'].recipe().precision}"


def _ours(test: Mapping[str, Any]) -> str:
    of = test["problems"]
    if "peak" in test:
        step, height = test["peak"]
        return (
            f"{round(of * height)} of {of} at {step}, "
            f"{round(of * test['at the end'])} after {test['iterations']}"
        )
    return f"{test['solved']} of {of} after {test['iterations']}"


def _paper(recipe: Mapping[str, Any], size: str) -> str:
    """The paper's peak for that network; its best where the network is none of the paper's."""
    values = PEAKS.get(size, {})
    if recipe:
        asked = (recipe["net"], recipe["alpha"], recipe["objective"])
        same = [
            value
            for key, value in values.items()
            if (MODELS[key].net, MODELS[key].alpha, MODELS[key].recipe().objective) == asked
        ]
    else:
        same = sorted(values.values(), key=lambda value: -value.mean)
    if not same:
        return "–"
    return replace(same[0], step=None).told


RESULTS = {
    "best-prefix-sums-h200": "sums-ours",
    "best-mazes-h200": "mazes-ours",
    "best-mazes-more-h200": "mazes-ours",
    "best-mazes-two-epochs-h200": "mazes-ours",
    "best-mazes-two-epochs-more-h200": "mazes-ours",
    "best-mazes-walls-shaken-h200": "mazes-ours",
}
"""Results with a part for every seed, whose tests are named SIZE:PROBLEMS:ITERATIONS, by model."""

_HEAD_EVERY_SEED = ["result", "network", "size", "iterations", "solved, mean over seeds",
         "the worst seed",
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
            rows += _rows_every_seed(file)
            remarks += _remarks(file, model)
    if not rows:
        return ""
    lines = markdown_table(_HEAD_EVERY_SEED, rows)
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


def _rows_every_seed(file: Path) -> Iterator[list[str]]:
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
            _network_every_seed(figures["recipe"], seeds),
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


def _network_every_seed(recipe: Mapping[str, Any], seeds: Mapping[str, Mapping[str, Any]]) -> str:
    return f"{recipe['net']}, {_parameters(seeds)} parameters, {recipe['precision']}"


def _parameters(seeds: Mapping[str, Mapping[str, Any]]) -> str:
    found = [part["parameters"] for part in seeds.values() if "parameters" in part]
    return f"{found[0]:,}" if found else "?"


def _best(size: str) -> Value | None:
    return max(PEAKS.get(size, {}).values(), key=lambda value: value.mean, default=None)
