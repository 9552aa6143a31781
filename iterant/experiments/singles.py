"""Single runs that were trained and tested by hand, beside the paper's numbers.

>>> singles_section("results")

They have no curves and are no records, so they count in no mean; but they are measured, and some
of them are all that there is so far. Which results these are is listed here, by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from iterant.experiments.damage import as_written
from iterant.experiments.models import MODELS
from iterant.experiments.paper import PEAKS
from iterant.runs import read_result
from iterant.runs.files import PathLike

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
