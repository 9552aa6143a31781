"""Means, errors, intervals, peaks and verdicts, beside a second way of computing them."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy import stats

from iterant.experiments.measures import Summary, Value, peak, summary, verdict

NUMBERS = some.lists(some.floats(0, 100), min_size=2, max_size=30)


@given(NUMBERS)
def test_mean_and_standard_error(values: list[float]) -> None:
    found = summary(values)
    assert found is not None
    assert found.mean == pytest.approx(statistics.fmean(values))
    assert found.error == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)), abs=1e-9)
    assert found.seeds == len(values)


@pytest.mark.parametrize("seeds", range(2, 22))
def test_intervals_are_students(seeds: int) -> None:
    low, high = Summary(50.0, 2.0, seeds).interval or (0, 0)
    wanted = 2.0 * stats.t.ppf(0.975, seeds - 1)
    assert high - 50 == pytest.approx(50 - low) == pytest.approx(wanted, rel=1e-3)


def test_an_interval_is_no_narrower_than_the_problems_allow() -> None:
    test = stats.binomtest(970, 1000).proportion_ci(method="wilson")
    wanted = (100 * test.low, 100 * test.high)
    assert Summary(97.0, 0.0, 5, problems=1000).interval == pytest.approx(wanted)
    wide = Summary(97.0, 3.0, 5)
    assert Summary(97.0, 3.0, 5, problems=1000).interval == wide.interval


def test_intervals_are_told_within_bounds_and_of_one_seed_by_its_problems() -> None:
    assert Summary(99.0, 2.0, 3, problems=1000).interval_text == "90.39 to 100.00"
    assert Summary(1.0, 2.0, 3, problems=1000).interval_text == "0.00 to 9.61"
    test = stats.binomtest(3, 3).proportion_ci(method="wilson")
    assert Summary(100.0, None, 1, problems=3).interval_text == f"{100 * test.low:.2f} to 100.00"
    assert Summary(12.5, 1.0, 3).interval_text == "", "no share of anything"


def test_one_seed_has_no_error_and_none_no_mean() -> None:
    assert summary([3.0]) == Summary(3.0, None, 1)
    assert Summary(3.0, None, 1).interval is None
    assert summary([]) is None
    assert peak([]) is None


def test_a_peak_is_that_of_the_mean_curve() -> None:
    # Each curve peaks elsewhere at 100; their mean peaks at the third iteration.
    assert peak([[100, 0, 90, 0], [0, 100, 90, 0]]) == (3, Summary(90.0, 0.0, 2))
    assert peak([[0, 50, 50]]) == (2, Summary(50.0, None, 1)), "the earliest of equals"
    assert peak([[1.0, 2.0, 9.0], [3.0, 4.0]]) == (2, Summary(3.0, 1.0, 2)), "as far as all go"


@pytest.mark.parametrize(
    ("ours", "paper", "said"),
    [
        (Summary(99.0, 0.1, 5), Value(97.0, 0.5), "above"),
        (Summary(90.0, 0.1, 5), Value(97.0, 0.5), "below"),
        (Summary(96.0, 1.0, 5), Value(97.0, 0.5), "no difference shown"),
        (Summary(96.0, 0.3, 2), Value(97.0, 0.5), "too few seeds"),
        (Summary(0.0, 0.0, 3), Value(0.0, 0.0), "no difference shown"),
        (Summary(0.0, None, 1), Value(97.0, 0.5), "too few seeds"),
        (Summary(80.0, 1.0, 5), Value(74.0), ""),
        (Summary(90.0, 1.0, 5), Value(74.0, problems=100), "above"),
        (Summary(80.0, 0.2, 5), Value(74.0, problems=100), "no difference shown"),
        (Summary(80.0, 2.0, 5), Value(74.0, problems=100), "too few seeds"),
        (Summary(53.0, 26.0, 3), Value(82.72, 3.0), "too few seeds"),
        (Summary(100.0, 0.0, 5), Value(82.72, 15.14), "too few seeds"),
        (Summary(80.0, 1.0, 5), None, ""),
        (None, Value(74.0), ""),
        (Summary(100.0, 0.0, 5), Value(99.97, 0.01), "above"),
        (Summary(100.0, 0.0, 5, problems=1000), Value(99.97, 0.01), "no difference shown"),
        (Summary(0.0, 0.0, 5, problems=1000), Value(11.26, 2.0), "below"),
    ],
)
def test_a_difference_needs_intervals_that_are_apart(
    ours: Summary | None, paper: Value | None, said: str
) -> None:
    assert verdict(ours, paper) == said
