"""Networks that were trained for a time instead of the paper's epochs, in tables of their own.

    >>> [group.told for group in read_timed("results")]
    ['75 s', '416 s']

Chess networks with the same seconds of training each, by our optimizer, on puzzles that are not the
paper's. They are measured like the rest, but they do not reproduce its recipe: they count in no
table of records, and nothing is said about a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from iterant.errors import RunError
from iterant.evaluation.curve import wilson
from iterant.experiments.catalogue import Experiment, Row
from iterant.experiments.measures import Accuracy, Peaks
from iterant.experiments.models import MODELS, OURS
from iterant.experiments.records import Record, Records, as_written, fault_in
from iterant.io import read_result
from iterant.io.files import PathLike, quoted

COMPARED, SHIPPED = "compare-chess", "chess-best"
"""How the names of results begin: of many networks with a time each, and of our own alone."""

_WRITERS = "scripts/compare-chess and scripts/train-chess"

NETWORKS = {
    "dt": "chess-dt-a0",
    "dt-progressive": "chess-dt-a0.5",
    "recall": "chess-recall-a0",
    "recall-progressive": "chess-recall-a0.5",
    "ff": "chess-ff",
    "recall-pool": "chess-ours",
}
"""What those results call the models."""

_SETTING = ("rate", "bounded", "precision")
"""Fields of the recipe that differ from network to network."""

HEAD = ["model", "α", "trained for", "setting", "measured", "solved", "95 % over puzzles",
        "at the end", "seeds", "the paper (its recipe, its puzzles)"]  # fmt: skip

ABOUT = (
    "**Trained for a time, not by the paper's recipe.** Every network had the seconds given here, "
    "of one H200, instead of 120 epochs: half of the paper's width, our optimiser and loss, and "
    "puzzles that are not the paper's of 2021: about 61 % of Lichess's list of early 2025, thinner "
    "between ratings 800 and 1,200 (45 %) and nearly complete above 2,600, and of it 1.5 million "
    "([chess](docs/chess.md)). Equal indices are not equal difficulty: the paper's values stand "
    "beside so that they need not be looked up, and a difference from them says nothing."
)
MIXED = (
    "**The order of these rows does not say which network is better**: they were not all trained "
    "at the same rate or with the same features (see “setting”), and a rate that suits one holds "
    "another back. What a row loses from its peak to the end is its own."
)


@dataclass(frozen=True)
class Timed:
    """Networks that had the same time."""

    told: str
    """``75 s``"""
    records: Records
    notes: tuple[str, ...] = ()
    """What its results say of how they came about"""

    @property
    def mixed(self) -> bool:
        """Whether the paper's networks were trained in different settings; ours has its own."""
        theirs = [one for one in self.records.all if MODELS[one.model].word != OURS]
        return len({setting(record) for record in theirs}) > 1


def setting(record: Record) -> str:
    """Its learning rate, whether its features were bounded, and its precision."""
    given = record.figures["training"]["setting"]
    features = "bounded" if given["bounded"] else "unbounded"
    return f"rate {given['rate']:g}, {features} features, {given['precision']}"


def read_timed(results: PathLike) -> tuple[Timed, ...]:
    """All of a folder of results, the shortest time first."""
    found: dict[int, dict[tuple[str, int], Record]] = {}
    notes: dict[int, list[str]] = {}
    for file in sorted(Path(results).glob("*.json")):
        if not file.name.startswith((COMPARED, SHIPPED)):
            continue
        for seconds, note, record in _checked(file):
            group = found.setdefault(seconds, {})
            notes.setdefault(seconds, []).extend([note] if note else [])
            same = (record.model, record.seed)
            if same in group:
                raise RunError(
                    f"{record.model} with seed {record.seed} in {seconds} s is there twice, in "
                    f"{quoted(group[same].file)} and in {quoted(file)}; remove one of them"
                )
            group[same] = record
    return tuple(
        Timed(
            f"{seconds} s",
            Records(tuple(group[key] for key in sorted(group))),
            tuple(dict.fromkeys(notes[seconds])),
        )
        for seconds, group in sorted(found.items())
    )


def _checked(file: Path) -> list[tuple[int, str, Record]]:
    """Its networks, or one line about what is no such result."""
    with as_written(file, _WRITERS):
        found = list(_records(file))
    if fault := next((fault_in(_whole(record)) for _, _, record in found), ""):
        raise RunError(
            f"{quoted(file)} is not what {_WRITERS} write ({fault}); restore it from a copy, or "
            "give it another name"
        )
    return found


def _whole(record: Record) -> dict[str, Any]:
    """As a file of records would have it."""
    about = {"model": record.model, "seed": record.seed, "finished": True, "reduced": {}}
    return {**about, **record.figures}


def _records(file: Path) -> Iterator[tuple[int, str, Record]]:
    """Every network of a result: its seconds, what the result says of itself, and its record."""
    result = read_result(file)
    figures = result["figures"]
    if file.name.startswith(COMPARED):
        seconds, parts = figures["seconds each"], figures["models"]
        networks = {NETWORKS[name]: part for name, part in parts.items() if name in NETWORKS}
    else:
        seconds = sum(part["seconds"] for name, part in figures.items() if name.startswith("with "))
        networks = {NETWORKS["recall-pool"]: figures}
    for model, part in networks.items():
        record = Record(
            model=model,
            seed=result["seed"],
            finished=True,
            reduced={"seconds": seconds},
            figures=_figures(part),
            file=file,
        )
        yield round(seconds), figures.get("provenance", ""), record


def _figures(part: Mapping[str, Any]) -> dict[str, Any]:
    """As records have them."""
    depth = part["recipe"]["iterations"]
    training: dict[str, Any] = {
        name: {"solved": part[key]["solved by iteration"][:depth][-1], "of": part[key]["problems"]}
        for name, key in (("train", "train"), ("validation", "held out"))
        if key in part
    }
    training["setting"] = {name: part["recipe"][name] for name in _SETTING}
    tests = {}
    for name, test in part.items():
        size = name.removeprefix("size ")
        if not size[0].isdecimal():
            continue
        tests[size] = {"problems": test["problems"], "solved": test["solved by iteration"]}
        if (sure := "solved by the most confident") in test:
            tests[size][sure] = test[sure]
    return {"training": training, "tests": tests, "studies": {}}


def remarks(experiment: Experiment, groups: Sequence[Timed]) -> list[str]:
    """What has to be said of the rows of an experiment, a paragraph each."""
    shown_models = {row.model for row in experiment.rows}
    here = [
        group for group in groups if any(one.model in shown_models for one in group.records.all)
    ]
    said = [f"{group.told}: {note}." for group in here for note in group.notes]
    return [ABOUT, *([MIXED] if any(group.mixed for group in here) else []), *said]


def timed_rows(experiment: Experiment, groups: Sequence[Timed]) -> list[list[str]]:
    """The table of an experiment, its head first; [] where nothing was measured."""
    rows = [
        cells
        for row in experiment.rows
        for group in groups
        if (cells := _cells(row, group)) is not None
    ]
    return [HEAD, *rows] if rows else []


def _cells(row: Row, group: Timed) -> list[str] | None:
    model, records = MODELS[row.model], group.records.of(row.model)
    cell = row.measure.of(records)
    if cell.every is None or not isinstance(row.measure, Peaks | Accuracy):
        return None
    error = "" if cell.every.error is None else f" ± {cell.every.error:.2f}"
    step = "" if cell.step is None else f" at {cell.step}"
    return [
        model.label,
        "" if model.alpha is None or model.label == "FF" else f"{model.alpha:g}",
        group.told,
        " / ".join(dict.fromkeys(map(setting, records))),
        row.measure.title,
        f"{cell.every.mean:.2f}{error} %{step}",
        _interval(cell.every.mean, row.measure, records),
        _end(row.measure, records),
        str(cell.every.seeds),
        "–" if row.paper is None else row.paper.told,
    ]


def _interval(mean: float, measure: Peaks | Accuracy, records: Sequence[Record]) -> str:
    """What the number of puzzles, the same for every seed, allows to be said."""
    if isinstance(measure, Peaks):
        tests = [record.tests[measure.size] for record in records if measure.size in record.tests]
        count = max(test["problems"] for test in tests)
    else:
        count = max(record.figures["training"][measure.which]["of"] for record in records)
    solved = torch.tensor(mean / 100 * count, dtype=torch.float64)
    low, high = (100 * wilson(solved, count)).tolist()
    return f"{low:.1f} to {high:.1f} of {count:,}"


def _end(measure: Peaks | Accuracy, records: Sequence[Record]) -> str:
    if isinstance(measure, Accuracy):
        return ""
    curves = measure.curves(records)
    length = min(map(len, curves))
    return f"{sum(curve[length - 1] for curve in curves) / len(curves):.2f} % after {length}"
