"""Interventions on networks built by hand: every recovery time is known before."""

from __future__ import annotations

import pytest
import torch
from exact import exact_prefix_sums, first_right, forgetting, poisoned, swap_recovery, two_cycle
from hypothesis import given, settings
from hypothesis import strategies as st
from thinkers import small_net
from torch import Tensor

from iterant.analysis import interventions as made
from iterant.analysis import recovery as portions
from iterant.analysis.recovery import Case, Recovery, by_index, gaussian, others, parts, recover
from iterant.engine import last, think
from iterant.errors import NetError, TaskError, UsageError
from iterant.nets.protocol import Net
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.prefix_sums import PrefixSums

TASK, BITS = PrefixSums(), 12
BATCH = TASK.sample(9, size=BITS, seed=4)
REST = BITS + 1
"""An iteration at which every network built by hand rests."""


def found(net: Net, cases: list[Case], after: int, steps: int = 40) -> Recovery:
    return recover(net, TASK, cases, what="test", after=after, steps=steps)


def test_undisturbed_the_answer_is_right_from_the_known_iteration_on() -> None:
    seen = found(exact_prefix_sums(), made.clean(BATCH), 0)
    wanted = first_right(BATCH.targets)
    assert torch.equal(seen.since, wanted)
    assert torch.equal(seen.first, wanted)
    accuracy = [float((wanted <= step).double().mean()) for step in range(1, 41)]
    assert seen.accuracy.tolist() == accuracy
    assert seen.peak == (int(wanted.max()), 1.0)
    assert (seen.recovered, seen.mean_to_solution) == (1.0, float(wanted.double().mean()))
    assert seen.before != seen.before, "nothing was before"


@pytest.mark.parametrize("net", [exact_prefix_sums(), two_cycle()], ids=["exact", "two-cycle"])
@pytest.mark.parametrize("after", [0, 1, 5, REST])
def test_with_recall_zeros_are_as_the_start(net: Net, after: int) -> None:
    seen = found(net, made.zeros(BATCH, after=after), after)
    assert torch.equal(seen.since, first_right(BATCH.targets))
    assert seen.recovered == 1


def test_with_recall_noise_is_gone_after_as_many_iterations_as_bits() -> None:
    seen = found(exact_prefix_sums(), made.noise(BATCH, after=REST, seed=2), REST)
    assert seen.recovered == 1
    assert int(seen.since.max()) <= BITS
    assert seen.before == 1
    assert float(seen.accuracy[0]) < 1, "noise that changes nothing is none"


def test_swapped_features_are_gone_when_the_common_beginning_says() -> None:
    cases = made.swap(BATCH, after=REST, seed=3)
    other = others(len(BATCH), 3, "swap 0")
    wanted = swap_recovery(BATCH.targets, BATCH.targets[other])
    seen = found(exact_prefix_sums(), cases, REST)
    assert torch.equal(seen.since, wanted)
    # Swapping the input instead poses the other problem, from the same distance.
    back = found(exact_prefix_sums(), made.swap_input(BATCH, after=REST, seed=3), REST)
    assert torch.equal(back.since, swap_recovery(BATCH.targets[other], BATCH.targets))


def test_a_flipped_bit_is_answered_for_after_all_bits_from_it_on() -> None:
    net = exact_prefix_sums()
    cases = made.bit_flips(TASK, BATCH, after=REST)
    assert len(cases) == 1, "all indices of all strings are one run"
    seen = by_index(found(net, cases, REST), length=BITS)
    assert seen.count == len(BATCH) * BITS
    assert torch.equal(seen.since.view(-1, BITS), BITS - torch.arange(BITS).repeat(len(BATCH), 1))
    assert seen.mean_by_index.tolist() == [float(BITS - index) for index in range(BITS)]
    assert seen.recovered_by_index.tolist() == [1.0] * BITS


def test_strings_are_thought_about_once_before_their_bits_are_flipped() -> None:
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
    found(net, made.bit_flips(TASK, BATCH, after=5), 5, steps=8)
    assert net.rows == [len(BATCH)] * 5 + [len(BATCH) * BITS] * 3


@pytest.mark.parametrize("what", ["noise", "zeros", "swap", "swap-input", "bit-flip"])
def test_without_recall_nothing_is_recovered_from(what: str) -> None:
    net = forgetting()
    cases = {
        "noise": lambda: made.noise(BATCH, after=REST, scale=3),
        "zeros": lambda: made.zeros(BATCH, after=REST),
        "swap": lambda: made.swap(BATCH, after=REST),
        "swap-input": lambda: made.swap_input(BATCH, after=REST),
        "bit-flip": lambda: made.bit_flips(TASK, BATCH, after=REST),
    }[what]()
    seen = found(net, cases, REST)
    assert seen.before == 1
    assert (seen.recovered, seen.peak) == (0, (1, 0.0))
    assert seen.mean_to_solution != seen.mean_to_solution, "no mean of nothing"
    assert found(net, made.clean(BATCH), 0).recovered == 1


