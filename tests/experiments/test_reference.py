"""The authors' own maze run, with made-up ones of ours beside it."""

from __future__ import annotations

from pathlib import Path

from made_up import keep

from iterant.experiments.figures import Reference
from iterant.experiments.records import read_records

RESULTS = Path(__file__).resolve().parents[2] / "results"
MODEL = "mazes-recall-a0.01"


def read() -> Reference:
    reference = Reference.read(RESULTS)
    assert reference is not None
    return reference


def test_the_authors_run_beside_ours(tmp_path: Path) -> None:
    assert Reference.read(tmp_path) is None
    keep(tmp_path, MODEL, 1, [1], size="13", training={
        "history": [{"epoch": 1, "loss": 1.0}, {"epoch": 2, "loss": 1.0, "validation": 0.25}],
    })  # fmt: skip
    text = read().section(read_records(tmp_path), "figures")
    # Every tenth epoch and the first of the best.
    assert "| 10: 0.20, 20: 0.00, 30: 13.45, 40: 47.70, 43: 99.99, 50: 99.16 | 30: 2.96," in text
    assert "| ours, seed 1 | fp16 | 2: 25.00 |  |" in text
    assert "| ours, seed 0, in two legs | fp16 | 20: 21.41, 40: 99.42, 50: 100.00 |  |" in text
    assert len(read().save(read_records(tmp_path), tmp_path / "drawn")) == 2


def test_larger_mazes_after_as_many_iterations_as_theirs_and_at_the_peak(tmp_path: Path) -> None:
    keep(tmp_path, MODEL, 0, [*[0] * 29, 2, *[5] * 9, 8, 9, 99, 90], size="33")
    records = read_records(tmp_path)
    assert "| ours, seed 0 | fp16 |  | 30: 2.00, 40: 8.00, 42: 99.00 |" in read().section(
        records, ""
    )
    plot, (theirs, ours) = read().panels(records)[-1]
    assert plot.name.startswith("33×33")
    assert list(ours.trace.x) == list(theirs.trace.x) == list(range(30, 41))
    assert (ours.trace.y[0], ours.trace.y[-1]) == (2.0, 8.0)
    assert (theirs.trace.y[0], theirs.trace.y[-1]) == (2.96, 8.36)
