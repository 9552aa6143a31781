"""Making a table on a small machine: who gets which part of the budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_up import keep

from iterant.experiments import reproduce as reproducing
from iterant.experiments.catalogue import EXPERIMENTS
from iterant.experiments.measures import Recovered
from iterant.experiments.models import Unit
from iterant.experiments.records import read_records
from iterant.training.interrupts import Clock

FAST, SLOW, NEVER = Unit("sums-n0", 0), Unit("sums-recall-a1", 0), Unit("sums-ours", 0)


@pytest.mark.parametrize(
    ("took", "units", "again"),
    [(300.0, [FAST, SLOW], [[SLOW]]), (500.0, [FAST, SLOW], []), (300.0, [SLOW, NEVER], [])],
)
def test_what_was_cut_off_goes_on_in_what_is_left_of_the_budget(
    took: float,
    units: list[Unit],
    again: list[list[Unit]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[list[Unit], Any]] = []

    def campaign(wanted: Sequence[Unit], *, time_limit: Any, **_: Any) -> list[Unit]:
        for unit in wanted:
            if unit != NEVER:
                keep(tmp_path, unit.model, unit.seed, [1], finished=unit == FAST)
        calls.append((list(wanted), time_limit))
        return [unit for unit in wanted if unit == NEVER]

    monkeypatch.setattr(reproducing, "campaign", campaign)
    monkeypatch.setattr(Clock, "elapsed", property(lambda clock: took))
    left = reproducing.produce(
        EXPERIMENTS["compare-n-zero"], units, out=tmp_path, device="cpu", budget="10m", small=True,
        say=lambda text: None,
    )  # fmt: skip
    assert left == [unit for unit in units if unit == NEVER]
    assert [some for some, _ in calls] == [units, *again]
    assert [limit for _, limit in calls[1:]] == [600 - took] * len(again)


def test_a_run_that_only_a_study_was_made_of_did_not_break_down(tmp_path: Path) -> None:
    study = {"noise": {"samples": 10, "right": [0, 9], "mean iterations": 2.0}}
    keep(tmp_path, "sums-recall-a1", 0, [], tests={}, studies=study)
    keep(tmp_path, "sums-ours", 0, [], tests={})
    records = read_records(tmp_path)
    assert not any(record.failed for record in records.all)
    cell = Recovered("noise").of(records.of("sums-recall-a1"))
    assert cell.every is not None
    assert (cell.every.seeds, cell.every.mean) == (1, 90.0)
