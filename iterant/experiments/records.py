"""What units left behind: one record each, in files that people copy together.

    >>> records = read_records("results/runs")
    >>> [record.seed for record in records.of("sums-recall-a1")]
    [0, 1, 2]

A record is a result (see `iterant.io.results`) whose figures name its model, its seed and what
was made smaller. Files end in ``.json`` (one record) or ``.jsonl`` (a record a line, as a campaign
appends them). Two records of one unit are refused, and both files named: nobody chooses quietly.

Results that somebody damaged or edited are named in one line, whatever is missing in them.

Whether a record holds what tables and figures are made of: people copy and edit such files.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iterant.errors import RunError
from iterant.io import append_line, is_torn, read_json, read_lines, write_json
from iterant.io.files import PathLike, make_folder, quoted
from iterant.io.results import check_result, make_result

_FAULTS = (KeyError, TypeError, AttributeError, IndexError, ValueError, ZeroDivisionError)
"""What comes of reading something that is not there, or is something else."""


@contextmanager
def as_written(file: PathLike, writers: str) -> Iterator[None]:
    """Raise one line where what is read is not what ``writers`` write."""
    try:
        yield
    except _FAULTS as failure:
        raise RunError(
            f"{quoted(file)} is not what {writers} write ({type(failure).__name__}: {failure}); "
            "restore it from a copy, or give it another name"
        ) from failure


_SORTS: dict[str, tuple[type, str]] = {
    "model": (str, "name"),
    "seed": (int, "whole number"),
    "finished": (bool, "true or false"),
    "reduced": (dict, "object"),
    "training": (dict, "object"),
    "tests": (dict, "object"),
    "studies": (dict, "object"),
}

_MOST = 2**53
"""Problems that a number of the machine counts exactly"""

NEEDED = tuple(_SORTS)
"""What the figures of every record have."""


def fault_in(figures: Mapping[str, Any]) -> str:
    """The first thing that is wrong with a record's figures; "": nothing."""
    return next(_faults(figures), "")


def _faults(figures: Mapping[str, Any]) -> Iterator[str]:
    for name, (sort, told) in _SORTS.items():
        if name in figures and not _is(figures[name], sort):
            yield f"{name} is {reprlib.repr(figures[name])}, no {told}"
            return
    missing = [name for name in NEEDED if name not in figures]
    if missing:
        yield f"{', '.join(missing)} missing"
        return
    if figures["seed"] < 0:
        yield f"seed is {figures['seed']}, below 0"
    for name, test in figures["tests"].items():
        yield from _curve(test, f"the test {name}", "problems", "solved")
        if isinstance(test, dict) and "solved by the most confident" in test:
            yield from _curve(test, f"the test {name}", "problems", "solved by the most confident")
    yield from _training(figures["training"])
    for name, study in figures["studies"].items():
        yield from _study(study, f"the study {name}")


def _training(training: Mapping[str, Any]) -> Iterator[str]:
    for name in ("train", "validation"):
        if name in training:
            found = training[name]
            if not isinstance(found, dict) or not _counts([found.get("solved")], found.get("of")):
                yield f"the accuracy {name} is {reprlib.repr(found)}, no count solved of a count"
    if not isinstance(training.get("recipe", {}), dict):
        yield f"the recipe is {reprlib.repr(training['recipe'])}, no object"
    history = training.get("history", [])
    if not isinstance(history, list) or not all(
        isinstance(row, dict) and _is(row.get("epoch"), int) for row in history
    ):
        yield "the history is no list of epochs"


def _study(study: Any, name: str) -> Iterator[str]:
    if not isinstance(study, dict):
        yield f"{name} is {reprlib.repr(study)}, no object"
        return
    if "right" in study:
        yield from _curve(study, name, "samples", "right")
    for key in ("recovered", "mean iterations", "mean iterations to first"):
        if not _number(study.get(key)):
            yield f"{key} of {name} is {reprlib.repr(study[key])}, no number"
    series = {"mean iterations by index": study.get("mean iterations by index", [])}
    for inputs in ("problems", "random inputs"):
        found = study.get(inputs)
        if isinstance(found, dict):
            series[f"change on {inputs}"] = found.get("change")
            ends = found.get("features", {})
            if not isinstance(ends, dict) or not _counts(list(ends.values()), _MOST):
                yield f"features on {inputs} of {name} are no counts"
    for key, values in series.items():
        known = isinstance(values, list) and all(map(_number, values))
        if not known or (not values and key.startswith("change")):
            yield f"{key} of {name} is no list of numbers"


def _curve(part: Any, name: str, count: str, curve: str) -> Iterator[str]:
    """Problems right after every iteration, and of how many."""
    if not isinstance(part, dict):
        yield f"{name} is {reprlib.repr(part)}, no object"
    elif not isinstance(part.get(curve), list) or not part[curve]:
        yield f"{curve!r} of {name} is no list of counts"
    elif not _counts(part[curve], part.get(count)):
        yield f"{name} has counts in {curve!r} that are none of {reprlib.repr(part.get(count))}"


def _counts(values: list[Any], of: Any) -> bool:
    known = _is(of, int) and 0 < of <= _MOST
    return known and all(_is(one, int) and 0 <= one <= of for one in values)


def _number(value: Any) -> bool:
    """Or nothing, where there was none."""
    return value is None or _is(value, int) or isinstance(value, float)


def _is(value: Any, sort: type) -> bool:
    """True and false are no numbers."""
    return isinstance(value, sort) and (sort is not int or not isinstance(value, bool))


