"""Figures: lines are means over seeds with their standard errors; grids.

`test_results_page` compares the lines of every figure with those of the recorded pictures.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from fake_records import keep

from iterant.draw.plots import Line
from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.figures import figure_panels, lines_of, save_pictures
from iterant.experiments.records import Records, read_records


def lines(name: str, records: Records) -> dict[str, Line]:
    """The lines of the first panel, by label."""
    (panel, *_) = EXPERIMENTS[name].panels
    return {line.label: line for line in lines_of(panel, records)}


def cell(name: str, records: Records) -> str:
    """The number in the only row of a table that has runs."""
    rows = EXPERIMENTS[name].make_table(records)
    (row,) = [row for row in rows if row["seeds"] != "not run"]
    return row["all seeds"]


def test_a_line_is_the_mean_with_a_band_of_one_standard_error(tmp_path: Path) -> None:
    keep(tmp_path, "sums-recall-a1", 0, [0, 90])
    keep(tmp_path, "sums-recall-a1", 1, [0, 94])
    keep(tmp_path, "sums-ff", 0, [0, 7])
    by_label = lines("fig-arch-loss-ablation", read_records(tmp_path))
    both, one = by_label["DT-Recall, α = 1"], by_label["FF"]
    assert (list(both.trace.x), list(both.trace.y)) == ([1, 2], [0, 92])
    assert list(both.spread) == pytest.approx([0, 2])
    assert list(one.spread) == [], "one seed has no error"
    theirs = by_label["the paper's peak, α > 0"], by_label["the paper's peak, α = 0"]
    assert [list(line.trace.x) for line in theirs] == [[237], [30]], "only of networks with a line"
    assert [list(line.spread) for line in theirs] == [[1.88], [0.0]]


def test_points_of_a_grid_are_at_the_values_of_its_field(tmp_path: Path) -> None:
    for alpha, height in (("0", 10), ("0.5", 20), ("1", 30)):
        keep(tmp_path, f"sums-recall-a{alpha}", 0, [height])
    (points, _) = lines("grid-alpha-prefix", read_records(tmp_path)).values()
    # At even distances: 0, 0.25, 0.5, 0.75 and 1, of which two were not run.
    assert (list(points.trace.x), list(points.trace.y)) == ([0, 2, 4], [10, 20, 30])
    plot, _ = figure_panels(EXPERIMENTS["grid-alpha-mazes"], Records())[0]
    assert plot.ticks == ("0", "0.01", "0.1", "0.5", "1")
    keep(tmp_path, "sums-recall-a1-w50", 0, [40])
    (wide, *_) = lines("fig-width", read_records(tmp_path)).values()
    assert (list(wide.trace.x), list(wide.trace.y)) == ([50, 400], [40, 30])


def test_mean_change_is_nan_where_a_seed_overflows(tmp_path: Path) -> None:
    for seed, change in enumerate([[1.0, 3.0, None], [2.0, 5.0, 7.0]]):
        study = {"convergence": {"problems": {"change": change}}}
        keep(tmp_path, "sums-dt-a1", seed, [1], studies=study)
    records = read_records(tmp_path)
    line = lines("fig-prefix-delta", records)["DT, α = 1"]
    assert list(line.trace.y[:2]) == [1.5, 4.0]
    assert math.isnan(line.trace.y[2]), "not 7, the mean of the other seed"
    assert cell("fig-prefix-delta", records) == "– (overflow in 1 of 2)"
    assert len(save_pictures(EXPERIMENTS["fig-prefix-delta"], records, tmp_path)) == 2
