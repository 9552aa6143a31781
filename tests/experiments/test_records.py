"""Records are read and merged; an invalid one is an error."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from fake_records import figures, keep, keep_count
from hypothesis import given, settings
from hypothesis import strategies as st

from iterant.errors import RunError
from iterant.experiments.measures import Accuracy, Changes, Peaks, Recovered, RecoveryByIndex
from iterant.experiments.records import (
    ANY,
    Record,
    Records,
    check_figures,
    keep_record,
    read_records,
)
from iterant.experiments.shifts import MAZE_EXPERIMENTS

STUDIES = {
    "noise": {"samples": 10, "right": [0, 10], "mean iterations": 3.5},
    "convergence": {"problems": {"change": [1.0, None]},
                    "random inputs": {"change": [2]}},
    "bit-flip": {"samples": 10, "right": [0], "recovered": 0.5, "mean iterations": None,
                 "mean iterations by index": [1.0, None]},
}  # fmt: skip
MEASURES = (Peaks("512"), Peaks("512", confident=True), Accuracy("train"), Accuracy("validation"),
            Recovered("noise"), Changes("problems"), Changes("random inputs"),
            RecoveryByIndex())  # fmt: skip


def valid() -> dict[str, Any]:
    record = figures("sums-recall-a1", 0, [0, 50], studies=deepcopy(STUDIES))
    record["tests"]["512:10:600"] = {"problems": 10, "solved": {"600": 9, "1200": 10}}
    record["tests"]["512"]["solved by the most confident"] = [1, 2]
    mazes = {"1000": 9, "4000": 10}
    record["tests"]["30 maze-hard:10:1000"] = {"problems": 10, "solved": mazes, ANY: {**mazes},
                                               "answers changed": 1}  # fmt: skip
    record["parameters"] = 72
    record["training"] |= {"recipe": {}, "history": [{"epoch": 1, "loss": 0.5}]}
    return record


def paths(part: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The keys that lead to every value in a record."""
    if not isinstance(part, dict | list):
        return [path]
    inner = part.items() if isinstance(part, dict) else enumerate(part)
    deeper = [one for key, value in inner for one in paths(value, (*path, key))]
    return [path, *deeper] if path else deeper


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    record: Any = valid()
    part = record
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return dict(record)


def is_valid(record: dict[str, Any]) -> bool:
    try:
        check_figures(record)
    except (KeyError, TypeError, ValueError, AttributeError):
        return False
    return True


@settings(max_examples=150)
@given(
    st.sampled_from(paths(valid())),
    st.sampled_from(
        [None, True, -1, 7, 10**6, 10**30, 0.5, "x", "", [], ["x"], [None], {}, {"a": 1}]
    ),
)
def test_every_measure_accepts_a_valid_record(path: tuple[Any, ...], value: Any) -> None:
    figures = changed(path, value)
    if is_valid(figures):
        record = Record(figures["model"], figures["seed"], figures, Path(__file__))
        assert len(list(record.counts)) <= 2
        for past in MAZE_EXPERIMENTS.values():
            assert past.make_table(Records((record,)))
        assert record.older in (True, False)
        for measure in MEASURES:
            cell = measure.of([record, record])
            assert cell.value is None or isinstance(cell.value.interval_text, str)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("seed",), -1),
        (("tests", "512", "solved"), [0, 101]),
        (("tests", "512:10:600", "solved"), {"600": 11}),
        (("tests", "512:10:600", "solved"), {"soon": 1}),
        (("tests", "30 maze-hard:10:1000", ANY), {"1000": 11, "4000": 10}),
        (("tests", "30 maze-hard:10:1000", "answers changed"), None),
        (("parameters",), "many"),
        (("training", "train"), {"solved": 1, "of": 0}),
        (("studies", "convergence", "problems", "change"), ["x"]),
    ],
)
def test_impossible_numbers(path: tuple[Any, ...], value: Any) -> None:
    assert is_valid(valid())
    assert not is_valid(changed(path, value))


def test_files_are_merged_and_two_records_of_one_run_are_an_error(tmp_path: Path) -> None:
    keep(tmp_path / "mine", "sums-n0", 0, [50])
    keep(tmp_path / "theirs", "sums-n0", 1, [60])
    (tmp_path / ".hidden.json").write_text("half of a file")
    assert len(read_records(tmp_path).of("sums-n0")) == 2
    keep(tmp_path / "third", "sums-n0", 1, [60])
    with pytest.raises(RunError) as caught:
        read_records(tmp_path)
    for name in ("theirs", "third", "sums-n0 with seed 1"):
        assert name in str(caught.value)


def test_a_run_without_accuracies_has_failed(tmp_path: Path) -> None:
    ended = {"training": {"ended": "diverged"}}
    keep(tmp_path, "sums-n0", 0, [], **ended, tests={})
    keep(tmp_path, "sums-n0", 1, [50], **ended)
    keep(tmp_path, "sums-n0", 2, [], tests={})  # it has an accuracy on its training set
    failed = {record.seed: record.failed for record in read_records(tmp_path).of("sums-n0")}
    assert failed == {0: True, 1: False, 2: False}


def test_an_edited_seed_is_an_error(tmp_path: Path) -> None:
    keep_record(tmp_path, "a", figures("sums-n0", 1, [50]), seed=0)
    with pytest.raises(RunError, match=r"is of seed 1 in its figures and of 0 beside them; rest"):
        read_records(tmp_path)


def test_an_invalid_result_is_an_error(tmp_path: Path) -> None:
    keep(tmp_path, "sums-n0", 0, [1])
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(RunError, match=r"x.json.*is not a result"):
        read_records(tmp_path)


def test_two_equal_tests_of_one_network_are_an_error(tmp_path: Path) -> None:
    keep_count(tmp_path, "mazes-ours", 0, "201", {2000: 90, 4000: 95})
    keep_count(tmp_path / "more", "mazes-ours", 0, "201", {2000: 9, 4000: 9}, problems=10)
    assert len(read_records(tmp_path).all) == 2
    keep_count(tmp_path / "again", "mazes-ours", 0, "201", {2000: 90, 4000: 95})
    with pytest.raises(RunError, match=r"mazes-ours with seed 0 is recorded twice, in '.*again"):
        read_records(tmp_path)
