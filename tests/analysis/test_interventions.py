"""Interventions on hand-built networks whose recovery times are known."""

from __future__ import annotations

import pytest
import torch
from exact import exact_prefix_sums, first_right, forgetting, poisoned, swap_recovery, two_cycle
from hypothesis import given, settings
from hypothesis import strategies as st
from thinkers import small_net
from torch import Tensor

from iterant.analysis import interventions
from iterant.analysis.interventions import Case, gaussian, parts, swapped
from iterant.analysis.recovery import Recovery, recover
from iterant.engine import last, think
from iterant.errors import NetError, TaskError, UsageError
from iterant.nets.protocol import Net
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.prefix_sums import PrefixSums

TASK, BITS = PrefixSums(), 12
BATCH = TASK.sample(9, size=BITS, seed=4)
REST = BITS + 1
"""An iteration at which every hand-built network has settled."""


def recovery(net: Net, cases: list[Case], after: int, steps: int = 40) -> Recovery:
    return recover(net, TASK, cases, what="test", after=after, steps=steps)


def test_clean_run() -> None:
    result = recovery(exact_prefix_sums(), interventions.clean(BATCH), 0)
    wanted = first_right(BATCH.targets)
    assert torch.equal(result.since, wanted)
    assert torch.equal(result.first, wanted)
    accuracy = [float((wanted <= step).double().mean()) for step in range(1, 41)]
    assert result.accuracy.tolist() == accuracy
    assert result.peak == (int(wanted.max()), 1.0)
    assert (result.recovered, result.mean_to_solution) == (1.0, float(wanted.double().mean()))
    assert result.before != result.before, "nothing was before"


@pytest.mark.parametrize("net", [exact_prefix_sums(), two_cycle()], ids=["exact", "two-cycle"])
@pytest.mark.parametrize("after", [0, 1, 5, REST])
def test_zeros_with_recall_restart_the_computation(net: Net, after: int) -> None:
    result = recovery(net, interventions.zeros(BATCH, after=after), after)
    assert torch.equal(result.since, first_right(BATCH.targets))
    assert result.recovered == 1


def test_noise_with_recall() -> None:
    result = recovery(exact_prefix_sums(), interventions.noise(BATCH, after=REST, seed=2), REST)
    assert result.recovered == 1
    assert int(result.since.max()) <= BITS
    assert result.before == 1
    assert float(result.accuracy[0]) < 1, "noise that changes nothing is none"


def test_swap_recovery_depends_on_the_common_prefix() -> None:
    cases = interventions.swap(BATCH, after=REST, seed=3)
    other = swapped(len(BATCH), 3, "swap 0")
    wanted = swap_recovery(BATCH.targets, BATCH.targets[other])
    result = recovery(exact_prefix_sums(), cases, REST)
    assert torch.equal(result.since, wanted)
    # Swapping the input instead poses the other problem, from the same distance.
    back = recovery(exact_prefix_sums(), interventions.swap_input(BATCH, after=REST, seed=3), REST)
    assert torch.equal(back.since, swap_recovery(BATCH.targets[other], BATCH.targets))


def test_bit_flip_recovery_time_by_index() -> None:
    net = exact_prefix_sums()
    cases = interventions.bit_flips(TASK, BATCH, after=REST)
    assert len(cases) == 1, "all indices of all strings are one run"
    result = recover(net, TASK, cases, what="test", after=REST, steps=40, length=BITS)
    assert result.count == len(BATCH) * BITS
    assert torch.equal(result.since.view(-1, BITS), BITS - torch.arange(BITS).repeat(len(BATCH), 1))
    assert result.mean_by_index.tolist() == [float(BITS - index) for index in range(BITS)]
    assert result.recovered_by_index.tolist() == [1.0] * BITS


def test_strings_are_computed_once_before_the_flip() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.rows = exact_prefix_sums(), list[int]()
            self.read, self.start, self.answer = (
                self.inner.read, self.inner.start, self.inner.answer,
            )  # fmt: skip

        def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
            self.rows.append(len(features))
            return self.inner.step(features, memory, index)

    net = Counting()
    recovery(net, interventions.bit_flips(TASK, BATCH, after=5), 5, steps=8)
    assert net.rows == [len(BATCH)] * 5 + [len(BATCH) * BITS] * 3


