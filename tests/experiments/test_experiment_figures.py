"""Figures: lines are means of the records with their spread; captions; the authors' own run."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from made_up import keep

from iterant.draw.plots import _COLOURS, _STROKES, Line
from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.figures import (
    figure_panels,
    lines_of,
    save_figure,
    style_of,
)
from iterant.experiments.records import Records, read_records
from iterant.experiments.report import rows_of


def lines(name: str, records: Records) -> dict[str, Line]:
    (panel, *_) = EXPERIMENTS[name].panels
    return {line.label: line for line in lines_of(panel, records)}


def test_a_line_is_the_mean_with_a_band_of_one_standard_error(tmp_path: Path) -> None:
    keep(tmp_path, "sums-recall-a1", 0, [0, 90])
    keep(tmp_path, "sums-recall-a1", 1, [0, 94])
    keep(tmp_path, "sums-ff", 0, [0, 7])
    found = lines("fig-arch-loss-ablation", read_records(tmp_path))
    both, one = found["DT-Recall, α = 1"], found["FF"]
    assert (list(both.trace.x), list(both.trace.y)) == ([1, 2], [0, 92])
    assert list(both.spread) == pytest.approx([0, 2])
    assert list(one.spread) == [], "one seed has no error"
    theirs = found["the paper's peak, α > 0"], found["the paper's peak, α = 0"]
    assert [list(line.trace.x) for line in theirs] == [[237], [30]], "of those that have a line"
    assert [list(line.spread) for line in theirs] == [[1.88], [0.0]]


def test_a_grid_shows_the_curves_of_its_peaks_in_colours_of_their_own(tmp_path: Path) -> None:
    for key in ("sums-recall-a1-m10", "sums-recall-a1"):
        keep(tmp_path, key, 0, [0, 50])
    peaks, curves = EXPERIMENTS["fig-depth"].panels
    drawn = lines_of(curves, read_records(tmp_path))
    assert [line.label for line in drawn] == ["m = 10", "m = 30"]
    colours = {line.colour for line in drawn} | {
        line.colour for line in lines_of(peaks, read_records(tmp_path))
    }
    assert len(colours) == 4, "two curves, the points and the paper's"
    assert len({line.stroke for line in drawn}) == 2, "in grey, too"
    depth, width = (figure_panels(EXPERIMENTS[name], Records())[1][0] for name in
                    ("fig-depth", "fig-width"))  # fmt: skip
    assert not depth.shade, "each has a regime of its own"
    assert width.shade


def test_a_grid_has_its_points_where_the_field_says(tmp_path: Path) -> None:
    for alpha, height in (("0", 10), ("0.5", 20), ("1", 30)):
        keep(tmp_path, f"sums-recall-a{alpha}", 0, [height])
    (points, _) = lines("grid-alpha-prefix", read_records(tmp_path)).values()
    # At even distances: 0, 0.25, 0.5, 0.75 and 1, of which two were not run.
    assert (list(points.trace.x), list(points.trace.y)) == ([0, 2, 4], [10, 20, 30])
    assert figure_panels(EXPERIMENTS["grid-alpha-mazes"], Records())[0][0].ticks == (
        "0",
        "0.01",
        "0.1",
        "0.5",
        "1",
    )
    keep(tmp_path, "sums-recall-a1-w50", 0, [40])
    (wide, *_) = lines("fig-width", read_records(tmp_path)).values()
    assert (list(wide.trace.x), list(wide.trace.y)) == ([50, 400], [40, 30])


def test_a_change_ends_where_the_first_seed_goes_beyond_all_numbers(tmp_path: Path) -> None:
    for seed, change in enumerate([[1.0, 3.0, None], [2.0, 5.0, 7.0]]):
        study = {"convergence": {"problems": {"change": change}}}
        keep(tmp_path, "sums-dt-a1", seed, [1], studies=study)
    records = read_records(tmp_path)
    line = lines("fig-prefix-delta", records)["DT, α = 1"]
    assert list(line.trace.y[:2]) == [1.5, 4.0]
    assert math.isnan(line.trace.y[2]), "7 would be the mean of the one that is left"
    (row,) = [
        row
        for row in rows_of(EXPERIMENTS["fig-prefix-delta"], records)
        if row["seeds"] == "2, fp16"
    ]
    assert row["all seeds"] == "– (overflow in 1 of 2)"
    assert len(save_figure(EXPERIMENTS["fig-prefix-delta"], records, tmp_path)) == 2


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
        assert list(line.trace.x) == [0, 1], "indices begin at 0"
        assert len(save_figure(EXPERIMENTS["fig-overthinking"], records, tmp_path)) == 2
    (row,) = [
        row
        for row in rows_of(EXPERIMENTS["fig-overthinking"], records)
        if row["seeds"] == "1, fp16"
    ]
    number = "–" if mean is None else "12.00"
    assert row["all seeds"] == f"{number} ({100 * share:.1f} % recovered)"


def test_networks_are_told_apart_in_grey_and_dashes_mean_what_they_do_in_the_paper() -> None:
    keys = ("sums-dt-a0", "sums-dt-a1", "sums-recall-a0", "sums-recall-a1", "sums-ff", "sums-ours")
    looks = {key: style_of(key) for key in keys}
    for one, other in itertools.combinations(keys, 2):
        if looks[one]["stroke"] == looks[other]["stroke"]:
            greys = [_grey(_COLOURS[looks[key]["colour"]]) for key in (one, other)]
            assert abs(greys[0] - greys[1]) > 0.1, (one, other)
    dashed = [key for key in keys if _STROKES[looks[key]["stroke"]] == "--"]
    solid = [key for key in keys if _STROKES[looks[key]["stroke"]] == "-"]
    assert (dashed, solid) == (list(keys[:2]), list(keys[2:4])), "without recall, and with it"


def _grey(colour: str) -> float:
    """How light a printer makes it, from 0 to 1."""
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue
