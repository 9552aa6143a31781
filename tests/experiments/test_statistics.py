"""Means, errors, intervals, peaks and verdicts, compared with scipy and statistics."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy import stats

from iterant.experiments.statistics import Value, mean_of, peak, verdict


def over_seeds(mean: float, error: float | None, seeds: int, problems: int = 0) -> Value:
    return Value(mean, error, problems=problems, seeds=seeds)


NUMBERS = some.lists(some.floats(0, 100), min_size=2, max_size=30)


@given(NUMBERS)
def test_mean_and_standard_error(values: list[float]) -> None:
    found = mean_of(values)
    assert found is not None
    assert found.mean == pytest.approx(statistics.fmean(values))
    assert found.error == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)), abs=1e-9)
    assert found.seeds == len(values)


@pytest.mark.parametrize("seeds", range(2, 22))
def test_intervals_by_student(seeds: int) -> None:
    low, high = over_seeds(50.0, 2.0, seeds).interval or (0, 0)
    wanted = 2.0 * stats.t.ppf(0.975, seeds - 1)
    assert high - 50 == pytest.approx(50 - low) == pytest.approx(wanted, rel=1e-3)


def test_an_interval_is_no_narrower_than_the_problems_allow() -> None:
    test = stats.binomtest(970, 1000).proportion_ci(method="wilson")
    wanted = (100 * test.low, 100 * test.high)
    assert over_seeds(97.0, 0.0, 5, problems=1000).interval == pytest.approx(wanted)
    wide = over_seeds(97.0, 3.0, 5)
    assert over_seeds(97.0, 3.0, 5, problems=1000).interval == wide.interval


def test_one_seed_has_no_error_and_none_no_mean() -> None:
    assert mean_of([3.0]) == over_seeds(3.0, None, 1)
    assert over_seeds(3.0, None, 1).interval is None
    assert mean_of([]) is None
    assert peak([]) is None


@pytest.mark.parametrize(
    ("curves", "height", "step"),
    [
        # Each curve peaks elsewhere at 100; their mean peaks at the third iteration.
        ([[100, 0, 90, 0], [0, 100, 90, 0]], over_seeds(90.0, 0.0, 2), 3),
        ([[0, 50, 50]], over_seeds(50.0, None, 1), 2),  # the first of equal iterations
        ([[1.0, 2.0, 9.0], [3.0, 4.0]], over_seeds(3.0, 1.0, 2), 2),  # of the shortest length
    ],
)
def test_peak_of_the_mean_curve(curves: list[list[float]], height: Value, step: int) -> None:
    assert peak(curves) == replace(height, step=step)


@pytest.mark.parametrize(
    ("ours", "paper", "wanted"),
    [
        # 97.6 to 100.4 and 96.0 to 98.0 overlap; the difference is 0.3 to 3.7.
        (over_seeds(99.0, 0.5, 5), Value(97.0, 0.5), "above"),
        (over_seeds(90.0, 0.1, 5), Value(97.0, 0.5), "below"),
        (over_seeds(96.0, 1.0, 5), Value(97.0, 0.5), "no difference shown"),
        (over_seeds(96.0, 0.3, 2), Value(97.0, 0.5), "too few seeds"),
        (over_seeds(0.0, None, 1), Value(97.0, 0.5), "too few seeds"),
        (over_seeds(80.0, 1.0, 5), Value(74.0), ""),
        (over_seeds(80.0, 2.0, 5), Value(74.0, problems=100), "too few seeds"),
        (over_seeds(80.0, 1.0, 5), None, ""),
        (over_seeds(100.0, 0.0, 5, problems=1000), Value(99.97, 0.01), "no difference shown"),
    ],
)
def test_verdict_beside_the_paper(ours: Value | None, paper: Value | None, wanted: str) -> None:
    assert verdict(ours, paper) == wanted
