"""Records of trained networks: one schema, one reader.

    >>> records = read_results("results")
    >>> [record.seed for record in records.of("sums-recall-a1")]
    [0, 1, 2]

A record is a result (see `iterant.io.results`) of one network. Its figures are

    model, seed   what was trained: a key of `MODELS`, and the seed
    finished      trained as long as its recipe says, or until validation was perfect
    reduced       what differs from the model's recipe: {} nothing, {"seconds": 75} the time
    precision     of training
    training      how training went: accuracies, recipe, history. Records without it are of networks
                  that were tested only; they count in rows without curves, not as runs
    tests         by size, "solved" after every iteration: a list. Or, by SIZE:PROBLEMS:ITERATIONS,
                  "solved" after a few numbers of iterations: {"2000": 97, "4000": 98}
    studies       interventions and convergence, by name

A ``.jsonl`` file has one record a line, a ``.json`` file is one record. Two records of the same
network are an error that names both files.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iterant.errors import RunError
from iterant.experiments.models import MODELS, OURS
from iterant.io import append_line, is_torn, read_json, read_lines, write_json
from iterant.io.files import PathLike, make_folder, quoted, to_json
from iterant.io.results import check_result, make_result
from iterant.training.recipe import Recipe

FOLDERS = ("paper", "recipes", "runs")
"""Folders of results/ that have records: of the paper's networks, of ours, and new ones."""

CONVERGED = 0.99
"""Training accuracy from which the paper counts a network as converged."""


@dataclass(frozen=True)
class Count:
    """Problems that one network solved after a few numbers of iterations."""

    model: str
    seed: int
    size: str
    problems: int
    solved: Mapping[int, int]
    """By iterations, ascending"""
    file: Path
    older: bool = False
    """Whether the model's recipe has changed since"""
    precision: str = ""
    """Of training; "": unknown"""

    @property
    def iterations(self) -> int:
        """The fewest."""
        return next(iter(self.solved))


@dataclass(frozen=True)
class Record:
    """The results of one network."""

    model: str
    seed: int
    finished: bool
    reduced: Mapping[str, Any]
    figures: Mapping[str, Any]
    file: Path

    @property
    def name(self) -> str:
        """Of the run: model and seed."""
        return f"{self.model}-s{self.seed}"

    @property
    def tests(self) -> Mapping[str, Any]:
        """Tests with a curve, by size."""
        tests: Mapping[str, Any] = self.figures["tests"]
        return {size: test for size, test in tests.items() if isinstance(test["solved"], list)}

    @property
    def counts(self) -> Iterator[Count]:
        """Tests without a curve."""
        for name, test in self.figures["tests"].items():
            if isinstance(test["solved"], dict):
                solved = {int(steps): test["solved"][steps] for steps in test["solved"]}
                yield Count(self.model, self.seed, name.partition(":")[0], test["problems"],
                            dict(sorted(solved.items())), self.file, bool(self.changed_fields),
                            self.precision)  # fmt: skip

    @property
    def studies(self) -> Mapping[str, Any]:
        """By name."""
        studies: Mapping[str, Any] = self.figures["studies"]
        return studies

    def accuracy(self, which: str) -> float | None:
        """Of the tested weights on training ("train") or held-out ("validation") problems."""
        part = self.figures.get("training", {}).get(which)
        return None if part is None else float(part["solved"] / part["of"])

    @property
    def precision(self) -> str:
        """Of training: fp16, bf16 or fp32; "": unknown."""
        return str(self.figures.get("precision", ""))

    @property
    def is_run(self) -> bool:
        """Whether it is a training run with its tests, not only a later test."""
        return "training" in self.figures

    @property
    def failed(self) -> bool:
        """Whether training diverged, so that there was nothing to test: it solves nothing.

        A run on a small machine may have no test but one study.
        """
        measured = self.figures["tests"] or self.studies
        return self.finished and self.is_run and not measured and self.accuracy("train") is None

    @property
    def converged(self) -> bool:
        """Whether it passes the paper's filter."""
        return (self.accuracy("train") or 0.0) >= CONVERGED

    @property
    def changed_fields(self) -> dict[str, Any]:
        """Fields of the model's recipe that have changed since, as they were."""
        about = self.figures.get("training", self.figures)
        best = about.get("best")
        validation = best.get("validation") if isinstance(best, dict) else None
        return changed_fields(self.model, about.get("recipe"), validation)

    @property
    def setting(self) -> str:
        """Learning rate, bounded features and precision, of networks trained for a time."""
        setting = self.figures["training"]["setting"]
        features = "bounded" if setting["bounded"] else "unbounded"
        return f"rate {setting['rate']:g}, {features} features, {setting['precision']}"


