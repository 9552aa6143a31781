"""Rows of tables without curves, and of networks that were trained for a time."""

from __future__ import annotations

from pathlib import Path

from made_up import keep, keep_count, keep_timed

from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.figures import BY_TIME, save_figures
from iterant.experiments.records import read_records, read_results
from iterant.experiments.report import (
    MIXED,
    results_page,
    rows_of,
    state_of,
    timed_rows,
)

REPOSITORY = Path(__file__).resolve().parents[2]
RECALL = "mazes-recall-a0.01"
RANGE = "600000:700000"


def table(folder: Path, name: str) -> list[dict[str, str]]:
    return rows_of(EXPERIMENTS[name], read_records(folder))


def timed(folder: Path, name: str, model: str) -> dict[str, str]:
    rows = timed_rows(EXPERIMENTS[name], read_records(folder))
    (row,) = [row for row in rows if row["model"] == model]
    return row


def test_seeds_without_curves_fill_a_row_beside_the_papers_number(tmp_path: Path) -> None:
    for seed, solved in enumerate([100, 98, 99]):
        keep_count(tmp_path, "mazes-ours", seed, "201", {2000: solved, 4000: solved})
    theirs, ours = table(tmp_path, "mazes-201")
    assert (theirs["seeds"], theirs["the paper"]) == ("not run", "74.00 % at 2000")
    assert ours["measured"] == "size 201, 100 problems"
    assert ours["all seeds"] == "99.00 ± 0.58 % after 2,000 and 4,000"
    # Of the same 100 mazes: Wilson's interval of 99 of 100 is wider than Student's over seeds.
    assert (ours["95 %"], ours["seeds"]) == ("94.55 to 100.00", "3")


def test_both_numbers_of_iterations_are_shown_where_they_differ(tmp_path: Path) -> None:
    for seed, solved in enumerate([95, 97]):
        keep_count(tmp_path, RECALL, seed, "201", {2000: solved, 4000: 50})
    keep(tmp_path, RECALL, 0, [1], precision="bf16")
    theirs, ours = table(tmp_path, "mazes-201")
    assert theirs["all seeds"] == "96.00 ± 1.00 % after 2,000, 50.00 ± 0.00 % after 4,000"
    # 96.00 ± 12.7 with two seeds: 83.3 at least, and the paper's 74 of 100 are at most 81.6.
    assert theirs["all seeds beside it"] == "above"
    assert theirs["precision"] == "bf16", "that of the run, where the test does not say"
    assert ours["seeds"] == "not run"


def test_tests_of_other_lengths_have_rows_of_their_own(tmp_path: Path) -> None:
    keep_count(tmp_path, "mazes-ours", 0, "801", {10_000: 1, 20_000: 1}, problems=3)
    keep_count(tmp_path / "b", "mazes-ours", 0, "801", {40_000: 3, 80_000: 3}, problems=3)
    rows = table(tmp_path, "mazes-801")
    assert [row["the paper"] for row in rows] == ["one maze", "–", "–"]
    assert [row["all seeds"] for row in rows[1:]] == [
        "33.33 % after 10,000 and 20,000",
        "100.00 % after 40,000 and 80,000",
    ]


def test_done_and_planned_runs_are_those_of_the_rows(tmp_path: Path) -> None:
    folder = tmp_path / "paper"
    for seed in range(20):
        keep_count(folder, "mazes-ours", seed, "201", {2000: 100, 4000: 100})
    keep_count(folder, RECALL, 2, "201", {2000: 7, 4000: 7}, problems=20, name="measure-a")
    keep_count(folder, RECALL, 2, "201", {2000: 70, 4000: 70}, name="measure-b")
    assert state_of(EXPERIMENTS["mazes-201"], read_results(tmp_path)) == (9, 11), "no more"
    page = results_page(tmp_path)
    assert "| Text, section 4 | 9 of 11 |" in page
    assert f"- {RECALL} at size 201: seed 0, 1; planned 3\n" in page
    assert "mazes-ours at size 201" not in page
    assert "come from: [measure-a](results/paper/measure-a.json), [measure-b]" in page


def test_a_timed_row_has_the_peak_its_iteration_and_the_end(tmp_path: Path) -> None:
    keep_timed(tmp_path, "chess-recall-a0.5", [100, 800, 700])
    keep_timed(tmp_path, "chess-ff", [500])
    assert timed(tmp_path, "fig-chess", "DT-Recall") == {
        "model": "DT-Recall", "α": "0.5", "trained for": "75 s",
        "setting": "rate 0.0005, bounded features, bf16", "measured": f"puzzles {RANGE}",
        "solved": "80.00 % at 2", "95 % over puzzles": "77.4 to 82.4 of 1,000",
        "at the end": "70.00 % after 3", "seeds": "1",
        "the paper (its recipe, its puzzles)": "82.69 ± 0.27 % at 57",
    }  # fmt: skip
    assert timed(tmp_path, "table-chess-peaks", "FF")["solved"] == "50.00 % at 1"


def test_seeds_of_one_time_are_averaged_and_other_times_are_not(tmp_path: Path) -> None:
    keep_timed(tmp_path, "chess-ours", [800])
    keep_timed(tmp_path, "chess-ours", [820], seed=1)
    keep_timed(tmp_path, "chess-ours", [900], seconds=400.1)
    short, long = timed_rows(EXPERIMENTS["fig-chess"], read_records(tmp_path))
    columns = ("trained for", "solved", "seeds")
    assert [short[name] for name in columns] == ["75 s", "81.00 ± 1.00 % at 1", "2"]
    assert [long[name] for name in columns] == ["400 s", "90.00 % at 1", "1"]


def test_timed_rows_of_different_settings_are_not_to_be_compared(tmp_path: Path) -> None:
    folder = tmp_path / "paper"
    keep_timed(folder, "chess-dt-a0", [300], provenance="in two calls")
    keep_timed(folder, "chess-ours", [500], rate=3e-3)
    page = results_page(tmp_path)
    assert MIXED not in page, "our recipe has a setting of its own"
    assert "\n75 s: in two calls.\n" in page
    keep_timed(folder, "chess-recall-a0", [400], rate=3e-3)
    page = results_page(tmp_path)
    assert page.count(MIXED) == 2, "in the table of the figure and in that of the peaks"
    assert "| DT-Recall | 0 | 75 s | rate 0.003, bounded features, bf16 |" in page


def test_timed_networks_count_in_no_other_table_and_have_their_own_figure(tmp_path: Path) -> None:
    keep_timed(tmp_path / "paper", "chess-recall-a0.5", [100, 800, 700])
    page = results_page(tmp_path)
    (_, chess, *_) = page.partition("## Chess puzzles 600K–700K by iteration")[2].split("| model |")
    assert f"| DT-Recall | 0.5 | puzzles {RANGE} | not run |" in chess
    assert "- chess-recall-a0.5: seed 0; planned 1\n" in page
    assert "about 61 % of Lichess's list of early 2025" in chess, "which puzzles is always said"
    assert f"results/figures/fig-chess-{BY_TIME}.png" in page
    assert "results/figures/fig-chess.png" not in page
    records = read_results(tmp_path)
    made = save_figures(EXPERIMENTS["fig-chess"], records.whole, records, tmp_path / "f")
    assert [path.name for path in made] == [f"fig-chess-{BY_TIME}.png", f"fig-chess-{BY_TIME}.svg"]
    assert save_figures(EXPERIMENTS["fig-width"], records.whole, records, tmp_path / "f") == []
