"""Networks that had a time each stand in tables of their own, and count nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iterant.errors import RunError
from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.figures import BY_TIME, save_by_time
from iterant.experiments.report import results_page
from iterant.experiments.timed import HEAD, MIXED, read_timed, timed_rows
from iterant.io import write_result

RANGE = "600000:700000"
REPOSITORY = Path(__file__).resolve().parents[2]


def network(*solved: int, rate: float = 5e-4, bounded: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "recipe": {"bounded": bounded, "iterations": 3, "rate": rate, "precision": "bf16"},
        RANGE: {"problems": 1000, "solved by iteration": list(solved)},
        **more,
    }


def compared(folder: Path, name: str = "compare-chess", seed: int = 0, **networks: Any) -> None:
    models = {key.replace("_", "-"): part for key, part in networks.items()}
    write_result(name, {"seconds each": 75.0, "models": models}, seed=seed, folder=folder)


def cells(folder: Path, name: str, *start: str) -> dict[str, str]:
    _, *rows = timed_rows(EXPERIMENTS[name], read_timed(folder))
    (row,) = [row for row in rows if tuple(row[: len(start)]) == start]
    return dict(zip(HEAD, row, strict=True))


def test_a_peak_its_iteration_and_the_end_beside_the_papers_value(tmp_path: Path) -> None:
    compared(tmp_path, recall_progressive=network(100, 800, 700), ff=network(500))
    assert cells(tmp_path, "fig-chess", "DT-Recall", "0.5") == {
        "model": "DT-Recall", "α": "0.5", "trained for": "75 s",
        "setting": "rate 0.0005, bounded features, bf16", "measured": f"puzzles {RANGE}",
        "solved": "80.00 % at 2", "95 % over puzzles": "77.4 to 82.4 of 1,000",
        "at the end": "70.00 % after 3", "seeds": "1",
        "the paper (its recipe, its puzzles)": "82.69 ± 0.27 % at 57",
    }  # fmt: skip
    assert cells(tmp_path, "table-chess-peaks", "FF")["solved"] == "50.00 % at 1"


def test_seeds_of_one_time_are_averaged_and_other_times_are_not(tmp_path: Path) -> None:
    compared(tmp_path, recall_pool=network(800))
    compared(tmp_path, "compare-chess-s1", 1, recall_pool=network(820))
    figures = {"with the rate held": {"seconds": 300.2}, "with the rate falling": {"seconds": 99.9},
               "recipe": {"bounded": True, "iterations": 30, "rate": 3e-3, "precision": "bf16"},
               f"size {RANGE}": network(900)[RANGE]}  # fmt: skip
    write_result("chess-best-h200", figures, seed=0, folder=tmp_path)
    _, short, long = timed_rows(EXPERIMENTS["fig-chess"], read_timed(tmp_path))
    assert [short[2], *short[5:9:3]] == ["75 s", "81.00 ± 1.00 % at 1", "2"]
    assert [long[2], *long[5:9:3]] == ["400 s", "90.00 % at 1", "1"]
    compared(tmp_path, "compare-chess-again", 1, recall_pool=network(820))
    with pytest.raises(RunError, match=r"chess-ours with seed 1 in 75 s is there twice") as caught:
        read_timed(tmp_path)
    assert "compare-chess-s1.json" in str(caught.value)
    assert "compare-chess-again.json" in str(caught.value)


def test_the_most_confident_iteration_and_accuracies_where_they_were_measured(
    tmp_path: Path,
) -> None:
    plain = network(300, 600, 500)
    plain[RANGE]["solved by the most confident"] = [300, 600, 610]
    plain["train"] = {"problems": 10, "solved by iteration": [1, 2, 9, 8]}
    plain["held out"] = {"problems": 10, "solved by iteration": [1, 2, 7, 10]}
    compared(tmp_path, dt=plain)
    sure = f"puzzles {RANGE}, most confident iteration"
    about = ("DT", "0", "75 s", "rate 0.0005, bounded features, bf16")
    assert cells(tmp_path, "fig-chess", *about, sure)["solved"] == "61.00 % at 3"
    assert cells(tmp_path, "fig-chess", *about, f"puzzles {RANGE}")["solved"] == "60.00 % at 2"
    # After the iterations of training, which are three here.
    fitted = [
        cells(tmp_path, "table-in-distribution", *about, f"{which} accuracy")
        for which in ("train", "validation")
    ]
    assert [row["solved"] for row in fitted] == ["90.00 %", "70.00 %"]
    assert [row["95 % over puzzles"].partition(" of ")[2] for row in fitted] == ["10", "10"]


def test_rows_of_different_settings_are_not_to_be_compared(tmp_path: Path) -> None:
    pool = network(500, rate=3e-3, bounded=False)
    compared(tmp_path, dt=network(300), recall=network(400), recall_pool=pool)
    assert MIXED not in results_page(tmp_path), "our recipe has a setting of its own"
    compared(tmp_path, "compare-chess", dt=network(300), recall=network(400, rate=3e-3))
    page = results_page(tmp_path)
    assert page.count(MIXED) == 2, "in the table of the figure and in that of the peaks"
    assert "| DT-Recall | 0 | 75 s | rate 0.003, bounded features, bf16 |" in page


def test_what_a_result_says_of_itself_stands_beside_its_rows(tmp_path: Path) -> None:
    figures = {"seconds each": 75, "provenance": "in two calls", "models": {"dt": network(300)}}
    write_result("compare-chess", figures, seed=0, folder=tmp_path)
    assert "\n75 s: in two calls.\n" in results_page(tmp_path)


def test_they_count_in_no_other_table_and_are_drawn_apart(tmp_path: Path) -> None:
    compared(tmp_path, recall_progressive=network(100, 800, 700))
    page = results_page(tmp_path)
    (_, chess, *_) = page.partition("## Chess puzzles 600K–700K by iteration")[2].split("| model |")
    assert "| DT-Recall | 0.5 | puzzles 600000:700000 | not run |" in chess
    assert "- chess-recall-a0.5: seed 0; planned 1\n" in page
    assert "about 61 % of Lichess's list of early 2025" in chess, "which puzzles is always said"
    assert f"results/figures/fig-chess-{BY_TIME}.png" in page
    assert "results/figures/fig-chess.png" not in page
    made = save_by_time(EXPERIMENTS["fig-chess"], read_timed(tmp_path), tmp_path / "f")
    assert [path.name for path in made] == [f"fig-chess-{BY_TIME}.png", f"fig-chess-{BY_TIME}.svg"]
    assert save_by_time(EXPERIMENTS["fig-width"], read_timed(tmp_path), tmp_path / "f") == []


@pytest.mark.parametrize(
    "networks",
    [{"dt": {}}, {"dt": None}, {"dt": network()}, {"dt": {**network(5), RANGE: None}},
     {"dt": network(2000)}],
)  # fmt: skip
def test_a_damaged_result_is_named(tmp_path: Path, networks: dict[str, Any]) -> None:
    compared(tmp_path, **networks)
    with pytest.raises(RunError, match=r"compare-chess.json' is not what .* write") as caught:
        read_timed(tmp_path)
    assert "\n" not in str(caught.value)
