"""Tables and RESULTS.md from records with known means.

`tests/golden` compares all of RESULTS.md with the records of results/.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_records import keep, keep_count

from iterant.draw.plots import stamp
from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.figures import pictures
from iterant.experiments.models import MODELS
from iterant.experiments.records import read_records, read_results
from iterant.experiments.report import ALL_EXPERIMENTS, results_page

REPOSITORY = Path(__file__).resolve().parents[2]
RECALL = "mazes-recall-a0.01"


@pytest.mark.parametrize(
    ("name", "model", "runs", "cells"),
    [
        pytest.param(
            # 98, 96, 94: mean 96, standard deviation 2, error 2 / sqrt(3).
            "compare-n-zero", "sums-recall-a1",
            [{"curve": [0, 98, 48]}, {"curve": [0, 96, 46], "train": 99},
             {"curve": [0, 94, 44], "train": 98, "precision": "fp32"}],
            {"model": "DT-Recall α = 1", "measured": "size 512", "seeds": "3, fp16 (2), fp32 (1)",
             "all seeds": "96.00 ± 1.15 % at 2", "95 %": "90.16 to 100.00",
             "converged": "97.00 ± 1.00 % (2 of 3)", "the paper": "97.12 ± 1.88 % at 237",
             "beside the paper": "no difference shown"},
            id="mean, error, filter and verdict",
        ),
        pytest.param(
            "compare-n-zero", "sums-recall-a1",
            [{"curve": [0, 90]}, {"tests": {}, "training": {"ended": "the loss exploded"}}],
            {"all seeds": "45.00 ± 45.00 % at 2", "seeds": "2, fp16",
             "converged": "90.00 % (1 of 2)"},
            id="a run that diverged solves nothing",
        ),
        pytest.param(
            "table-chess-peaks", "chess-recall-a0.5", [{"curve": [0, 50]}],
            {"model": "DT-Recall α = 0.5, 12 of 120 epochs", "the paper": "82.69 ± 0.27 % at 57",
             "beside the paper": ""},
            id="a shortened schedule is not compared with the paper",
        ),
    ],
)  # fmt: skip
def test_row_with_curves(
    tmp_path: Path, name: str, model: str, runs: list[dict[str, Any]], cells: dict[str, str]
) -> None:
    for seed, run in enumerate(runs):
        keep(tmp_path, model, seed, **{"curve": [1], **run})
    rows = table(tmp_path, name)
    row = rows[[one.model for one in EXPERIMENTS[name].rows].index(model)]
    assert {column: row[column] for column in cells} == cells


def table(folder: Path, name: str) -> list[dict[str, str]]:
    return EXPERIMENTS[name].make_table(read_records(folder))


def test_how_many_runs_there_are(tmp_path: Path) -> None:
    def state() -> str:
        return EXPERIMENTS["compare-n-zero"].state(read_results(tmp_path))

    keep(tmp_path / "runs", "sums-recall-a1", 0, [50], finished=False)
    keep(tmp_path / "runs" / "b", "sums-recall-a1", 1, [50], reduced={"width": 8})
    assert state() == "0 of 13 runs", "neither counts"
    now = MODELS["sums-n0"].recipe.changed(precision="fp16").described()
    del now["pool_noise"]  # a new field of the recipe is not a change
    now["rate"] = now.pop("lr")  # a former name
    keep(tmp_path / "runs", "sums-n0", 0, [50], training={"recipe": now})
    assert state() == "1 of 13 runs"
    older = {**now, "rate": 7000 * now["rate"]}
    keep(tmp_path / "runs", "sums-n0", 1, [50], training={"recipe": older})
    keep(tmp_path / "runs", "sums-n0", 2, [], tests={}, training={"ended": "the loss exploded"})
    keep(tmp_path / "runs", "sums-n0", 7, [50])
    assert state() == "3 of 13 runs, 1 by an older recipe", "at most as many as planned"
    page = results_page(tmp_path)
    assert "| Text, section 4 and appendix A.4 | 3 of 13 runs, 1 by an older recipe |" in page


def test_pictures_show_the_current_records() -> None:
    results = REPOSITORY / "results"
    records = read_results(results)
    drawn: dict[str, Any] = {}
    for one in ALL_EXPERIMENTS.values():
        drawn |= pictures(one, records)
    assert {path.stem for path in (results / "figures").iterdir()} == drawn.keys()
    for name, content in drawn.items():
        svg = (results / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert stamp(content) in svg, f"draw {name} again: iterant reproduce --all"


def test_row_without_curves(tmp_path: Path) -> None:
    for seed, solved in enumerate([95, 97]):
        keep_count(tmp_path, RECALL, seed, "201", {2000: solved, 4000: 50},
                   test_precision="fp16")  # fmt: skip
    theirs, ours = table(tmp_path, "mazes-201")
    assert theirs["measured"] == "size 201, 100 problems, tested in fp16"
    assert theirs["all seeds"] == "96.00 ± 1.00 % after 2,000, 50.00 ± 0.00 % after 4,000"
    # 96.00 ± 12.7 with two seeds: 83.3 at least, and the paper's 74 of 100 are at most 81.6.
    assert theirs["beside the paper"] == "above"
    assert ours["seeds"] == "not run"


def test_networks_that_were_tested_without_curves(tmp_path: Path) -> None:
    folder = tmp_path / "paper"
    for seed in range(3):
        keep_count(folder, "mazes-ours", seed, "201", {2000: 100, 4000: 100})
    keep_count(folder, RECALL, 2, "201", {2000: 7, 4000: 7}, problems=20, name="measure-a")
    keep_count(folder, RECALL, 2, "201", {2000: 70, 4000: 70}, name="measure-b")
    page = results_page(tmp_path)
    assert "| Text, section 4 | 4 networks |" in page
    assert "[measure-a](results/paper/measure-a.json), [measure-b]" in page


def test_a_figure_links_to_the_table_with_its_numbers(tmp_path: Path) -> None:
    keep(tmp_path / "runs", "sums-recall-a1", 0, [0, 98])
    sections = {part.partition("\n")[0]: part for part in results_page(tmp_path).split("\n### ")}
    figure, table = (sections[EXPERIMENTS[name].title] for name in
                     ("fig-arch-loss-ablation", "table-prefix-peaks"))  # fmt: skip
    assert "The numbers: [Peaks on prefix sums](#peaks-on-prefix-sums)." in figure
    assert "results/figures/fig-arch-loss-ablation.png" in figure
    row = "| DT-Recall α = 1 | size 512 | 98.00 % at 2 | "
    assert row in table
    assert row not in figure
    assert row in sections["The progressive loss from n = 0 only"]
    assert "Not run; the paper gives a picture only." in sections["Harder chess puzzles"]