@dataclass(frozen=True)
class Records:
    """All records of some files, by model and seed."""

    all: tuple[Record, ...] = ()
    torn: tuple[Path, ...] = ()
    """Files that end in the middle of a record, which is left out"""

    def of(self, model: str) -> tuple[Record, ...]:
        """The finished runs of one model, by seed."""
        return tuple(one for one in self.all if one.model == model and one.finished and one.is_run)

    @property
    def whole(self) -> Records:
        """Those by their model's recipe, with nothing reduced."""
        return Records(tuple(one for one in self.all if not one.reduced))

    @property
    def as_finished(self) -> Records:
        """The same with all taken as finished; of a run that did finish, only that record."""
        return Records(
            tuple(
                replace(one, finished=True)
                for one in self.all
                if one.finished or one.name not in self.names
            )
        )

    @property
    def unfinished(self) -> tuple[Record, ...]:
        """Runs that were cut off and have not been finished since."""
        return tuple(one for one in self.all if not one.finished and one.name not in self.names)

    @property
    def names(self) -> set[str]:
        """Of the finished runs."""
        return {one.name for one in self.all if one.finished and one.is_run}

    def counts(self, model: str, size: str) -> list[Count]:
        """Tests of one model without curves on problems of one size."""
        mine = (one for one in self.all if one.model == model)
        counts = [count for one in mine for count in one.counts if count.size == size]
        return sorted(counts, key=lambda one: one.file.stem)

    @property
    def timed(self) -> tuple[Timed, ...]:
        """Networks trained for a time instead of by their recipe, the shortest time first."""
        groups: dict[int, list[Record]] = {}
        for one in self.all:
            if one.reduced.keys() == {"seconds"} and one.model in MODELS:
                groups.setdefault(round(one.reduced["seconds"]), []).append(one)
        return tuple(Timed(f"{key} s", Records(tuple(groups[key]))) for key in sorted(groups))


@dataclass(frozen=True)
class Timed:
    """Networks that were trained for the same time."""

    time: str
    """``75 s``"""
    records: Records

    @property
    def notes(self) -> tuple[str, ...]:
        """What their results say about how they were made."""
        by_file = sorted(self.records.all, key=lambda one: one.file.stem)
        notes = [one.figures.get("provenance", "") for one in by_file]
        return tuple(note for note in dict.fromkeys(notes) if note)

    @property
    def mixed(self) -> bool:
        """Whether the paper's networks were trained in different settings; ours has its own."""
        paper = [one for one in self.records.all if MODELS[one.model].word != OURS]
        return len({one.setting for one in paper}) > 1


def changed_fields(
    model: str, recipe: Mapping[str, Any] | None, validation: float | None = None
) -> dict[str, Any]:
    """Fields of a ``recipe`` that the model has otherwise now; {} where it is unknown.

    A run that reached the ``validation`` accuracy which the recipe asks for now would not have
    been restarted, so `again_below` does not matter to it.
    """
    if model not in MODELS or not recipe:
        return {}
    default, now = to_json(Recipe().described()), to_json(MODELS[model].recipe().described())
    # Fields that did not exist then had their defaults.
    then = {key: recipe.get(key, default[key]) for key in now}
    same = {"name", "notes", "precision"}  # which may differ from run to run
    if validation is not None and validation >= now["again_below"]:
        same.add("again_below")
    return {key: then[key] for key in sorted(now.keys() - same) if then[key] != now[key]}


def read_results(results: PathLike = "results") -> Records:
    """All records of a folder of results."""
    return read_records(*(Path(results) / name for name in FOLDERS))


def read_records(*places: PathLike) -> Records:
    """All records in these files and folders; a folder that does not exist has none."""
    seen: dict[tuple[Any, ...], Path] = {}
    records: list[Record] = []
    torn: list[Path] = []
    for file in (file for place in places for file in _files(Path(place))):
        many = file.suffix == ".jsonl"
        torn += [file] if many and is_torn(file) else []
        for number, line in enumerate(read_lines(file) if many else [read_json(file)], start=1):
            record = _record(line, file, number)
            if record is None:
                continue
            reduced = str(sorted(record.reduced.items()))
            keys: list[tuple[Any, ...]] = [
                (*count.solved, count.problems, count.size) for count in record.counts
            ]
            keys += [(record.finished,)] if record.is_run else []
            for key in ((record.name, reduced, *key) for key in keys):
                if key in seen:
                    raise RunError(
                        f"{record.model} with seed {record.seed} is recorded twice, in "
                        f"{quoted(seen[key])} and in {quoted(file)}; remove one of them"
                    )
                seen[key] = file
            records.append(record)
    return Records(tuple(sorted(records, key=lambda one: (one.model, one.seed))), tuple(torn))


def keep_record(place: PathLike, name: str, figures: Mapping[str, Any], seed: int | None) -> None:
    """Append the record of a run to a ``.jsonl`` file, or write a separate file in a folder."""
    place, result = Path(place), make_result(name, figures, seed=seed)
    if place.suffix == ".jsonl":
        make_folder(place.parent)
        append_line(place, result)
    else:
        write_json(make_folder(place) / f"{name}.json", result, nan_to_null=True)


