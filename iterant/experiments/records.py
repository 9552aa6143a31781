"""Records of trained networks: one schema, one reader.

    >>> records = read_results("results")
    >>> [record.seed for record in records.runs("sums-recall-a1")]
    [0, 1, 2]

A record is a result (see `iterant.io.results`) of one network. Its figures are

    model, seed   a key of `MODELS`, and the seed of the run
    finished      whether the recipe ended or validation was perfect
    reduced       differences from the model's recipe: {} none, {"seconds": 75} trained for a time
    precision     of training
    training      accuracies, recipe, history. Records without it are later tests of a network;
                  they count in rows without curves, not as runs
    tests         by size, "solved" after every iteration: a list. Or, by SIZE:PROBLEMS:ITERATIONS,
                  "solved" after a few numbers of iterations: {"2000": 97, "4000": 98}. Of other
                  kinds of mazes by "SIZE KIND:PROBLEMS:ITERATIONS" (`iterant.experiments.shifts`)
    studies       interventions and convergence, by name

A ``.jsonl`` file has one record a line, a ``.json`` file is one record. Records of unfinished or
reduced runs count in no table and are left out. Two records of the same network are an error that
names both files.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iterant.errors import RunError
from iterant.experiments.models import MODELS
from iterant.io import append_line, read_json, read_lines, write_json
from iterant.io.files import PathLike, make_folder, quoted, to_json
from iterant.io.results import check_result, make_result
from iterant.training.recipe import current_names

FOLDERS = ("paper", "recipes", "runs")
"""Folders of results/ that have records: of the paper's networks, of ours, and new ones."""

TableRow = dict[str, str]
"""A row of a table: texts by column."""

SHIPPED = Path(__file__).with_name("recorded")
"""The folders "paper" and "recipes" of results/, in an installed package: see pyproject.toml."""

CONFIDENT = "solved by the most confident"
"""The key of a curve with the most confident iteration as the exit rule."""

ANY = "any shortest path"
"""The key of mazes whose answer is a shortest path, whichever, by iterations."""

CONVERGED = 0.99
"""Training accuracy from which the paper counts a network as converged."""


@dataclass(frozen=True)
class Count:
    """A test without a curve: problems that a network solved after a few numbers of iterations."""

    seed: int
    name: str
    """Size, and the kind of mazes where it is not the paper's: ``201``, ``59 start=any,p=0.1``"""
    problems: int
    solved: Mapping[int, int]
    """Problems solved, by iterations in ascending order"""
    any_path: Mapping[int, int]
    """Mazes whose answer is a shortest path, whichever, by iterations; {}: not tested"""
    precision: str
    """Precision of the test"""
    figures: Mapping[str, Any]
    """All figures of the test"""


