"""Interventions on hand-built networks whose recovery times are known."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from exact import exact_prefix_sums, first_right, forgetting, poisoned, swap_recovery, two_cycle
from hypothesis import given, settings
from hypothesis import strategies as st
from thinkers import small_net
from torch import Tensor

from iterant.analysis import interventions
from iterant.analysis.interventions import Recovery, cases, gaussian, parts, recover, swapped
from iterant.engine import last, think
from iterant.errors import NetError, TaskError, UsageError
from iterant.nets.protocol import Net
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch

TASK, BITS = PrefixSums(), 12
BATCH = TASK.sample(9, size=BITS, seed=4)
REST = BITS + 1
"""An iteration at which every hand-built network has settled."""
EXACT = exact_prefix_sums()


def recovery(net: Net, what: str, after: int = 0, steps: int = 40, **more: Any) -> Recovery:
    seed = more.pop("seed", 0)
    made = cases(what, TASK, BATCH, after=after, seed=seed)
    return recover(net, TASK, made, after=after, steps=steps, **more)


def test_clean_run() -> None:
    result = recovery(EXACT, "clean")
    wanted = first_right(BATCH.targets)
    assert torch.equal(result.since, wanted)
    assert torch.equal(result.first, wanted)
    accuracy = [float((wanted <= step).double().mean()) for step in range(1, 41)]
    assert result.accuracy.tolist() == accuracy
    assert result.peak == (int(wanted.max()), 1.0)
    assert (result.recovered, result.mean_to_solution) == (1.0, float(wanted.double().mean()))
    assert result.before != result.before, "nothing was before"


def test_first_and_since() -> None:
    correct = torch.tensor([[0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]]).bool()
    result = Recovery("", 0, correct, torch.zeros(5).bool(), 0.0)
    assert result.first.tolist() == [0, 1, 1, 2, 1]
    assert result.since.tolist() == [0, 0, 3, 2, 1]
    assert result.right.tolist() == [3, 2, 3]
    assert (result.peak, result.mean_to_solution) == ((1, 0.6), 2.0)


@pytest.mark.parametrize("net", [EXACT, two_cycle()], ids=["exact", "two-cycle"])
@pytest.mark.parametrize("after", [0, 1, 5, REST])
def test_zeros_with_recall_restart_the_computation(net: Net, after: int) -> None:
    assert torch.equal(recovery(net, "zeros", after).since, first_right(BATCH.targets))


def test_noise_with_recall() -> None:
    result = recovery(EXACT, "noise", REST, seed=2)
    assert (result.recovered, result.before) == (1, 1)
    assert int(result.since.max()) <= BITS
    assert float(result.accuracy[0]) < 1, "noise that changes nothing is none"


def test_swap_recovery_depends_on_the_common_prefix() -> None:
    other = BATCH.targets[swapped(len(BATCH), 3, "swap 0")]
    result = recovery(EXACT, "swap", REST, seed=3)
    assert torch.equal(result.since, swap_recovery(BATCH.targets, other))
    # Swapping the input instead poses the other problem, from the same distance.
    result = recovery(EXACT, "swap-input", REST, seed=3)
    assert torch.equal(result.since, swap_recovery(other, BATCH.targets))


def test_bit_flip_recovery_time_by_index(monkeypatch: pytest.MonkeyPatch) -> None:
    result = recovery(EXACT, "bit-flip", REST, length=BITS)
    assert result.count == len(BATCH) * BITS
    assert torch.equal(result.since.view(-1, BITS), BITS - torch.arange(BITS).repeat(len(BATCH), 1))
    assert result.mean_by_index.tolist() == [float(BITS - index) for index in range(BITS)]
    assert result.figures()["by index"]["recovered"] == [1.0] * BITS
    monkeypatch.setattr(interventions, "POSITIONS_AT_ONCE", BITS * BITS * 2)
    assert len(cases("bit-flip", TASK, BATCH)) == 5
    assert torch.equal(recovery(EXACT, "bit-flip", REST).correct, result.correct)


def test_strings_are_computed_once_before_the_flip() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows = list[int]()
            self.read, self.start, self.answer = EXACT.read, EXACT.start, EXACT.answer

        def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
            self.rows.append(len(features))
            return EXACT.step(features, memory, index)

    net = Counting()
    recovery(net, "bit-flip", 5, steps=8)
    assert net.rows == [len(BATCH)] * 5 + [len(BATCH) * BITS] * 3


@pytest.mark.parametrize("what", ["zeros", "swap", "swap-input", "bit-flip"])
def test_no_recovery_without_recall(what: str) -> None:
    result = recovery(forgetting(), what, REST)
    assert result.before == 1
    assert (result.recovered, result.peak) == (0, (1, 0.0))
    assert result.mean_to_solution != result.mean_to_solution, "no mean of nothing"
    assert recovery(forgetting(), "clean").recovered == 1


def test_nan_features_count_as_wrong() -> None:
    begins_with_one = BATCH.inputs[:, 0, 0] > 0
    result = recovery(poisoned(20), "clean")
    assert torch.equal(result.broken, begins_with_one)
    assert torch.equal(result.since > 0, ~begins_with_one)
    assert (result.first > 0).all(), "they were right before they broke"
    assert result.figures()["broken"] == int(begins_with_one.sum())
    assert result.figures()["recovered"] == float((~begins_with_one).double().mean())


@settings(max_examples=30)
@given(count=st.integers(2, 50), seed=st.integers(0, 1000))
def test_swap_has_no_fixed_points(count: int, seed: int) -> None:
    other = swapped(count, seed, "swap")
    assert sorted(other.tolist()) == list(range(count))
    assert (other != torch.arange(count)).all()


def test_noise_depends_on_the_seed_only() -> None:
    like = torch.zeros(3, 4)
    first = gaussian(like, 1, "a")
    gaussian(like, 2, "a")
    assert torch.equal(gaussian(like, 1, "a"), first)
    assert not torch.equal(gaussian(like, 1, "b"), first)
    (case,) = cases("noise", TASK, BATCH, after=1, seed=5)
    one, other = (
        last(think(EXACT, BATCH.inputs, steps=2, intervene=case.intervene)).features
        for _ in range(2)
    )
    assert torch.equal(one, other)


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_parts_cover_the_batch(least: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interventions, "POSITIONS_AT_ONCE", BITS * 2 + 1)
    batch = TASK.sample(count, size=BITS)
    cut = list(parts(batch, least=least))
    assert torch.equal(torch.cat([part.inputs for part in cut]), batch.inputs)
    assert min(len(part) for part in cut) >= min(least, count)
    assert max(len(part) for part in cut) <= max(2, least + 1)


def test_moved_end_has_the_shorter_path() -> None:
    task = Mazes()
    net, batch = small_net("mazes", "dt-recall"), task.sample(12, size=5, seed=1)
    (case,) = cases("move-end", task, batch, after=2)
    shorter, rows = task.shorten(batch)
    assert 0 < len(rows) < len(batch)
    assert torch.equal(case.target.targets, shorter.targets)
    assert torch.equal(case.batch.inputs, batch[rows].inputs)
    thoughts = list(think(net, batch[rows].inputs.double(), steps=4, intervene=case.intervene))
    assert torch.equal(thoughts[1].inputs, batch[rows].inputs.double())
    assert torch.equal(thoughts[2].inputs, shorter.inputs.double())
    tiny = batch[[row for row in range(len(batch)) if row not in rows.tolist()]]
    with pytest.raises(UsageError):
        recover(net, task, cases("move-end", task, tiny), steps=4)


@pytest.mark.parametrize(("after", "steps"), [(5, 5), (6, 5), (0, 0), (-1, 5)])
def test_intervention_after_the_last_iteration(after: int, steps: int) -> None:
    with pytest.raises(UsageError):
        recover(EXACT, TASK, cases("clean", TASK, BATCH), after=after, steps=steps)


def test_invalid_arguments() -> None:
    for what in ("swap", "swap-input"):
        with pytest.raises(UsageError):
            cases(what, TASK, BATCH[:1])
    with pytest.raises(NetError):
        recovery(small_net("prefix-sums", "ff"), "clean", steps=13)
    unknown = Batch(BATCH.inputs, torch.full_like(BATCH.targets, -1))
    with pytest.raises(TaskError):
        recover(EXACT, TASK, cases("clean", TASK, unknown), steps=4)
