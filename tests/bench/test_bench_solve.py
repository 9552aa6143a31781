"""The bench of solve: three ways with the same answers, and what it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from iterant.bench import bench_solve, solving_name
from iterant.bench.solve import Dense
from iterant.cli.main import run
from iterant.io import read_result
from iterant.nets.fast import accelerate
from iterant.tasks.mazes.task import Mazes
from iterant.zoo import load


def test_all_ways_answer_the_same() -> None:
    figures = bench_solve("mazes", size=9, count=3, rounds=2, device="cpu")
    assert figures["answers that differ from the dense network's"] == 0
    assert figures["largest difference of iterations"] == 0
    assert figures["settled"] == figures["solved"] == figures["problems"] == 3
    assert all(seconds > 0 for seconds in figures["seconds"].values())
    ratio = figures["ratio"]["dense / solve"]
    assert ratio["lowest"] <= ratio["median"] <= ratio["highest"]
    assert solving_name(figures) == "bench-solve-mazes-cpu-3-of-9"


def test_the_dense_network_is_not_accelerated() -> None:
    dense, inputs = Dense(load("mazes")), Mazes().sample(1, size=5).inputs
    assert accelerate(dense, inputs) is dense


def test_the_command_prints_a_table_and_writes_a_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "bench solve --size 5 --count 2 --rounds 1 --device cpu --out"
    with pytest.raises(SystemExit) as leaving:
        run([*words.split(), str(tmp_path)])
    output, errors = capsys.readouterr()
    assert (leaving.value.code, errors) == (0, "")
    figures = read_result(tmp_path / "bench-solve-mazes-cpu-2-of-5.json")["figures"]
    assert f"{figures['ratio']['dense / solve']['median']:.2f} times" in output
    assert f"{figures['seconds']['solve']:.3g}" in output
