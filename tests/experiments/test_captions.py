"""What is said of seeds: how many lines are means of, which were not run or had other tests."""

from __future__ import annotations

from pathlib import Path

from made_up import keep

from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.figures import caption, caption_by_time
from iterant.experiments.records import read_records
from iterant.experiments.report import results_page, unlike_tests
from iterant.experiments.timed import Timed

OF = "Means over all finished runs, none filtered out"


def test_models_with_as_many_seeds_stand_together(tmp_path: Path) -> None:
    depth = EXPERIMENTS["fig-depth"]
    for model, seeds in (("m10", 2), ("m20", 2), ("m40", 1)):
        for seed in range(seeds):
            keep(tmp_path, f"sums-recall-a1-{model}", seed, [1])
    assert caption(depth, read_records(tmp_path)) == (
        f"{OF}: 2 seeds of m = 10 and m = 20; one seed of m = 40; not run: m = 30."
    )
    keep(tmp_path, "sums-recall-a1-m40", 1, [], tests={}, training={"ended": "the loss exploded"})
    for seed in range(2):
        keep(tmp_path, "sums-recall-a1", seed, [1])
    told = caption(depth, read_records(tmp_path))
    assert told == f"{OF}: 2 seeds of each.", "one that broke down is a seed, too"


def test_panels_are_named_where_their_seeds_differ(tmp_path: Path) -> None:
    easy = EXPERIMENTS["fig-easy-problems"]
    assert caption(easy, read_records(tmp_path)) == f"{OF}: not run yet."
    keep(tmp_path, "sums-ff", 0, [1], tests={"48": {"problems": 2, "solved": [1]}})
    others = "DT α = 0, DT α = 1, DT-Recall α = 0, DT-Recall α = 1 and ours"
    assert caption(easy, read_records(tmp_path)) == (
        f"{OF}. 48 bits: one seed of FF; not run: {others}. 13×13: not run yet."
    )


def test_a_line_that_comes_to_rest_is_explained(tmp_path: Path) -> None:
    delta = EXPERIMENTS["fig-prefix-delta"]
    for seed, last in enumerate([0.0, 0.5]):
        study = {"convergence": {"problems": {"change": [1.0, last]}}}
        keep(tmp_path, "sums-ours", seed, [1], studies=study)
        told = caption(delta, read_records(tmp_path))
        assert told.endswith("no place on the axis.") == (seed == 0), "its mean is above 0"


def test_problems_that_overflow_are_counted(tmp_path: Path) -> None:
    for seed, lost in enumerate([0, 3]):
        ends = {"settled": 1, "moving": 9 - lost, "broken": lost}
        study = {"convergence": {"problems": {"change": [1.0, 9.0], "features": ends}}}
        keep(tmp_path, "sums-dt-a1", seed, [1], studies=study)
        told = caption(EXPERIMENTS["fig-prefix-delta"], read_records(tmp_path))
        assert told.endswith("left out from there on: 3 of 20 of DT α = 1.") == bool(lost)


def test_networks_that_had_a_time_say_their_seeds(tmp_path: Path) -> None:
    test = {"600000:700000": {"problems": 9, "solved": [1]}}
    for model in ("chess-ff", "chess-ours"):
        keep(tmp_path, model, 0, [1], tests=test)
    timed = [Timed("70 s", read_records(tmp_path))]
    assert caption_by_time(EXPERIMENTS["fig-chess"], timed) == f"{OF}: one seed of each."
    keep(tmp_path, "chess-ff", 1, [1], tests=test)
    timed = [Timed("70 s", read_records(tmp_path))]
    assert caption_by_time(EXPERIMENTS["fig-chess"], timed) == f"{OF}: 1 to 2 seeds of each."


def test_seeds_that_had_other_tests_are_told(tmp_path: Path) -> None:
    keep(tmp_path / "runs", "sums-n0", 0, [0, 0, 90])
    keep(tmp_path / "runs", "sums-n0", 1, [0, 0, 90])
    assert unlike_tests(read_records(tmp_path / "runs")) == []
    keep(tmp_path / "runs", "sums-n0", 2, [0, 5], problems=10)
    (told,) = unlike_tests(read_records(tmp_path / "runs"))
    assert told == (
        "sums-n0 at 512: 100 problems, 3 iterations (seed 0, 1); 10 problems, 2 iterations (seed 2)"
    )
    assert f"- {told}\n" in results_page(tmp_path)
