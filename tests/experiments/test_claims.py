"""Verdicts on claims, from made-up records whose outcome is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_up import keep, keep_count

from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.claims import CLAIMS
from iterant.experiments.records import read_records, read_results
from iterant.experiments.report import headline, results_page

REPOSITORY = Path(__file__).resolve().parents[2]
FLAT = [0, 100, 100]


def verdict(folder: Path, name: str) -> str:
    return CLAIMS[name].check(read_records(folder)).verdict


def seeds(folder: Path, model: str, curves: Sequence[Sequence[int]], **how: Any) -> None:
    for seed, curve in enumerate(curves):
        keep(folder, model, seed, curve, **how)


@pytest.mark.parametrize(
    ("n_zero", "outcome"),
    [
        ([90, 91, 92], "reproduced"),
        ([100, 100, 100], "not seen"),
        ([90, 91], "too few seeds"),
        ([100, 0, 100], "too few seeds"),  # an interval far wider than the paper's 6.85 points
        ([], "not run"),
    ],
)
def test_a_difference(tmp_path: Path, n_zero: list[int], outcome: str) -> None:
    seeds(tmp_path, "sums-recall-a1", [[1000]] * 5, problems=1000)
    seeds(tmp_path, "sums-n0", [[10 * height] for height in n_zero], problems=1000)
    assert verdict(tmp_path, "n-zero") == outcome


def test_a_difference_the_other_way_is_contrary(tmp_path: Path) -> None:
    seeds(tmp_path, "sums-recall-a1", [[900], [910], [920]], problems=1000)
    seeds(tmp_path, "sums-n0", [[1000]] * 3, problems=1000)
    assert verdict(tmp_path, "n-zero") == "contrary"


def test_a_difference_that_the_problems_alone_explain_is_not_seen(tmp_path: Path) -> None:
    # 100 and 98 of 100 from every seed: no spread over seeds, but 100 problems allow 98 for 100.
    seeds(tmp_path, "sums-recall-a1", [[100]] * 3)
    seeds(tmp_path, "sums-n0", [[98]] * 3)
    assert verdict(tmp_path, "n-zero") == "not seen"


@pytest.mark.parametrize(
    ("slow", "outcome"),
    [(8, "reproduced"), (5, "not seen"), (2, "contrary")],
)
def test_about_twice_the_iterations(tmp_path: Path, slow: int, outcome: str) -> None:
    # Against four iterations; 5 / 4 is slower, but not about twice.
    seeds(tmp_path, "sums-recall-a0", [[0] * (slow - 1) + [100] * 9] * 3)
    seeds(tmp_path, "sums-recall-a1", [[0] * 3 + [100] * 9] * 3)
    assert verdict(tmp_path, "twice-the-iterations") == outcome


@pytest.mark.parametrize(
    ("forty", "outcome"),
    [(1000, "reproduced"), (800, "contrary"), (955, "too few seeds")],
)
def test_the_same_within_a_margin(tmp_path: Path, forty: int, outcome: str) -> None:
    seeds(tmp_path, "sums-recall-a1", [[1000]] * 3, problems=1000)
    seeds(tmp_path, "sums-recall-a1-m40", [[forty]] * 3, problems=1000)
    assert verdict(tmp_path, "depth-plateau") == outcome


@pytest.mark.parametrize(
    ("last", "outcome"),
    [(1000, "reproduced"), (960, "too few seeds"), (500, "contrary")],
)
def test_overthinking_needs_recall_to_stay_and_the_others_to_fall(
    tmp_path: Path, last: int, outcome: str
) -> None:
    for alpha in ("0", "1"):
        fall = [[1000, spread] for spread in (100, 200, 300)]
        seeds(tmp_path, f"sums-dt-a{alpha}", fall, size="48", problems=1000)
        seeds(tmp_path, f"sums-recall-a{alpha}", [[1000, last]] * 3, size="48", problems=1000)
    assert verdict(tmp_path, "overthinking-sums") == outcome


@pytest.mark.parametrize(
    ("last", "outcome"), [(500, "contrary"), (1000, "not run")], ids=["falls", "keeps"]
)
def test_one_contrary_part_decides_before_the_others_are_run(
    tmp_path: Path, last: int, outcome: str
) -> None:
    seeds(tmp_path, "sums-recall-a0", [[1000, last]] * 3, size="48", problems=1000)
    assert verdict(tmp_path, "overthinking-sums") == outcome


def flips(steps: Sequence[float | None]) -> dict[str, Any]:
    return {"bit-flip": {"recovered": 1.0, "mean iterations by index": list(steps)}}


LINE = [40.0, 30.0, 21.0, 10.0]


@pytest.mark.parametrize(
    ("curves", "outcome"),
    [
        ([LINE] * 3, "reproduced"),
        ([LINE] * 2, "too few seeds"),
        ([LINE, LINE, [40.0, 5.0, 40.0, 10.0]], "not seen"),
        ([[10.0, 20.0, 30.0, 40.0]] * 3, "contrary"),  # straight, but it rises
        ([[40.0, 30.0, None, 10.0]] * 3, "contrary"),  # one index is never recovered from
        ([[7.0] * 4] * 3, "contrary"),
        ([], "not run"),
    ],
)
def test_flips_lie_on_a_falling_line(
    tmp_path: Path, curves: list[list[float | None]], outcome: str
) -> None:
    for model in ("sums-recall-a0", "sums-recall-a1"):
        for seed, curve in enumerate(curves):
            keep(tmp_path, model, seed, FLAT, studies=flips(curve))
    assert verdict(tmp_path, "bit-flip") == outcome


@pytest.mark.parametrize(
    ("last", "without", "outcome"),
    [
        (0.01, 1e9, "reproduced"),
        (0.01, None, "reproduced"),  # overflow
        (0.5, 1e9, "contrary"),
        (0.01, 0.5, "contrary"),
    ],
)
def test_features_rest_with_recall_and_grow_without(
    tmp_path: Path, last: float, without: float | None, outcome: str
) -> None:
    for model, end in (("recall", last), ("dt", without)):
        study = {"convergence": {"problems": {"change": [2.0, end]}}}
        for alpha in ("0", "0.01"):
            seeds(tmp_path, f"mazes-{model}-a{alpha}", [FLAT] * 3, size="13", studies=study)
    assert verdict(tmp_path, "fixed-point-mazes") == outcome


def large(folder: Path, size: str, seed: int, solved: int, twice: int, problems: int = 100) -> None:
    keep_count(folder / str(problems), "mazes-recall-a0.01", seed, size,
               {2000: solved, 4000: twice}, problems=problems)  # fmt: skip


@pytest.mark.parametrize(
    ("solved", "outcome"),
    [
        ([90, 92, 94], "reproduced"),
        ([35, 40, 45], "contrary"),
        ([90], "too few seeds"),
        ([100, 20, 100], "too few seeds"),
        ([], "not run"),
    ],
)
def test_large_mazes_after_the_papers_iterations(
    tmp_path: Path, solved: list[int], outcome: str
) -> None:
    for seed, count in enumerate(solved):
        large(tmp_path, "201", seed, count, 100)
    assert verdict(tmp_path, "mazes-201") == outcome


def test_of_two_tests_of_one_network_the_larger_counts(tmp_path: Path) -> None:
    for seed in range(3):
        large(tmp_path, "201", seed, 90, 100)
        large(tmp_path, "201", seed, 0, 0, problems=5)
    assert verdict(tmp_path, "mazes-201") == "reproduced"


@pytest.mark.parametrize(("twice", "outcome"), [(1, "reproduced"), (0, "not seen")])
def test_one_solved_maze_is_enough(tmp_path: Path, twice: int, outcome: str) -> None:
    large(tmp_path, "801", 0, 0, twice, problems=1)
    assert verdict(tmp_path, "mazes-801") == outcome


def test_without_records_nothing_has_been_run(tmp_path: Path) -> None:
    page = results_page(tmp_path)
    assert page.count("| **not run** |") == len(CLAIMS)


def test_links_of_the_page_resolve() -> None:
    page = (REPOSITORY / "RESULTS.md").read_text(encoding="utf-8")
    titles = re.findall(r"^## (.*)$", page, flags=re.MULTILINE)
    # As GitHub makes them: lower case, letters, digits and hyphens, a hyphen for every space.
    anchors = {
        "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c in "-_")
        for title in titles
    }
    links = re.findall(r"\]\(([^)]*)\)", page)
    assert len(links) > 2 * len(EXPERIMENTS)
    for link in links:
        if link.startswith("#"):
            assert link[1:] in anchors
        else:
            assert (REPOSITORY / link).exists(), link


def test_the_readme_has_the_numbers_of_the_records() -> None:
    results = REPOSITORY / "results"
    table = "\n".join(headline(read_results(results).whole))
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert table in readme, f"records have changed: the table of README.md is now\n\n{table}\n"


def test_the_headline_is_taken_after_the_papers_iterations(tmp_path: Path) -> None:
    # The paper's peak at 48 bits is at iteration 26.
    for seed, height in enumerate([80, 90]):
        keep(tmp_path, "sums-recall-a1", seed, [0] * 25 + [height, 100], size="48")
    lines = headline(read_records(tmp_path))
    assert lines[2] == (
        "| prefix sums, 48 bits, α = 1 | 26 | 99.96 ± 0.02 % | 85.00 ± 5.00 % "
        "| 100.00 ± 0.00 % at 27 | 2 | fp16 |"
    )
    assert lines[3].endswith("| 97.12 ± 1.88 % | not run |  |  |  |")