def _files(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    endings = (".json", ".jsonl")
    return sorted(p for p in folder.rglob("*") if p.suffix in endings and p.name[0] != ".")


def _record(line: Any, file: Path, number: int) -> Record | None:
    """A checked record; None for a result of another kind, in a separate file."""
    where = f"{quoted(file)}, record {number}"
    result = check_result(line, where)
    figures = result["figures"]
    if not isinstance(figures, dict) or "model" not in figures:
        if file.suffix == ".json":
            return None
        raise RunError(f"{where} is a result, but not of a network; keep other results elsewhere")
    if problem := problem_in(figures):
        raise RunError(f"{where}: {problem}; restore it from a copy, or remove it")
    if result["seed"] != figures["seed"]:  # edited, perhaps to count a run twice
        raise RunError(
            f"{where} is of seed {figures['seed']} in its figures and of {result['seed']} beside "
            "them; restore it from a copy, or remove it"
        )
    return Record(figures["model"], figures["seed"], figures["finished"], figures["reduced"],
                  figures, file)  # fmt: skip


_TYPES = {"model": str, "seed": int, "finished": bool, "reduced": dict, "tests": dict,
          "studies": dict, "training": dict}  # fmt: skip


def problem_in(figures: Mapping[str, Any]) -> str:
    """What is wrong with the figures of a record; "": nothing.

    People copy and edit these files, so everything that tables and figures read is checked.
    """
    for name, kind in _TYPES.items():
        if name not in figures and name != "training":
            return f"{name} missing"
        if not _is(figures.get(name, {}), kind) and name in figures:
            return f"{name} is {reprlib.repr(figures[name])}"
    if figures["seed"] < 0:
        return f"seed is {figures['seed']}"
    parts = {
        "": {**figures.get("training", {}), "seconds": figures["reduced"].get("seconds")},
        **{f"the test {name}: ": test for name, test in figures["tests"].items()},
        **{f"the study {name}: ": study for name, study in figures["studies"].items()},
    }
    for name, part in parts.items():
        if not isinstance(part, dict):
            return f"{name}{reprlib.repr(part)} is no object"
        if name.startswith("the test") and not part.get("solved"):
            return f"{name}'solved' is missing"
        for key, value in part.items():
            check = _CHECKS.get(key)
            if check is not None and not check(value, part):
                return f"{name}{key!r} is {reprlib.repr(value)}"
    return ""


def _is(value: Any, kind: type) -> bool:
    """True and False are no numbers."""
    return isinstance(value, kind) and (kind is not int or not isinstance(value, bool))


def _number(value: Any, part: Any = None) -> bool:
    return value is None or _is(value, int) or isinstance(value, float)


def _numbers(value: Any, part: Any = None) -> bool:
    return isinstance(value, list) and all(map(_number, value))


def _counts(values: Any, of: Any) -> bool:
    """Whether these are counts of at most ``of``, which a float has exactly."""
    return (
        isinstance(values, list) and values != [] and _is(of, int) and 0 < of <= 2**53
        and all(_is(value, int) and 0 <= value <= of for value in values)
    )  # fmt: skip


def _solved(value: Any, part: Mapping[str, Any]) -> bool:
    """A curve, or counts by iterations."""
    if isinstance(value, dict):
        by_steps = all(steps.isdecimal() for steps in value)
        return by_steps and _counts(list(value.values()), part.get("problems"))
    return _counts(value, part.get("problems"))


def _accuracy(value: Any, part: Any) -> bool:
    return isinstance(value, dict) and _counts([value.get("solved")], value.get("of"))


def _change(value: Any, part: Any) -> bool:
    """A change by iteration, with what became of the features; or a number of problems."""
    if not isinstance(value, dict):
        return True
    ends = value.get("features", {})
    change = value.get("change")
    counted = isinstance(ends, dict) and (not ends or _counts(list(ends.values()), 2**53))
    return bool(change) and _numbers(change) and counted


_CHECKS: dict[str, Callable[[Any, Any], bool]] = {
    "solved": _solved,
    "solved by the most confident": _solved,
    "right": lambda value, study: _counts(value, study.get("samples")),
    "train": _accuracy,
    "validation": _accuracy,
    "recipe": lambda value, _: isinstance(value, dict),
    "history": lambda value, _: (
        isinstance(value, list)
        and all(isinstance(row, dict) and _is(row.get("epoch"), int) for row in value)
    ),
    "setting": lambda value, _: (
        isinstance(value, dict)
        and {"rate", "bounded", "precision"} <= value.keys()
        and isinstance(value["rate"], int | float)
    ),
    "seconds": _number,
    "recovered": _number,
    "mean iterations": _number,
    "mean iterations to first": _number,
    "mean iterations by index": _numbers,
    "problems": _change,
    "random inputs": _change,
}
"""How the value of a key is checked, given the test or study that has it."""
