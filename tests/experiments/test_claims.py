"""Verdicts on claims from records with a known outcome; RESULTS.md and README.md are up to date."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_records import keep, keep_count

from iterant.experiments.claims import CLAIMS
from iterant.experiments.records import read_records, read_results
from iterant.experiments.report import headline, results_page

REPOSITORY = Path(__file__).resolve().parents[2]
BEST, N_ZERO, SLOW = "sums-recall-a1", "sums-n0", "sums-recall-a0"
FOUR = [[0] * 3 + [1000] * 9] * 3
"""Solved from the fourth iteration on, by three seeds."""
LINE = [40.0, 30.0, 21.0, 10.0]

Write = Callable[[Path], None]
"""Writes records to a folder."""


def curves(by_model: Mapping[str, Sequence[Sequence[int]]], **how: Any) -> Write:
    """Runs by model, one per curve."""

    def write(folder: Path) -> None:
        for model, seeds in by_model.items():
            for seed, curve in enumerate(seeds):
                keep(folder, model, seed, curve, **{"problems": 1000, **how})

    return write


def falls(last: int) -> Write:
    """Problems solved at the end, of 1000 at the peak: ``last`` with recall, fewer without."""
    models = {f"sums-recall-a{alpha}": [[1000, last]] * 3 for alpha in "01"}
    models |= {f"sums-dt-a{alpha}": [[1000, end] for end in (100, 200, 300)] for alpha in "01"}
    return curves(models, size="48")


def flips(steps: Sequence[Sequence[float | None]]) -> Write:
    """Iterations to recover by the index of the flipped bit, one list per seed."""

    def write(folder: Path) -> None:
        for model in ("sums-recall-a0", "sums-recall-a1"):
            for seed, by_index in enumerate(steps):
                study = {"recovered": 1.0, "mean iterations by index": list(by_index)}
                keep(folder, model, seed, [100], studies={"bit-flip": study})

    return write


def changes(recall: float, without: float | None) -> Write:
    """The last change of the features with recall and without; the first are 2 and 1."""

    def write(folder: Path) -> None:
        for net, last in (("recall", recall), ("dt", without)):
            studies = {"convergence": {"problems": {"change": [2.0, 1.0, last]}}}
            models = {f"mazes-{net}-a{alpha}": [[1000]] * 3 for alpha in ("0", "0.01")}
            curves(models, size="13", studies=studies)(folder)

    return write


def large(size: str, solved: Sequence[int], twice: int = 100, *, problems: int = 100) -> Write:
    """Large mazes solved after 2,000 iterations, by seed, and after twice as many."""

    def write(folder: Path) -> None:
        for seed, count in enumerate(solved):
            keep_count(folder / str(problems), "mazes-recall-a0.01", seed, size,
                       {2000: count, 4000: twice}, problems=problems)  # fmt: skip

    return write


@pytest.mark.parametrize(
    ("claim", "write", "verdict"),
    [
        ("n-zero", curves({BEST: [[1000]] * 5, N_ZERO: [[900], [910], [920]]}), "reproduced"),
        ("n-zero", curves({BEST: [[1000]] * 5, N_ZERO: [[1000]] * 3}), "not seen"),
        # An interval far wider than the paper's 6.85 points.
        ("n-zero", curves({BEST: [[1000]] * 5, N_ZERO: [[1000], [0], [1000]]}), "too few seeds"),
        ("n-zero", curves({BEST: [[1000]] * 5}), "not run"),
        ("n-zero", curves({BEST: [[900], [910], [920]], N_ZERO: [[1000]] * 3}), "contrary"),
        # No spread over seeds, but 100 problems allow 98 for 100.
        ("n-zero", curves({BEST: [[100]] * 3, N_ZERO: [[98]] * 3}, problems=100), "not seen"),
        ("twice-the-iterations", curves({SLOW: [[0] * 7 + [1000]] * 3, BEST: FOUR}), "reproduced"),
        # 5 / 4 is slower, but not about twice.
        ("twice-the-iterations", curves({SLOW: [[0] * 4 + [1000]] * 3, BEST: FOUR}), "not seen"),
        ("twice-the-iterations", curves({SLOW: [[0] * 1 + [1000]] * 3, BEST: FOUR}), "contrary"),
        ("depth-plateau", curves({BEST: [[1000]] * 3, f"{BEST}-m40": [[1000]] * 3}), "reproduced"),
        ("depth-plateau", curves({BEST: [[1000]] * 3, f"{BEST}-m40": [[955]] * 3}),
         "too few seeds"),
        ("feed-forward", curves({"sums-ff": [[0]] * 3}), "reproduced"),
        ("overthinking-sums", falls(1000), "reproduced"),
        ("overthinking-sums", falls(960), "too few seeds"),
        ("overthinking-sums", falls(500), "contrary"),
        ("bit-flip", flips([LINE] * 3), "reproduced"),
        ("bit-flip", flips([LINE] * 2), "too few seeds"),
        ("bit-flip", flips([LINE, LINE, [40.0, 5.0, 40.0, 10.0]]), "not seen"),
        ("bit-flip", flips([[10.0, 20.0, 30.0, 40.0]] * 3), "contrary"),  # a line, but rising
        ("bit-flip", flips([[40.0, 30.0, None, 10.0]] * 3), "contrary"),  # no recovery at index 2
        ("fixed-point-mazes", changes(0.01, 1e9), "reproduced"),
        ("fixed-point-mazes", changes(0.01, None), "reproduced"),  # overflow
        ("fixed-point-mazes", changes(0.5, 1e9), "contrary"),
        ("fixed-point-mazes", changes(0.01, 0.5), "contrary"),
        ("mazes-201", large("201", [90, 92, 94]), "reproduced"),
        ("mazes-201", large("201", [35, 40, 45]), "contrary"),
        ("mazes-801", large("801", [0], 1, problems=1), "reproduced"),
        ("mazes-801", large("801", [0], 0, problems=1), "not seen"),
    ],
)  # fmt: skip
def test_verdict(tmp_path: Path, claim: str, write: Write, verdict: str) -> None:
    write(tmp_path)
    assert CLAIMS[claim].check(read_records(tmp_path)).verdict == verdict


def test_a_run_that_diverged_has_no_loss_after_the_peak(tmp_path: Path) -> None:
    """It counts as solving nothing, but not as keeping its accuracy."""
    runs = {"sums-recall-a0": [[1000, 1000]] * 3, "sums-dt-a0": [[1000, 100], [1000, 200]]}
    curves(runs, size="48")(tmp_path)
    keep(tmp_path, "sums-dt-a0", 2, [], tests={}, training={"ended": "diverged"})
    (line, *_) = CLAIMS["overthinking-sums"].check(read_records(tmp_path)).ours
    assert line.startswith("DT α = 0 85.00 ± 5.00 points lost, ")


def test_without_records_no_claim_was_run(tmp_path: Path) -> None:
    page = results_page(tmp_path)
    assert page.count("| **not run** |") == len(CLAIMS)
    assert f"Of {len(CLAIMS)} claims: {len(CLAIMS)} not run." in page


def test_links_of_the_page_resolve() -> None:
    page = (REPOSITORY / "RESULTS.md").read_text(encoding="utf-8")
    titles = re.findall(r"^##+ (.*)$", page, flags=re.MULTILINE)
    # As GitHub makes them: lower case, letters, digits and hyphens, a hyphen for every space.
    anchors = {re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) for title in titles}
    for link in re.findall(r"\]\(([^)]*)\)", page):
        assert link[1:] in anchors if link[0] == "#" else (REPOSITORY / link).exists(), link


def test_the_readme_has_the_numbers_of_the_records() -> None:
    results = REPOSITORY / "results"
    table = headline(read_results(results))
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert table in readme, f"records have changed: the table of README.md is now\n\n{table}\n"
