"""Records are read and merged; an edited or damaged one is refused in one line."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import figures, keep, keep_count

from iterant.errors import RunError
from iterant.experiments.measures import Accuracy, Changes, Peaks, Recovered, RecoveryByIndex
from iterant.experiments.records import (
    Record,
    check_figures,
    keep_record,
    read_records,
)

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


def whole() -> dict[str, Any]:
    made = figures("sums-recall-a1", 0, [0, 50], studies=deepcopy(STUDIES))
    made["tests"]["512:10:600"] = {"problems": 10, "solved": {"600": 9, "1200": 10}}
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


def is_refused(made: dict[str, Any]) -> bool:
    try:
        check_figures(made)
    except (KeyError, TypeError, ValueError, AttributeError):
        return True
    return False


def test_a_whole_record_passes_and_no_field_may_be_missing() -> None:
    assert not is_refused(whole())
    for name in ("model", "seed", "finished", "reduced", "tests", "studies"):
        made = whole()
        del made[name]
        assert is_refused(made)


@settings(max_examples=150)
@given(
    st.sampled_from(places(whole())),
    st.sampled_from(
        [None, True, -1, 7, 10**6, 10**30, 0.5, "x", "", [], ["x"], [None], {}, {"a": 1}]
    ),
)
def test_a_fault_is_told_or_every_measure_can_be_taken(path: tuple[Any, ...], value: Any) -> None:
    made = changed(path, value)
    if not is_refused(made):
        record = Record(made["model"], made["seed"], made["finished"], {}, made, Path(__file__))
        assert len(list(record.counts)) <= 1
        assert record.older in (True, False)
        for measure in MEASURES:
            cell = measure.of([record, record])
            assert cell.value is None or isinstance(cell.value.interval_text, str)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("seed",), True),
        (("seed",), -1),
        (("tests", "512", "solved"), [0, 101]),
        (("tests", "512:10:600", "solved"), {"600": 11}),
        (("tests", "512:10:600", "solved"), {"soon": 1}),
        (("tests", "512:10:600", "solved"), 7),
        (("training", "train"), {"solved": 1, "of": 0}),
        (("studies", "noise", "samples"), None),
        (("studies", "convergence", "problems", "change"), ["x"]),
    ],
)
def test_impossible_numbers_are_refused(path: tuple[Any, ...], value: Any) -> None:
    assert is_refused(changed(path, value))


def test_records_merge_by_copying_and_two_of_one_unit_are_refused(tmp_path: Path) -> None:
    keep(tmp_path / "mine", "sums-n0", 0, [50])
    keep(tmp_path / "theirs", "sums-n0", 1, [60])
    assert len(read_records(tmp_path).of("sums-n0")) == 2
    keep(tmp_path / "third", "sums-n0", 1, [60])
    with pytest.raises(RunError) as caught:
        read_records(tmp_path)
    for name in ("theirs", "third", "sums-n0 with seed 1"):
        assert name in str(caught.value)


def test_a_record_whose_seed_was_edited_is_refused(tmp_path: Path) -> None:
    keep_record(tmp_path, "a", figures("sums-n0", 1, [50]), seed=0)
    with pytest.raises(RunError, match=r"is of seed 1 in its figures and of 0 beside them; rest"):
        read_records(tmp_path)


def test_other_results_are_refused(tmp_path: Path) -> None:
    keep(tmp_path, "sums-n0", 0, [1])
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(RunError, match=r"x.json.*is no result"):
        read_records(tmp_path)


def test_two_equal_tests_of_one_network_are_refused(tmp_path: Path) -> None:
    keep_count(tmp_path, "mazes-ours", 0, "201", {2000: 90, 4000: 95})
    keep_count(tmp_path / "more", "mazes-ours", 0, "201", {2000: 9, 4000: 9}, problems=10)
    assert len(read_records(tmp_path).counts("mazes-ours", "201")) == 2
    keep_count(tmp_path / "again", "mazes-ours", 0, "201", {2000: 90, 4000: 95})
    with pytest.raises(RunError, match=r"mazes-ours with seed 0 is recorded twice, in '.*again"):
        read_records(tmp_path)
