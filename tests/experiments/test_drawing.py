"""The lines of figures are the records' means, at the right places, with their spread."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from made_up import keep

from iterant.draw.lines import Line
from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.drawing import _lines, save_figure
from iterant.experiments.records import Records, read_records
from iterant.experiments.report import rows_of


def lines(name: str, records: Records) -> dict[str, Line]:
    (panel, *_) = EXPERIMENTS[name].panels
    return {line.label: line for line in _lines(panel, records)}


def test_a_line_is_the_mean_with_a_band_of_one_standard_error(tmp_path: Path) -> None:
    keep(tmp_path, "sums-recall-a1", 0, [0, 90])
    keep(tmp_path, "sums-recall-a1", 1, [0, 94])
    keep(tmp_path, "sums-ff", 0, [0, 7])
    found = lines("fig-arch-loss-ablation", read_records(tmp_path))
    both, one = found["DT-Recall, α = 1"], found["FF"]
    assert (list(both.trace.x), list(both.trace.y)) == ([1, 2], [0, 92])
    assert list(both.spread) == pytest.approx([0, 2])
    assert list(one.spread) == [], "one seed has no error"
    assert list(found["the paper's peak"].trace.x) == [30], "the last of those that have a line"


def test_a_grid_has_its_points_where_the_field_says(tmp_path: Path) -> None:
    for alpha, height in (("0", 10), ("0.5", 20), ("1", 30)):
        keep(tmp_path, f"sums-recall-a{alpha}", 0, [height])
    (points, _, _) = lines("grid-alpha-prefix", read_records(tmp_path)).values()
    assert (list(points.trace.x), list(points.trace.y)) == ([0, 0.5, 1], [10, 20, 30])
    keep(tmp_path, "sums-recall-a1-w50", 0, [40])
    (wide, *_) = lines("fig-width", read_records(tmp_path)).values()
    assert (list(wide.trace.x), list(wide.trace.y)) == ([50, 400], [40, 30])


@pytest.mark.parametrize(("share", "drawn"), [(0.79, True), (0.01, False), (0.0, False)])
def test_flips_tell_how_many_were_recovered_from(tmp_path: Path, share: float, drawn: bool) -> None:
    mean = None if share == 0 else 12.0
    studies = {"bit-flip": {"recovered": share, "mean iterations": mean,
                            "mean iterations by index": [mean, None]}}  # fmt: skip
    keep(tmp_path, "sums-recall-a1", 0, [1], studies=studies)
    records = read_records(tmp_path)
    found = lines("fig-overthinking", records)
    assert (f"DT-Recall, α = 1 ({100 * share:.0f} % recovered)" in found) == drawn
    if drawn:
        (line,) = found.values()
        assert (line.trace.y[0], math.isnan(line.trace.y[1])) == (12, True)
        assert len(save_figure(EXPERIMENTS["fig-overthinking"], records, tmp_path / "f")) == 2
    (row,) = [row for row in rows_of(EXPERIMENTS["fig-overthinking"], records) if row[4] == "1"]
    number = "–" if mean is None else "12.00"
    assert row[3] == f"{number} ({100 * share:.1f} % recovered)"