@dataclass(frozen=True)
class Record:
    """The results of one network."""

    model: str
    seed: int
    figures: Mapping[str, Any]
    file: Path

    @property
    def name(self) -> str:
        """Model and seed: ``mazes-ff-s0``."""
        return f"{self.model}-s{self.seed}"

    @property
    def tests(self) -> dict[str, Any]:
        """Tests with a curve, by size."""
        tests = self.figures["tests"].items()
        return {size: test for size, test in tests if isinstance(test["solved"], list)}

    @property
    def counts(self) -> Iterator[Count]:
        """Tests without a curve."""
        precision = str(self.figures.get("test precision", "fp32"))
        for key, test in self.figures["tests"].items():
            if isinstance(test["solved"], dict):
                name = key.partition(":")[0]
                solved, any_path = _by_iterations(test["solved"]), _by_iterations(test.get(ANY, {}))
                yield Count(self.seed, name, test["problems"], solved, any_path, precision, test)

    @property
    def studies(self) -> Mapping[str, Any]:
        """Results of studies, by name."""
        studies: Mapping[str, Any] = self.figures["studies"]
        return studies

    @property
    def precision(self) -> str:
        """Precision of training: fp16, bf16 or fp32; "": unknown."""
        return str(self.figures.get("precision", ""))

    @property
    def is_run(self) -> bool:
        """Whether it is a training run with its tests, not only a later test."""
        return "training" in self.figures

    @property
    def training(self) -> Mapping[str, Any]:
        """Accuracies, recipe and history of training; {} for a later test."""
        training: Mapping[str, Any] = self.figures.get("training", {})
        return training

    @property
    def failed(self) -> bool:
        """Whether training diverged, so that there was nothing to test: it solves nothing."""
        return self.is_run and "train" not in self.training and not self.figures["tests"]

    @property
    def converged(self) -> bool:
        """Whether it passes the paper's filter (`CONVERGED`)."""
        train = self.training.get("train")
        return train is not None and train["solved"] / train["of"] >= CONVERGED

    @property
    def older(self) -> bool:
        """Whether the model's recipe has changed since; fields that are new do not count."""
        recipe = current_names(self.training.get("recipe", {}))
        now = to_json(MODELS[self.model].recipe.described()) if self.model in MODELS else {}
        compared = (recipe.keys() & now.keys()) - {"name", "notes", "precision"}
        return any(recipe[key] != now[key] for key in compared)


@dataclass(frozen=True)
class Records:
    """The records of some files, by model and seed."""

    all: tuple[Record, ...] = ()

    def of(self, model: str) -> tuple[Record, ...]:
        """The runs and the later tests of one model, by seed."""
        return tuple(one for one in self.all if one.model == model)

    def runs(self, model: str) -> tuple[Record, ...]:
        """The runs of one model, by seed."""
        return tuple(one for one in self.of(model) if one.is_run)

    @property
    def names(self) -> set[str]:
        """The names of the runs."""
        return {one.name for one in self.all if one.is_run}


def read_results(results: PathLike = "results") -> Records:
    """All records of a folder of results."""
    return read_records(*(Path(results) / name for name in FOLDERS))


def shipped_results() -> Path:
    """The folder of the results that ship with this version; in a clone, its own results/."""
    return SHIPPED if SHIPPED.is_dir() else Path(__file__).parents[2] / "results"


def read_records(*places: PathLike) -> Records:
    """All records in these files and folders; a folder that does not exist has none."""
    seen: dict[tuple[Any, ...], Path] = {}
    records: list[Record] = []
    for file in (file for place in places for file in _files(Path(place))):
        many = file.suffix == ".jsonl"
        for number, line in enumerate(read_lines(file) if many else [read_json(file)], start=1):
            record = _record(line, file, number)
            if record is None:
                continue
            keys = [(record.name, one.name, one.problems, *one.solved) for one in record.counts]
            keys += [(record.name,)] if record.is_run else []
            for key in dict.fromkeys(keys):
                if key in seen:
                    raise RunError(
                        f"{record.model} with seed {record.seed} is recorded twice, in "
                        f"{quoted(seen[key])} and in {quoted(file)}; remove one of them"
                    )
                seen[key] = file
            records.append(record)
    return Records(tuple(sorted(records, key=lambda one: (one.model, one.seed))))


def largest_tests(tests: Iterable[Count]) -> list[Count]:
    """Of several tests of a seed the one with the most problems."""
    by_size = sorted(tests, key=lambda one: one.problems)
    return list({one.seed: one for one in by_size}.values())


def precisions(records: Iterable[Record]) -> str:
    """Precisions of training: ``fp16``, or ``fp16 (4), fp32 (1)``; "": unknown."""
    counter = Counter(one.precision for one in records if one.precision)
    if len(counter) < 2:
        return "".join(counter)
    return ", ".join(f"{name} ({count})" for name, count in sorted(counter.items()))


