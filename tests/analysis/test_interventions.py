"""Interventions on hand-built networks whose recovery times are known."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from exact_networks import (
    DeadEnds,
    exact_prefix_sums,
    first_right,
    forgetting,
    poisoned,
    swap_recovery,
    two_cycle,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from iterant.analysis import Trial, interventions
from iterant.analysis.interventions import cases, derangement, recover, times_to_solution
from iterant.errors import UsageError
from iterant.nets.protocol import Net
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch

TASK, BITS = PrefixSums(), 12
BATCH = TASK.sample(9, size=BITS, seed=4)
REST = BITS + 1
"""An iteration at which every hand-built network has settled."""
EXACT = exact_prefix_sums()


def trial(net: Net, what: str, after: int = 0, batch: Batch = BATCH, steps: int = 40) -> Trial:
    return Trial(what, net, TASK, batch, steps, after, seed=3)


def recovery(net: Net, what: str, after: int = 0) -> dict[str, Any]:
    return recover(trial(net, what, after)).figures


def test_clean_run() -> None:
    figures = recovery(EXACT, "clean")
    wanted = first_right(BATCH.targets)
    assert figures["iterations to solution"] == wanted.tolist()
    assert figures["iterations to first right answer"] == wanted.tolist()
    accuracy = [float((wanted <= step).double().mean()) for step in range(1, 41)]
    assert figures["accuracy"] == accuracy
    assert figures["peak"] == {"iteration": int(wanted.max()), "accuracy": 1.0}
    assert figures["recovered"] == 1
    assert figures["mean iterations to solution"] == float(wanted.double().mean())
    assert figures["accuracy before"] != figures["accuracy before"], "nothing was before"


def test_times_to_solution() -> None:
    correct = torch.tensor([[0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]]).bool()
    first, since = times_to_solution(correct)
    assert first.tolist() == [0, 1, 1, 2, 1]
    assert since.tolist() == [0, 0, 3, 2, 1]


@pytest.mark.parametrize("net", [EXACT, two_cycle()], ids=["exact", "two-cycle"])
@pytest.mark.parametrize("after", [0, 1, 5, REST])
def test_zeros_with_recall_restart_the_computation(net: Net, after: int) -> None:
    wanted = first_right(BATCH.targets).tolist()
    assert recovery(net, "zeros", after)["iterations to solution"] == wanted


def test_noise_with_recall() -> None:
    figures = recovery(EXACT, "noise", REST)
    assert (figures["recovered"], figures["accuracy before"]) == (1, 1)
    assert max(figures["iterations to solution"]) <= BITS
    assert figures["accuracy"][0] < 1, "noise that changes nothing is none"


def test_swap_recovery_depends_on_the_common_prefix() -> None:
    other = BATCH.targets[derangement(len(BATCH), 3, "swap 0")]
    times = recovery(EXACT, "swap", REST)["iterations to solution"]
    assert times == swap_recovery(BATCH.targets, other).tolist()
    # Swapping the input instead poses the other problem, from the same distance.
    times = recovery(EXACT, "swap-input", REST)["iterations to solution"]
    assert times == swap_recovery(other, BATCH.targets).tolist()


def test_bit_flip_recovery_time_by_index(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = recovery(EXACT, "bit-flip", REST)
    by_index = [BITS - index for index in range(BITS)]
    assert figures["problems"] == len(BATCH) * BITS
    assert figures["iterations to solution"] == by_index * len(BATCH)
    assert figures["by index"] == {
        "mean iterations to solution": by_index,
        "recovered": [1.0] * BITS,
    }
    (case,) = cases(trial(EXACT, "bit-flip"))
    assert (len(case.batch), len(case.target)) == (9, 9 * BITS), "computed once before the flip"
    monkeypatch.setattr(interventions, "POSITIONS_AT_ONCE", BITS * BITS * 2)
    assert len(cases(trial(EXACT, "bit-flip"))) == 5
    assert recovery(EXACT, "bit-flip", REST)["accuracy"] == figures["accuracy"]


@pytest.mark.parametrize("what", ["zeros", "swap", "swap-input", "bit-flip"])
def test_no_recovery_without_recall(what: str) -> None:
    figures = recovery(forgetting(), what, REST)
    assert (figures["accuracy before"], figures["recovered"]) == (1, 0)
    assert figures["peak"] == {"iteration": 1, "accuracy": 0}
    mean = figures["mean iterations to solution"]
    assert mean != mean, "no mean of nothing"


def test_nan_features_count_as_wrong() -> None:
    begins_with_one = BATCH.inputs[:, 0, 0] > 0
    figures = recovery(poisoned(20), "clean")
    assert figures["broken"] == int(begins_with_one.sum())
    assert [time > 0 for time in figures["iterations to solution"]] == (~begins_with_one).tolist()
    assert min(figures["iterations to first right answer"]) > 0, "right before they broke"
    assert figures["recovered"] == float((~begins_with_one).double().mean())


@settings(max_examples=30)
@given(count=st.integers(2, 50), seed=st.integers(0, 1000))
def test_swap_has_no_fixed_points(count: int, seed: int) -> None:
    other = derangement(count, seed, "swap")
    assert sorted(other.tolist()) == list(range(count))
    assert (other != torch.arange(count)).all()


def test_moved_end_has_the_shorter_path() -> None:
    """The two cells that are no longer on the path are a dead end, filled one an iteration."""
    task = Mazes()
    batch = task.sample(12, size=5, seed=1)
    rows = task.shorten(batch)[1]
    figures = recover(Trial("move-end", DeadEnds(), task, batch, steps=30, after=20)).figures
    assert figures["iterations to solution"] == [2] * len(rows)
    assert figures["left out"] == len(batch) - len(rows) > 0
    tiny = batch[[row for row in range(len(batch)) if row not in rows.tolist()]]
    with pytest.raises(UsageError):
        recover(Trial("move-end", DeadEnds(), task, tiny, steps=4))
