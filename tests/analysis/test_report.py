"""Reports: JSON files, plots, and a self-contained page."""

from __future__ import annotations

import base64
import re
from html import escape
from pathlib import Path

import pytest
from exact_networks import exact_prefix_sums, forgetting
from matplotlib.image import imread
from small_networks import small_net

import iterant
from iterant.analysis import Report, Subject
from iterant.errors import UsageError
from iterant.io import read_result
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.prefix_sums import PrefixSums

SUMS = PrefixSums()
NAME = "<b>m0 & co</b>"


@pytest.fixture(scope="module")
def report() -> Report:
    subjects = [
        Subject(exact_prefix_sums(), SUMS, NAME, "dt-recall", alpha=1.0, regime=30),
        Subject(forgetting(), SUMS, "other", "dt", alpha=0.0, regime=30),
    ]
    what = ["noise", "bit-flip", "convergence", "move-end"]
    return iterant.analyze(subjects, what, size=8, count=4, max_steps=60)


@pytest.fixture(scope="module")
def saved(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the report was saved in, twice."""
    folder = tmp_path_factory.mktemp("report") / "out"
    first = report.save(folder).read_bytes()
    path = report.save(folder)
    assert path == folder / "index.html"
    assert path.read_bytes() == first, "saving again replaces"
    return folder


def test_page_is_escaped_and_self_contained(saved: Path) -> None:
    page = (saved / "index.html").read_text(encoding="utf-8")
    assert escape(NAME) in page
    assert NAME not in page, "a name is shown, not obeyed"
    assert "the task prefix-sums has no method shorten" in page
    assert "<td>relation to accuracy, cosine of solved</td>" in page
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    pictures = [link.removeprefix("data:image/png;base64,") for link in links]
    files = sorted(file.read_bytes() for file in saved.glob("*.png"))
    assert sorted(base64.b64decode(picture, validate=True) for picture in pictures) == files
    assert len(files) == 6
    assert all(imread(file).ndim == 3 for file in saved.glob("*.png"))


def test_result_file_of_every_study(report: Report, saved: Path) -> None:
    for what in report.studies:
        result = read_result(saved / f"{what}.json")
        models = result["figures"]["models"]
        assert (set(models), models["other"]["alpha"]) == ({NAME, "other"}, 0)
        assert (result["seed"], result["figures"]["size"]) == (1, 8)
    flips = read_result(saved / "bit-flip.json")["figures"]["models"]
    by_index = flips[NAME]["findings"][0]["by index"]
    assert by_index["mean iterations to solution"] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert flips["other"]["findings"][0]["by index"]["mean iterations to solution"] == [None] * 8


def test_failures_are_drawn(tmp_path: Path) -> None:
    task = Mazes()
    report = iterant.analyze(
        Subject(small_net("mazes", "dt-recall"), task, "a/b"), "near-misses", size=5, count=3,
        max_steps=2,
    )  # fmt: skip
    drawn = report.save_failures(tmp_path / "failures")
    assert [path.name for path in drawn] == ["a-b-000.png", "a-b-001.png", "a-b-002.png"]
    assert all(imread(path).ndim == 3 for path in drawn)
    assert (report.table(), report.headlines("near-misses")[0][2]) == ([], ["failures", "3"])


def test_missing_studies_are_refused(report: Report, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="near-misses"):
        report.save_failures(tmp_path)
    with pytest.raises(UsageError, match="no 'swap'; it has: noise"):
        report.of("swap")