def keep_record(place: PathLike, name: str, figures: Mapping[str, Any], seed: int | None) -> None:
    """Append a record to a ``.jsonl`` file, or write it as a separate file in a folder."""
    place, result = Path(place), make_result(name, figures, seed=seed)
    if place.suffix == ".jsonl":
        make_folder(place.parent)
        append_line(place, result)
    else:
        write_json(make_folder(place) / f"{name}.json", result, nan_to_null=True)


def _by_iterations(solved: Mapping[str, int]) -> dict[int, int]:
    return dict(sorted((int(steps), count) for steps, count in solved.items()))


def _files(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    endings = (".json", ".jsonl")
    return sorted(p for p in folder.rglob("*") if p.suffix in endings and p.name[0] != ".")


def _record(line: Any, file: Path, number: int) -> Record | None:
    """Check a record; None for one that does not count, or another result in a ``.json`` file."""
    where = f"{quoted(file)}, record {number}"
    result = check_result(line, where)
    figures = result["figures"]
    if not isinstance(figures, dict) or "model" not in figures:
        if file.suffix == ".json":
            return None
        raise RunError(f"{where} is a result, but not of a network; keep other results elsewhere")
    try:
        check_figures(figures)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(
            f"{where}: {type(error).__name__}: {error}; restore it from a copy, or remove it"
        ) from error
    if result["seed"] != figures["seed"]:  # edited, perhaps to count a run twice
        raise RunError(
            f"{where} is of seed {figures['seed']} in its figures and of {result['seed']} beside "
            "them; restore it from a copy, or remove it"
        )
    counts = figures["finished"] and not figures["reduced"]
    return Record(figures["model"], figures["seed"], figures, file) if counts else None


def check_figures(figures: Mapping[str, Any]) -> None:
    """Raise if a value that tables and figures read is missing or impossible.

    Users copy and edit these files.
    """
    training = figures.get("training", {})
    for value, kind in (
        (figures["model"], str), (figures["finished"], bool), (figures["reduced"], dict),
        (training.get("recipe", {}), dict),
    ):  # fmt: skip
        if not isinstance(value, kind):
            raise TypeError(f"{reprlib.repr(value)} is of the wrong type")
    _check_counts([figures["seed"], figures.get("parameters", 0)])
    for name in training.keys() & {"train", "validation"}:
        _check_counts([training[name]["solved"]], training[name]["of"])
    for test in figures["tests"].values():
        curves = [test["solved"], test.get(CONFIDENT, [0])]
        if isinstance(test["solved"], dict):
            steps = sorted(test["solved"], key=int)
            curves = [[test[key][n] for n in steps] for key in ("solved", ANY) if key in test]
        if ANY in test:
            curves.append([test["answers changed"]])
        for curve in curves:
            _check_counts(curve, test["problems"])
    for study in figures["studies"].values():
        if "right" in study:
            _check_counts(study["right"], study["samples"])
        means = ("recovered", "mean iterations", "mean iterations to first")
        lists = [[study.get(key) for key in means], study.get("mean iterations by index", [0])]
        # The key "problems" may also hold a number of problems.
        inputs = (study.get(key) for key in ("problems", "random inputs"))
        for numbers in [*lists, *(one["change"] for one in inputs if isinstance(one, dict))]:
            _check_numbers(numbers)


def _check_numbers(values: Any) -> None:
    """Check for a non-empty list of numbers; None stands for a missing one."""
    numbers = (int, float, type(None))
    if type(values) is not list or not values or any(type(one) not in numbers for one in values):
        raise ValueError(f"{reprlib.repr(values)} are no numbers")


def _check_counts(values: Any, most: Any = 2**53) -> None:
    """Check for a non-empty list of integers from 0 to ``most``, at most 2**53: exact as floats."""
    _check_numbers(values)
    possible = type(most) is int and 0 < most <= 2**53
    if not possible or not all(type(count) is int and 0 <= count <= most for count in values):
        raise ValueError(f"{reprlib.repr(values)} of {reprlib.repr(most)}")
