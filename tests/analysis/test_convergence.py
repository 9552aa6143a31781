"""Rest, cycles and motion of networks whose every state is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from asking import Questions
from exact import exact_prefix_sums, poisoned, two_cycle
from thinkers import Ticking
from torch import Tensor

from iterant.analysis.convergence import BROKEN, MOVING, SETTLED, Convergence, converge
from iterant.analysis.interventions import random_inputs
from iterant.engine import begin, think
from iterant.errors import UsageError
from iterant.tasks.prefix_sums import PrefixSums

TASK, BITS = PrefixSums(), 12
BATCH = TASK.sample(7, size=BITS, seed=4)


class Turning:
    """Features go round a ring of so many states; the answer is whether the state is 0."""

    def __init__(self, period: int) -> None:
        self.period = period

    def read(self, inputs: Tensor) -> None:
        """Nothing is recalled."""

    def start(self, inputs: Tensor) -> Tensor:
        return torch.ones_like(inputs)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return features % self.period + 1

    def answer(self, features: Tensor) -> Tensor:
        now = (features[:, 0] == 1).double()
        return torch.stack([1 - now, now], dim=1)


def test_the_exact_network_rests_after_as_many_iterations_as_bits() -> None:
    seen = converge(exact_prefix_sums(), TASK, BATCH, steps=40)
    # One position of one channel becomes known at each iteration, and then nothing changes.
    assert seen.change.tolist() == [1.0] * BITS + [0.0] * (40 - BITS)
    assert seen.periods.tolist() == [SETTLED] * len(BATCH)
    assert seen.answers == {"settled": 7, "cycling": 0, "moving": 0, "broken": 0}
    assert seen.solved is not None
    assert seen.solved.all()


def test_right_answers_rest_while_features_cycle() -> None:
    seen = converge(two_cycle(), TASK, BATCH, steps=40)
    assert seen.periods.tolist() == [2] * len(BATCH)
    assert seen.features["cycling"] == len(BATCH)
    assert seen.answers["settled"] == len(BATCH)
    assert seen.figures()["solved"]["cycling"] == len(BATCH)
    assert seen.figures()["features"]["periods"] == {"2": len(BATCH)}
    assert float(seen.change[-1]) == pytest.approx(BITS**0.5)


@pytest.mark.parametrize(
    ("period", "wanted"), [(1, SETTLED), (2, 2), (3, 3), (7, 7), (8, 8), (9, MOVING)]
)
def test_periods_are_the_shortest_that_hold(period: int, wanted: int) -> None:
    seen = converge(Turning(period), TASK, BATCH, steps=50)
    assert set(seen.periods.tolist()) == {wanted}
    assert set(seen.answer_periods.tolist()) == {wanted}


def test_a_network_that_still_moves_at_the_end_is_moving() -> None:
    inputs = torch.tensor([5.0, 1000.0]).view(2, 1, 1).expand(2, 1, BITS)
    batch = type(BATCH)(inputs, torch.zeros(2, BITS, dtype=torch.int64))
    seen = converge(Ticking(), TASK, batch, steps=40, tolerance=1e-6)
    assert seen.periods.tolist() == [SETTLED, MOVING]
    # Its answer, the parity of what is counted, has a period all the same.
    assert seen.answer_periods.tolist() == [SETTLED, 2]


@pytest.mark.parametrize("steps", [3, 5, 6, 23, 24, 25])
def test_few_iterations_tell_shorter_periods(steps: int) -> None:
    seen = converge(Turning(2), TASK, BATCH, steps=steps)
    assert set(seen.periods.tolist()) == {2 if steps >= 6 else MOVING}
    assert len(seen.change) == steps


def test_broken_features_are_a_class_of_their_own_and_in_no_mean() -> None:
    broken = BATCH.inputs[:, 0, 0] > 0
    seen = converge(poisoned(20), TASK, BATCH, steps=40)
    assert torch.equal(seen.periods == BROKEN, broken)
    assert torch.equal(seen.answer_periods == BROKEN, broken)
    assert seen.broken.tolist() == [0] * 20 + [int(broken.sum())] * 20
    assert seen.change.isfinite().all()
    assert seen.solved is not None
    assert torch.equal(seen.solved, ~broken)


def test_a_mean_of_nothing_is_no_number() -> None:
    ones = TASK.encode("1" * BITS)
    seen = converge(poisoned(2), TASK, ones, steps=6)
    assert seen.change[:2].isfinite().all()
    assert seen.change[2:].isnan().all()
    assert seen.headline()["last ‖Δφ‖"] == "–"


def test_the_change_is_that_of_neighbouring_thoughts() -> None:
    net, noise = two_cycle(), random_inputs(BATCH, seed=2)
    seen = converge(net, TASK, noise, steps=9, inputs="random inputs")
    before, wanted = begin(net, noise.inputs).features.double(), []
    for thought in think(net, noise.inputs, steps=9):
        now = thought.features.double()
        wanted.append(float((now - before).flatten(1).pow(2).sum(1).sqrt().mean()))
        before = now
    assert seen.change.tolist() == pytest.approx(wanted, rel=1e-5)
    assert (seen.solved, seen.inputs) == (None, "random inputs")


def test_only_a_few_states_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    import iterant.analysis.convergence as module

    most = 0

    class Watched(module._Returns):
        def see(self, now: Tensor, *, judge: bool) -> None:
            nonlocal most
            super().see(now, judge=judge)
            most = max(most, len(self.ring))

    monkeypatch.setattr(module, "_Returns", Watched)
    converge(exact_prefix_sums(), TASK, BATCH, steps=200)
    assert most == module.LONGEST


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda: converge(two_cycle(), TASK, BATCH, steps=2), "at least 3 iterations"),
        (lambda: converge(two_cycle(), TASK, BATCH, steps=-1), "got -1"),
        (lambda: converge(two_cycle(), TASK, BATCH, steps=9, tolerance=0), "above 0, got 0"),
    ],
)
def test_what_cannot_be_told_is_refused(change: Callable[[], Convergence], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        change()


def test_a_device_is_not_asked_at_every_iteration() -> None:
    batch, asked = TASK.sample(8, size=10, seed=1), []
    for steps in (40, 80):
        with Questions() as questions:
            converge(exact_prefix_sums(), TASK, batch, steps=steps)
        asked.append(questions.count)
    assert asked[0] == asked[1] > 0
