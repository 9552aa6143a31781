"""A record that somebody edited or cut off is refused in one line, whatever is wrong with it."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import figures

from iterant.experiments.measures import Accuracy, Changes, Indices, Peaks, Recovered
from iterant.experiments.records import NEEDED, Record, fault_in, read_records

STUDIES = {
    "noise": {"samples": 10, "right": [0, 10], "mean iterations": 3.5},
    "convergence": {"problems": {"change": [1.0, None], "features": {"broken": 1}},
                    "random inputs": {"change": [2]}},
    "bit-flip": {"samples": 10, "right": [0], "recovered": 0.5, "mean iterations": None,
                 "mean iterations by index": [1.0, None]},
}  # fmt: skip
MEASURES = (Peaks("512"), Peaks("512", confident=True), Accuracy("train"), Accuracy("validation"),
            Recovered("noise"), Changes("problems"), Changes("random inputs"),
            Indices())  # fmt: skip


def whole() -> dict[str, Any]:
    made = figures("sums-recall-a1", 0, [0, 50], studies=deepcopy(STUDIES))
    made["tests"]["512"]["solved by the most confident"] = [1, 2]
    made["training"] |= {"recipe": {}, "history": [{"epoch": 1, "loss": 0.5}]}
    return made


def places(part: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to everything in a record."""
    if not isinstance(part, dict | list):
        return [path]
    inner = part.items() if isinstance(part, dict) else enumerate(part)
    deeper = [one for key, value in inner for one in places(value, (*path, key))]
    return [path, *deeper] if path else deeper


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    made: Any = whole()
    part = made
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return dict(made)


def test_what_is_whole_has_no_fault() -> None:
    assert fault_in(whole()) == ""
    for record in read_records(Path(__file__).parents[2] / "results" / "runs").all:
        assert fault_in(record.figures) == ""


def test_what_is_missing_is_named() -> None:
    for name in NEEDED:
        made = whole()
        del made[name]
        assert fault_in(made) == f"{name} missing"


@settings(max_examples=150)
@given(
    st.sampled_from(places(whole())),
    st.sampled_from(
        [None, True, -1, 7, 10**6, 10**30, 0.5, "x", "", [], ["x"], [None], {}, {"a": 1}]
    ),
)
def test_a_fault_is_told_or_every_measure_can_be_taken(path: tuple[Any, ...], value: Any) -> None:
    made = changed(path, value)
    fault = fault_in(made)
    assert "\n" not in fault
    if not fault:
        record = Record(made["model"], made["seed"], made["finished"], {}, made, Path(__file__))
        for measure in MEASURES:
            cell = measure.of([record, record])
            assert cell.every is None or isinstance(cell.every.told_interval, str)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("seed",), True, "seed is True, no whole number"),
        (("seed",), -1, "seed is -1, below 0"),
        (("tests", "512", "solved"), [0, 101], "none of 100"),
        (("training", "train"), {"solved": 1, "of": 0}, "no count solved of a count"),
        (("studies", "noise", "samples"), None, "the study noise has counts in 'right'"),
        (("studies", "convergence", "problems", "change"), ["x"], "no list of numbers"),
        (("studies", "convergence", "problems", "features"), {"broken": -1}, "are no counts"),
    ],
)
def test_it_says_what_is_wrong(path: tuple[Any, ...], value: Any, told: str) -> None:
    assert told in fault_in(changed(path, value))
