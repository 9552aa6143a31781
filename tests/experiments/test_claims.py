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


BEST, N_ZERO, SLOW = "sums-recall-a1", "sums-n0", "sums-recall-a0"
FOUR = [[0] * 3 + [1000] * 9] * 3


def verdict(folder: Path, name: str) -> str:
    return CLAIMS[name].check(read_records(folder)).verdict


def seeds(folder: Path, model: str, curves: Sequence[Sequence[int]], **how: Any) -> None:
    for seed, curve in enumerate(curves):
        keep(folder, model, seed, curve, **{"problems": 1000, **how})


@pytest.mark.parametrize(
    ("claim", "curves", "outcome"),
    [
        ("n-zero", {BEST: [[1000]] * 5, N_ZERO: [[900], [910], [920]]}, "reproduced"),
        ("n-zero", {BEST: [[1000]] * 5, N_ZERO: [[1000]] * 3}, "not seen"),
        ("n-zero", {BEST: [[1000]] * 5, N_ZERO: [[900], [910]]}, "too few seeds"),
        # An interval far wider than the paper's 6.85 points.
        ("n-zero", {BEST: [[1000]] * 5, N_ZERO: [[1000], [0], [1000]]}, "too few seeds"),
        ("n-zero", {BEST: [[1000]] * 5}, "not run"),
        ("n-zero", {BEST: [[900], [910], [920]], N_ZERO: [[1000]] * 3}, "contrary"),
        # Against four iterations; 5 / 4 is slower, but not about twice.
        ("twice-the-iterations", {SLOW: [[0] * 7 + [1000]] * 3, BEST: FOUR}, "reproduced"),
        ("twice-the-iterations", {SLOW: [[0] * 4 + [1000]] * 3, BEST: FOUR}, "not seen"),
        ("twice-the-iterations", {SLOW: [[0] * 1 + [1000]] * 3, BEST: FOUR}, "contrary"),
        ("twice-the-iterations", {SLOW: FOUR, BEST: FOUR}, "not seen"),
        ("depth-plateau", {BEST: [[1000]] * 3, f"{BEST}-m40": [[1000]] * 3}, "reproduced"),
        ("depth-plateau", {BEST: [[1000]] * 3, f"{BEST}-m40": [[800]] * 3}, "contrary"),
        ("depth-plateau", {BEST: [[1000]] * 3, f"{BEST}-m40": [[955]] * 3}, "too few seeds"),
        ("feed-forward", {"sums-ff": [[0]] * 3}, "reproduced"),
        ("feed-forward", {"sums-ff": [[500]] * 3}, "contrary"),
    ],
)
def test_a_verdict(
    tmp_path: Path, claim: str, curves: dict[str, list[list[int]]], outcome: str
) -> None:
    for model, some in curves.items():
        seeds(tmp_path, model, some)
    assert verdict(tmp_path, claim) == outcome


def test_a_difference_that_the_problems_alone_explain_is_not_seen(tmp_path: Path) -> None:
    # 100 and 98 of 100 from every seed: no spread over seeds, but 100 problems allow 98 for 100.
    seeds(tmp_path, BEST, [[100]] * 3, problems=100)
    seeds(tmp_path, N_ZERO, [[98]] * 3, problems=100)
    assert verdict(tmp_path, "n-zero") == "not seen"


@pytest.mark.parametrize(
    ("last", "without", "outcome"),
    [
        (1000, True, "reproduced"),
        (960, True, "too few seeds"),
        (500, True, "contrary"),
        (500, False, "contrary"),  # before the others are run
        (1000, False, "not run"),
    ],
)
def test_overthinking_needs_recall_to_stay_and_the_others_to_fall(
    tmp_path: Path, last: int, without: bool, outcome: str
) -> None:
    for alpha in ("0", "1"):
        seeds(tmp_path, f"sums-recall-a{alpha}", [[1000, last]] * 3, size="48")
        if without:
            fall = [[1000, spread] for spread in (100, 200, 300)]
            seeds(tmp_path, f"sums-dt-a{alpha}", fall, size="48")
    assert verdict(tmp_path, "overthinking-sums") == outcome


def test_a_run_that_diverged_has_lost_no_accuracy(tmp_path: Path) -> None:
    """It counts as solving nothing, but not as keeping what it solved."""
    seeds(tmp_path, "sums-recall-a0", [[1000, 1000]] * 3, size="48")
    seeds(tmp_path, "sums-dt-a0", [[1000, 100], [1000, 200]], size="48")
    keep(tmp_path, "sums-dt-a0", 2, [], tests={}, training={"ended": "diverged"})
    (line, *_) = CLAIMS["overthinking-sums"].check(read_records(tmp_path)).ours
    assert line.startswith("DT α = 0 85.00 ± 5.00 points lost, ")


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


def test_without_records_no_claim_was_run(tmp_path: Path) -> None:
    page = results_page(tmp_path)
    assert page.count("| **not run** |") == len(CLAIMS)
    assert f"Of {len(CLAIMS)} claims: {len(CLAIMS)} not run." in page


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
    table = headline(read_results(results).whole)
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert table in readme, f"records have changed: the table of README.md is now\n\n{table}\n"
