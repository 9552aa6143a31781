"""Made-up records with known means come out as the right cells; RESULTS.md is what is generated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_up import keep, keep_count

from iterant.draw.plots import stamp
from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.figures import (
    BY_TIME,
    REFERENCE,
    figure_panels,
    read_reference,
    reference_panels,
    save_figures,
    timed_panels,
)
from iterant.experiments.models import MODELS
from iterant.experiments.records import Records, read_records, read_results
from iterant.experiments.report import older_recipes, results_page, rows_of
from iterant.io.files import to_json

REPOSITORY = Path(__file__).resolve().parents[2]


def cells(records: Records, name: str, model: str, alpha: str) -> dict[str, str]:
    rows = rows_of(EXPERIMENTS[name], records)
    return next(row for row in rows if (row["model"], row["α"]) == (model, alpha))


def test_means_errors_filter_and_verdict(tmp_path: Path) -> None:
    # At the second iteration 98, 96, 94: mean 96, standard deviation 2, error 2 / sqrt(3).
    for seed, (height, train) in enumerate([(98, 100), (96, 99), (94, 98)]):
        keep(tmp_path, "sums-recall-a1", seed, [0, height, height - 50], train=train)
    row = cells(read_records(tmp_path), "compare-n-zero", "DT-Recall", "1")
    assert row == {
        "model": "DT-Recall", "α": "1", "measured": "size 512", "all seeds": "96.00 ± 1.15 % at 2",
        "95 %": "90.16 to 100.00", "seeds": "3", "precision": "fp16",
        "converged": "97.00 ± 1.00 %", "of them": "2 of 3",
        "the paper": "97.12 ± 1.88 % at 237", "all seeds beside it": "no difference shown",
        "converged beside it": "too few seeds",
    }  # fmt: skip


def test_a_run_that_broke_down_solves_nothing(tmp_path: Path) -> None:
    keep(tmp_path / "runs", "sums-recall-a1", 0, [0, 90])
    ended = {"ended": "the loss exploded (recent: 1, 2); begin anew"}
    keep(tmp_path / "runs", "sums-recall-a1", 1, [], tests={}, training=ended)
    row = cells(read_records(tmp_path), "compare-n-zero", "DT-Recall", "1")
    assert row["all seeds"].startswith("45.00 ± 45.00 %")
    assert (row["seeds"], row["converged"], row["of them"]) == ("2", "90.00 %", "1 of 2")
    assert "- sums-recall-a1-s1: the loss exploded\n" in results_page(tmp_path)


@pytest.mark.parametrize(("of", "told"), [(100, "no difference shown"), (10**6, "above")])
def test_an_accuracy_is_no_surer_than_its_problems_allow(
    tmp_path: Path, of: int, told: str
) -> None:
    # All of them right, from every seed: how far from 99.98 % that is depends on how many.
    fit = {"solved": of, "of": of}
    for seed in range(3):
        keep(tmp_path, "sums-dt-a0", seed, [1], training={"train": fit, "validation": fit})
    row = cells(read_records(tmp_path), "table-in-distribution", "DT", "0")
    assert row["measured"] == "prefix-sums: train accuracy", "mazes have a DT with α = 0, too"
    assert row["all seeds"] == "100.00 ± 0.00 %"
    assert row["all seeds beside it"] == told


def test_more_seeds_are_not_more_problems(tmp_path: Path) -> None:
    # Four seeds, the same 100 problems, all solved: Wilson's interval of 100 of 100.
    for seed in range(4):
        keep(tmp_path, "sums-recall-a1", seed, [100])
    row = cells(read_records(tmp_path), "compare-n-zero", "DT-Recall", "1")
    assert row["95 %"] == "96.30 to 100.00"
    fit = {"solved": 100, "of": 100}
    for seed in range(2):
        keep(tmp_path, "sums-dt-a0", seed, [1], training={"train": fit, "validation": fit})
    row = cells(read_records(tmp_path), "table-in-distribution", "DT", "0")
    assert row["95 %"] == "96.30 to 100.00"


def test_a_study_of_the_first_seed_counts_the_first_seed(tmp_path: Path) -> None:
    flips = {"bit-flip": {"recovered": 0.0, "mean iterations": None,
                          "mean iterations by index": [None]}}  # fmt: skip
    keep(tmp_path, "sums-recall-a1", 0, [1], studies=flips)
    keep(tmp_path, "sums-recall-a1", 1, [1], train=50)
    row = cells(read_records(tmp_path), "fig-overthinking", "DT-Recall", "1")
    assert (row["seeds"], row["of them"]) == ("1", "1 of 1")
    assert row["converged"] == "– (0.0 % recovered)"


def test_changes_of_several_seeds_tell_both_ends(tmp_path: Path) -> None:
    for seed, last in enumerate([2.0, 6.0, 1e20]):
        study = {"convergence": {"problems": {"change": [1.0, last]}}}
        keep(tmp_path, "sums-dt-a1", seed, [1], studies=study, train=(100, 100, 50)[seed])
    row = cells(read_records(tmp_path), "fig-prefix-delta", "DT", "1")
    assert (row["all seeds"], row["converged"]) == ("3.3e+19 (2 to 1e+20)", "4 (2 to 6)")


def test_iterations_count_until_the_first_right_answer(tmp_path: Path) -> None:
    # As in the paper, which has a number for networks that are wrong again in the end.
    study = {"samples": 10, "right": [0, 9, 0], "recovered": 0.0, "mean iterations": None}
    for seed, first in enumerate([2.0, 3.0]):
        found = {"clean": {**study, "mean iterations to first": first}}
        keep(tmp_path, "mazes-dt-a0", seed, [1], studies=found, train=(100, 50)[seed])
    row = cells(read_records(tmp_path), "table-interventions", "DT", "0")
    assert (row["measured"], row["all seeds"]) == ("clean", "2.50 (90.00 ± 0.00 %)")
    assert row["converged"] == "2.00 (90.00 %)", "iterations of those alone"
    assert row["the paper"] == "27.68 (87 %)"


def test_cut_off_and_smaller_runs_count_nowhere(tmp_path: Path) -> None:
    keep(tmp_path / "runs", "sums-recall-a1", 0, [50], finished=False)
    keep(tmp_path / "runs" / "b", "sums-recall-a1", 1, [50], reduced={"width": 8})
    records = read_records(tmp_path / "runs")
    assert cells(records.whole, "compare-n-zero", "DT-Recall", "1")["seeds"] == "not run"
    page = results_page(tmp_path)
    assert "| sums-recall-a1-s0 | fp16 | 5 of 9 | 100.00 % | 512: 50.0 % at 1 | finished |" in page
    ended = {"ended": "the loss became nan at update 7 (recent: 1: 2); begin anew"}
    keep(tmp_path / "runs", "sums-n0", 0, [], finished=False, tests={}, training=ended)
    page = results_page(tmp_path)
    assert "| sums-n0-s0 | fp16 |  |  |  | the loss became nan at update 7 |" in page
    assert "sums-recall-a1-s1" not in page
    assert "- sums-recall-a1: seed 0, 1, 2, 3, 4; planned 5\n" in page
    keep(tmp_path / "runs", "sums-n0", 1, [50])
    assert "- sums-n0: seed 0, 2; planned 3\n" in results_page(tmp_path)
    keep(tmp_path / "runs" / "again", "sums-n0", 0, [60])
    assert "| sums-n0-s0 |" not in results_page(tmp_path), "it has been finished since"
    assert len(records.as_finished.of("sums-recall-a1")) == 2


def test_runs_by_an_older_recipe_are_named(tmp_path: Path) -> None:
    now = MODELS["sums-n0"].recipe(precision="fp16").described()
    before = {name: value for name, value in now.items() if name != "pool_shake"}
    for seed, recipe in enumerate([now, before]):
        keep(tmp_path / "runs", "sums-n0", seed, [50], training={"recipe": recipe})
    assert older_recipes(read_records(tmp_path)) == [], "what is new is as it was before"
    keep(tmp_path / "runs", "sums-n0", 2, [50], training={"recipe": {**now, "rate": 7.0}})
    keep(tmp_path / "runs", "sums-run-time", 0, [50], training={"recipe": {}})
    assert older_recipes(read_records(tmp_path)) == ["- sums-n0, seed 2: rate 7.0, now 0.001"]
    assert "- sums-n0, seed 2: rate 7.0, now 0.001\n" in results_page(tmp_path)


def test_figures_are_drawn_twice_alike_as_png_and_svg(tmp_path: Path) -> None:
    keep(tmp_path / "r", "sums-recall-a1", 0, [0, 50, 90])
    keep(tmp_path / "r", "sums-recall-a1-w50", 0, [0, 10, 20])
    records = read_records(tmp_path / "r")
    for name in ("fig-arch-loss-ablation", "fig-width"):
        first, second = (
            save_figures(EXPERIMENTS[name], records, Records(), tmp_path / f) for f in "ab"
        )
        assert [path.suffix for path in first] == [".png", ".svg"]
        for one, other in zip(first, second, strict=True):
            assert one.read_bytes() == other.read_bytes()
    assert save_figures(EXPERIMENTS["fig-chess"], records, Records(), tmp_path / "c") == []


def test_the_pictures_are_those_of_the_results() -> None:
    results = REPOSITORY / "results"
    every = read_results(results)
    records = every.whole
    shown = {REFERENCE: reference_panels(read_reference(results, records))}
    for one in EXPERIMENTS.values():
        shown |= {one.name: figure_panels(one, records)}
        shown |= {f"{one.name}-{BY_TIME}": timed_panels(one, every)}
    drawn = {name: panels for name, panels in shown.items() if any(some for _, some in panels)}
    assert {path.stem for path in (results / "figures").iterdir()} == set(drawn)
    for name, panels in drawn.items():
        made = (results / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert stamp(panels) in made, f"draw {name} again: iterant reproduce --all"


def test_single_runs_are_beside_the_papers_numbers(tmp_path: Path) -> None:
    recipe = {"net": "dt-recall", "alpha": 1.0, "precision": "fp16"}
    keep_count(tmp_path / "paper", "sums-recall-a1", 3, "512", {116: 500, 600: 499}, problems=500,
               recipe=recipe, reduced={"by hand": True})  # fmt: skip
    keep_count(tmp_path / "recipes", "mazes-ours", 5, "59", {1000: 999}, problems=1000,
               parameters=3570, precision="fp32", reduced={"by hand": True})  # fmt: skip
    text = results_page(tmp_path)
    assert "| 3 | 512 | 500 of 500 at 116, 499 after 600 | 97.12 ± 1.88 % |" in text
    row = "| ours, 3,570 parameters, fp32 | 5 | 59 | 999 of 1000 after 1000 | 97.30 ± 0.68 % |"
    assert row in text
    assert "size 59, 1,000 problems" not in text, "they count in no other table"


def test_our_recipes_from_every_seed_are_beside_the_papers_best(tmp_path: Path) -> None:
    now = to_json(MODELS["mazes-ours"].recipe().described())
    common: dict[str, Any] = {
        "recipe": {**now, "rate": 7.0},
        "parameters": 622,
        "provenance": "by hand",
    }
    place = tmp_path / "recipes" / "best-mazes.jsonl"
    for seed, solved in enumerate([1000, 990, 980]):
        keep_count(place, "mazes-ours", seed, "59", {1500: solved, 3000: 900}, problems=1000,
                   **common)  # fmt: skip
    keep_count(place, "mazes-ours", 3, "9", {1: 1}, **{**common, "tests": {}})
    text = results_page(tmp_path)
    assert (
        "| [best-mazes](results/recipes/best-mazes.jsonl) | local-rule, 622 parameters, fp32 | 59 "
        "| 1,500 | 99.00 ± 0.58 % | 98.0 % | 90.00 % | 3 of 4 | 1,000 | 97.30 ± 0.68 % at 984 |"
    ) in text
    assert "- best-mazes: by an older recipe; by hand.\n" in text
    assert "come from: [best-mazes](results/recipes/best-mazes.jsonl) (by an older rec" in text