FOLDER = "results/runs"
"""Where records of whole runs are kept; smaller ones lie elsewhere."""

ENOUGH = 0.99
"""Training accuracy from which the paper counts a model as converged."""


@dataclass(frozen=True)
class Record:
    """What is known of one unit."""

    model: str
    seed: int
    finished: bool
    """Trained as long as its recipe says, or until nothing could change what is tested"""
    reduced: Mapping[str, Any]
    """What was made smaller than in the paper; {}: nothing"""
    figures: Mapping[str, Any]
    file: Path

    @property
    def tests(self) -> Mapping[str, Any]:
        """By size."""
        found: Mapping[str, Any] = self.figures["tests"]
        return found

    @property
    def studies(self) -> Mapping[str, Any]:
        """By name."""
        found: Mapping[str, Any] = self.figures["studies"]
        return found

    def accuracy(self, which: str) -> float | None:
        """Of the tested weights on what they were trained on ("train") or held out."""
        found = self.figures["training"].get(which)
        return None if found is None else float(found["solved"] / found["of"])

    @property
    def precision(self) -> str:
        """What it was trained in: fp16, bf16 or fp32; "": its record does not say."""
        return str(self.figures.get("precision", ""))

    @property
    def failed(self) -> bool:
        """Whether training broke down, so that there was nothing to test: it solves nothing.

        On a small machine a run has no test but those that are shown, which may be a study alone.
        """
        measured = self.tests or self.studies or "train" in self.figures["training"]
        return self.finished and not measured

    @property
    def converged(self) -> bool:
        """Whether it passes the paper's filter."""
        return (self.accuracy("train") or 0.0) >= ENOUGH


@dataclass(frozen=True)
class Records:
    """All records of a folder."""

    all: tuple[Record, ...] = ()
    torn: tuple[Path, ...] = ()
    """Files that end in the middle of a record, which is left out"""

    def of(self, model: str) -> tuple[Record, ...]:
        """The finished runs of one model, by seed."""
        return tuple(one for one in self.all if one.model == model and one.finished)

    @property
    def taken_as_they_are(self) -> Records:
        """The same as if all had finished; of a unit that did, only the finished one."""
        done = self.names
        return Records(
            tuple(
                replace(one, finished=True)
                for one in self.all
                if one.finished or f"{one.model}-s{one.seed}" not in done
            )
        )

    @property
    def whole(self) -> Records:
        """Those that nothing was made smaller in."""
        return Records(tuple(one for one in self.all if not one.reduced))

    def unfinished(self) -> tuple[Record, ...]:
        """Runs that their time did not suffice for, and that nobody has finished since."""
        done = self.names
        return tuple(
            one for one in self.all if not one.finished and f"{one.model}-s{one.seed}" not in done
        )

    @property
    def names(self) -> set[str]:
        """Of the units that need not be trained again."""
        return {f"{one.model}-s{one.seed}" for one in self.all if one.finished}


def read_records(*folders: PathLike) -> Records:
    """All records in these files and folders; a folder that is not there holds none."""
    found: dict[tuple[str, int, bool, str], Record] = {}
    torn: list[Path] = []
    for folder in folders:
        for file in _files(Path(folder)):
            many = file.suffix == ".jsonl"
            lines = read_lines(file) if many else [read_json(file)]
            torn += [file] if many and is_torn(file) else []
            for number, line in enumerate(lines, start=1):
                record = _record(line, file, number)
                smaller = str(sorted(record.reduced.items()))
                same = (record.model, record.seed, record.finished, smaller)
                if same in found:
                    raise RunError(
                        f"{record.model} with seed {record.seed} is recorded twice, in "
                        f"{quoted(found[same].file)} and in {quoted(file)}; remove one of them"
                    )
                found[same] = record
    ordered = sorted(found.values(), key=lambda one: (one.model, one.seed))
    return Records(tuple(ordered), tuple(torn))


def keep_record(place: PathLike, name: str, figures: Mapping[str, Any], seed: int) -> None:
    """Write the record of a unit; see `keep`."""
    keep(place, make_result(name, figures, seed=seed))


def keep(place: PathLike, result: Mapping[str, Any]) -> None:
    """Add a result to a file of lines (``.jsonl``), or write a file of its own into a folder."""
    place = Path(place)
    if place.suffix == ".jsonl":
        make_folder(place.parent)
        append_line(place, result)
    else:
        write_json(make_folder(place) / f"{result['name']}.json", result, nan_to_null=True)


def _files(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    kept = (".json", ".jsonl")
    return sorted(p for p in folder.rglob("*") if p.suffix in kept and not p.name.startswith("."))


def _record(line: Any, file: Path, number: int) -> Record:
    where = f"{quoted(file)}, record {number}"
    result = check_result(line, where)
    figures = result["figures"]
    if not isinstance(figures, dict) or not any(name in figures for name in NEEDED):
        raise RunError(f"{where} is a result, but not of a unit; keep other results elsewhere")
    if fault := fault_in(figures):
        raise RunError(f"{where}: {fault}; restore it from a copy, or remove it")
    if result["seed"] != figures["seed"]:  # edited, perhaps to count a run twice
        raise RunError(
            f"{where} is of seed {figures['seed']} in its figures and of {result['seed']} beside "
            "them; restore it from a copy, or remove it"
        )
    return Record(
        model=figures["model"],
        seed=figures["seed"],
        finished=figures["finished"],
        reduced=figures["reduced"],
        figures=figures,
        file=file,
    )