def test_broken_features_are_counted_and_never_right() -> None:
    begins_with_one = BATCH.inputs[:, 0, 0] > 0
    seen = found(poisoned(20), made.clean(BATCH), 0)
    assert torch.equal(seen.broken, begins_with_one)
    assert torch.equal(seen.since > 0, ~begins_with_one)
    assert (seen.first > 0).all(), "they were right before they broke"
    assert seen.figures()["broken"] == int(begins_with_one.sum())
    assert seen.figures()["recovered"] == float((~begins_with_one).double().mean())


@settings(max_examples=30)
@given(count=st.integers(2, 50), seed=st.integers(0, 1000))
def test_a_swap_leaves_nobody_with_his_own(count: int, seed: int) -> None:
    other = others(count, seed, "swap")
    assert sorted(other.tolist()) == list(range(count))
    assert (other != torch.arange(count)).all()


def test_the_same_seed_makes_the_same_noise_whatever_was_drawn_before() -> None:
    like = torch.zeros(3, 4)
    first = gaussian(like, 1, "a")
    gaussian(like, 2, "a")
    assert torch.equal(gaussian(like, 1, "a"), first)
    assert not torch.equal(gaussian(like, 1, "b"), first)
    cases = made.noise(BATCH, after=1, seed=5)
    net = exact_prefix_sums()
    ends = [
        last(think(net, BATCH.inputs, steps=2, intervene=cases[0].intervene)).features
        for _ in range(2)
    ]
    assert torch.equal(ends[0], ends[1])


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_parts_hold_every_problem_once(
    least: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portions, "POSITIONS_AT_ONCE", BITS * 2 + 1)
    batch = TASK.sample(count, size=BITS)
    cut = list(parts(batch, least=least))
    assert torch.equal(torch.cat([part.inputs for part in cut]), batch.inputs)
    assert min(len(part) for part in cut) >= min(least, count)
    assert max(len(part) for part in cut) <= max(2, least + 1)


def test_parts_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    net = exact_prefix_sums()
    whole = found(net, made.bit_flips(TASK, BATCH, after=REST), REST)
    monkeypatch.setattr(portions, "POSITIONS_AT_ONCE", BITS * BITS * 2)
    cases = made.bit_flips(TASK, BATCH, after=REST)
    assert len(cases) == 5
    cut = found(net, cases, REST)
    assert torch.equal(cut.since, whole.since)
    assert torch.equal(cut.right, whole.right)


def test_a_moved_end_is_judged_by_the_shorter_way() -> None:
    task = Mazes()
    net, batch = small_net("mazes", "dt-recall"), task.sample(12, size=5, seed=1)
    cases, left_out = made.moved_ends(task, batch, after=2)
    shorter, rows = task.shorten(batch)
    assert left_out == len(batch) - len(rows) > 0
    assert torch.equal(cases[0].judged.targets, shorter.targets)
    assert torch.equal(cases[0].begun.inputs, batch[rows].inputs)
    seen = recover(net, task, cases, what="x", after=2, steps=4, left_out=left_out)
    assert (seen.count, seen.left_out) == (len(rows), left_out)
    thoughts = list(think(net, batch[rows].inputs.double(), steps=4, intervene=cases[0].intervene))
    assert torch.equal(thoughts[1].inputs, batch[rows].inputs.double())
    assert torch.equal(thoughts[2].inputs, shorter.inputs.double())


def test_random_inputs_have_no_answer_and_the_shape_of_the_problems() -> None:
    noise = made.random_inputs(BATCH, seed=1)
    assert noise.inputs.shape == BATCH.inputs.shape
    assert (noise.targets == -1).all()
    assert torch.equal(noise.inputs, made.random_inputs(BATCH, seed=1).inputs)


def test_a_swap_in_a_batch_of_one_is_refused() -> None:
    for swap in (made.swap, made.swap_input):
        with pytest.raises(UsageError, match="got a batch of 1"):
            swap(BATCH[:1], after=1)


@pytest.mark.parametrize(("after", "steps"), [(5, 5), (6, 5), (0, 0), (-1, 5)])
def test_an_intervention_after_the_last_iteration_is_refused(after: int, steps: int) -> None:
    with pytest.raises(UsageError, match="leaves nothing to see"):
        found(exact_prefix_sums(), made.clean(BATCH), after, steps)


def test_noise_without_a_scale_is_refused() -> None:
    with pytest.raises(UsageError, match="above 0, got 0"):
        made.noise(BATCH, after=1, scale=0)


def test_more_iterations_than_a_network_has_are_refused() -> None:
    with pytest.raises(NetError, match="has 12 iterations"):
        found(small_net("prefix-sums", "ff"), made.clean(BATCH), 0, 13)


def test_problems_without_answers_cannot_be_judged() -> None:
    with pytest.raises(TaskError, match="not known"):
        found(exact_prefix_sums(), made.clean(made.random_inputs(BATCH)), 0)