@pytest.mark.parametrize("what", ["noise", "zeros", "swap", "swap-input", "bit-flip"])
def test_no_recovery_without_recall(what: str) -> None:
    net = forgetting()
    cases = {
        "noise": lambda: interventions.noise(BATCH, after=REST, scale=3),
        "zeros": lambda: interventions.zeros(BATCH, after=REST),
        "swap": lambda: interventions.swap(BATCH, after=REST),
        "swap-input": lambda: interventions.swap_input(BATCH, after=REST),
        "bit-flip": lambda: interventions.bit_flips(TASK, BATCH, after=REST),
    }[what]()
    result = recovery(net, cases, REST)
    assert result.before == 1
    assert (result.recovered, result.peak) == (0, (1, 0.0))
    assert result.mean_to_solution != result.mean_to_solution, "no mean of nothing"
    assert recovery(net, interventions.clean(BATCH), 0).recovered == 1


def test_nan_features_count_as_wrong() -> None:
    begins_with_one = BATCH.inputs[:, 0, 0] > 0
    result = recovery(poisoned(20), interventions.clean(BATCH), 0)
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
    cases = interventions.noise(BATCH, after=1, seed=5)
    net = exact_prefix_sums()
    ends = [
        last(think(net, BATCH.inputs, steps=2, intervene=cases[0].intervene)).features
        for _ in range(2)
    ]
    assert torch.equal(ends[0], ends[1])


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_parts_cover_the_batch(least: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interventions, "POSITIONS_AT_ONCE", BITS * 2 + 1)
    batch = TASK.sample(count, size=BITS)
    cut = list(parts(batch, least=least))
    assert torch.equal(torch.cat([part.inputs for part in cut]), batch.inputs)
    assert min(len(part) for part in cut) >= min(least, count)
    assert max(len(part) for part in cut) <= max(2, least + 1)


def test_parts_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    net = exact_prefix_sums()
    whole = recovery(net, interventions.bit_flips(TASK, BATCH, after=REST), REST)
    monkeypatch.setattr(interventions, "POSITIONS_AT_ONCE", BITS * BITS * 2)
    cases = interventions.bit_flips(TASK, BATCH, after=REST)
    assert len(cases) == 5
    cut = recovery(net, cases, REST)
    assert torch.equal(cut.since, whole.since)
    assert torch.equal(cut.right, whole.right)


def test_moved_end_has_the_shorter_path() -> None:
    task = Mazes()
    net, batch = small_net("mazes", "dt-recall"), task.sample(12, size=5, seed=1)
    cases, left_out = interventions.moved_ends(task, batch, after=2)
    shorter, rows = task.shorten(batch)
    assert left_out == len(batch) - len(rows) > 0
    assert torch.equal(cases[0].target.targets, shorter.targets)
    assert torch.equal(cases[0].batch.inputs, batch[rows].inputs)
    result = recover(net, task, cases, what="x", after=2, steps=4, left_out=left_out)
    assert (result.count, result.left_out) == (len(rows), left_out)
    thoughts = list(think(net, batch[rows].inputs.double(), steps=4, intervene=cases[0].intervene))
    assert torch.equal(thoughts[1].inputs, batch[rows].inputs.double())
    assert torch.equal(thoughts[2].inputs, shorter.inputs.double())


def test_random_inputs_are_unlabelled() -> None:
    noise = interventions.random_inputs(BATCH, seed=1)
    assert noise.inputs.shape == BATCH.inputs.shape
    assert (noise.targets == -1).all()
    assert torch.equal(noise.inputs, interventions.random_inputs(BATCH, seed=1).inputs)


@pytest.mark.parametrize(("after", "steps"), [(5, 5), (6, 5), (0, 0), (-1, 5)])
def test_intervention_after_the_last_iteration(after: int, steps: int) -> None:
    with pytest.raises(UsageError, match="leaves nothing to see"):
        recovery(exact_prefix_sums(), interventions.clean(BATCH), after, steps)


def test_invalid_arguments() -> None:
    for swap in (interventions.swap, interventions.swap_input):
        with pytest.raises(UsageError, match="got a batch of 1"):
            swap(BATCH[:1], after=1)
    with pytest.raises(UsageError, match="above 0, got 0"):
        interventions.noise(BATCH, after=1, scale=0)
    with pytest.raises(NetError, match="has 12 iterations"):
        recovery(small_net("prefix-sums", "ff"), interventions.clean(BATCH), 0, 13)
    with pytest.raises(UsageError, match="no index"):
        _ = recovery(exact_prefix_sums(), interventions.clean(BATCH), 0).mean_by_index


def test_unlabelled_problems_are_refused() -> None:
    with pytest.raises(TaskError, match="not known"):
        recovery(exact_prefix_sums(), interventions.clean(interventions.random_inputs(BATCH)), 0)
