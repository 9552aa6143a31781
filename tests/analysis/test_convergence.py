"""Convergence of networks whose every state is known."""

from __future__ import annotations

import pytest
import torch
from asking import Questions
from exact import exact_prefix_sums, forgetting, poisoned, two_cycle
from hypothesis import given
from hypothesis import strategies as st
from thinkers import Ticking
from torch import Tensor

from iterant.analysis.convergence import (
    BROKEN,
    MOVING,
    SETTLED,
    STARTS,
    Independence,
    converge,
    cosines,
    independence,
)
from iterant.engine import begin, think
from iterant.errors import UsageError
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch

TASK, BITS = PrefixSums(), 12
BATCH = TASK.sample(7, size=BITS, seed=4)


class Turning:
    """Features cycle through ``period`` states; the answer is whether the state is 1."""

    def __init__(self, period: int) -> None:
        self.period = period

    def read(self, inputs: Tensor) -> None:
        """No recall."""

    def start(self, inputs: Tensor) -> Tensor:
        return torch.ones_like(inputs)

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return features % self.period + 1

    def answer(self, features: Tensor) -> Tensor:
        now = (features[:, 0] == 1).double()
        return torch.stack([1 - now, now], dim=1)


def test_exact_network_settles_after_as_many_iterations_as_bits() -> None:
    result = converge(exact_prefix_sums(), TASK, BATCH, steps=40)
    # One position of one channel becomes known at each iteration, and then nothing changes.
    assert result.change.tolist() == [1.0] * BITS + [0.0] * (40 - BITS)
    assert result.periods.tolist() == [SETTLED] * len(BATCH)
    assert result.answers == {"settled": 7, "cycling": 0, "moving": 0, "broken": 0}
    assert result.solved is not None
    assert result.solved.all()


def test_answers_settle_while_features_cycle() -> None:
    result = converge(two_cycle(), TASK, BATCH, steps=40)
    assert result.periods.tolist() == [2] * len(BATCH)
    assert result.features["cycling"] == len(BATCH)
    assert result.answers["settled"] == len(BATCH)
    assert result.figures()["solved"]["cycling"] == len(BATCH)
    assert result.figures()["features"]["periods"] == {"2": len(BATCH)}
    assert float(result.change[-1]) == pytest.approx(BITS**0.5)


@pytest.mark.parametrize(
    ("period", "wanted"), [(1, SETTLED), (2, 2), (3, 3), (7, 7), (8, 8), (9, MOVING)]
)
def test_shortest_period_is_found(period: int, wanted: int) -> None:
    result = converge(Turning(period), TASK, BATCH, steps=50)
    assert set(result.periods.tolist()) == {wanted}
    assert set(result.answer_periods.tolist()) == {wanted}


def test_moving() -> None:
    inputs = torch.tensor([5.0, 1000.0]).view(2, 1, 1).expand(2, 1, BITS)
    batch = type(BATCH)(inputs, torch.zeros(2, BITS, dtype=torch.int64))
    result = converge(Ticking(), TASK, batch, steps=40, tolerance=1e-6)
    assert result.periods.tolist() == [SETTLED, MOVING]
    # Its answer, the parity of what is counted, has a period all the same.
    assert result.answer_periods.tolist() == [SETTLED, 2]


@pytest.mark.parametrize("steps", [3, 5, 6, 23, 24, 25])
def test_few_iterations_find_short_periods(steps: int) -> None:
    result = converge(Turning(2), TASK, BATCH, steps=steps)
    assert set(result.periods.tolist()) == {2 if steps >= 6 else MOVING}
    assert len(result.change) == steps


def test_broken_features_are_a_class_and_left_out_of_means() -> None:
    broken = BATCH.inputs[:, 0, 0] > 0
    result = converge(poisoned(20), TASK, BATCH, steps=40)
    assert torch.equal(result.periods == BROKEN, broken)
    assert torch.equal(result.answer_periods == BROKEN, broken)
    assert result.broken.tolist() == [0] * 20 + [int(broken.sum())] * 20
    assert result.change.isfinite().all()
    assert result.solved is not None
    assert torch.equal(result.solved, ~broken)


def test_mean_of_no_samples_is_nan() -> None:
    ones = TASK.encode("1" * BITS)
    result = converge(poisoned(2), TASK, ones, steps=6)
    assert result.change[:2].isfinite().all()
    assert result.change[2:].isnan().all()
    assert result.headline()["last ‖Δφ‖"] == "–"


def test_change_between_iterations() -> None:
    net, targets = two_cycle(), torch.full_like(BATCH.targets, -1)
    generator = torch.Generator().manual_seed(2)
    noise = Batch(torch.randn(BATCH.inputs.shape, generator=generator), targets)
    result = converge(net, TASK, noise, steps=9, inputs="random inputs")
    before, wanted = begin(net, noise.inputs).features.double(), []
    for thought in think(net, noise.inputs, steps=9):
        now = thought.features.double()
        wanted.append(float((now - before).flatten(1).pow(2).sum(1).sqrt().mean()))
        before = now
    assert result.change.tolist() == pytest.approx(wanted, rel=1e-5)
    assert (result.solved, result.inputs) == (None, "random inputs")


def test_too_few_iterations() -> None:
    with pytest.raises(UsageError):
        converge(two_cycle(), TASK, BATCH, steps=2)


def test_no_device_synchronisation_per_iteration() -> None:
    batch, asked = TASK.sample(8, size=10, seed=1), []
    for steps in (40, 80):
        with Questions() as questions:
            converge(exact_prefix_sums(), TASK, batch, steps=steps)
        asked.append(questions.count)
    assert asked[0] == asked[1] > 0


def test_with_recall_all_starts_agree() -> None:
    result = independence(exact_prefix_sums(), TASK, BATCH, steps=30)
    for start in STARTS:
        assert result.cosine[start].tolist() == pytest.approx([1.0] * len(BATCH))
        assert result.agreed[start].all()
        assert result.right[start].all()
    assert result.relation["cosine of solved"] == pytest.approx(1)
    assert result.relation["cosine of unsolved"] != result.relation["cosine of unsolved"]


def test_without_recall_they_differ() -> None:
    result = independence(forgetting(), TASK, BATCH, steps=30)
    assert result.right["own"].all()
    assert result.cosine["zeros"].tolist() == [0.0] * len(BATCH)
    assert (result.cosine["another problem"] < 0.999).all()
    assert not result.right["another problem"].any()
    assert not result.agreed["zeros"].any()


def test_phase_of_a_cycle_depends_on_the_start() -> None:
    result = independence(two_cycle(), TASK, BATCH, steps=30)
    assert result.cosine["zeros"].tolist() == pytest.approx([1.0] * len(BATCH))
    assert (result.cosine["noise"] < 0.999).all()
    assert result.agreed["noise"].all()


def test_broken_samples_are_left_out_of_cosines() -> None:
    broken = BATCH.inputs[:, 0, 0] > 0
    result = independence(poisoned(5), TASK, BATCH, steps=30)
    assert torch.equal(result.worst.isnan(), broken)
    assert result.broken == int(broken.sum())
    assert result.figures()["starts"]["zeros"]["mean cosine"] == pytest.approx(1)
    assert result.figures()["accuracy from own start"] == float((~broken).double().mean())
    for agreed in result.agreed.values():
        assert torch.equal(agreed, ~broken), "what is no number agrees with nothing"


def test_relation_to_accuracy() -> None:
    worst = torch.tensor([1.0, 0.9, 0.2, 0.1]).double()
    right = torch.tensor([True, True, False, False])
    made = Independence({"zeros": worst}, {"zeros": right}, {"own": right, "zeros": right})
    relation = made.relation
    assert relation["cosine of solved"] == pytest.approx(0.95)
    assert relation["cosine of unsolved"] == pytest.approx(0.15)
    wanted = torch.corrcoef(torch.stack([worst, right.double()]))[0, 1]
    assert relation["correlation"] == pytest.approx(float(wanted))
    assert relation["correlation"] > 0.9


@given(scale=st.floats(1e-20, 1e20), angle=st.floats(0, 3.14))
def test_cosine_is_independent_of_length(scale: float, angle: float) -> None:
    one = torch.tensor([[1.0, 0.0]]).double()
    turned = torch.tensor([angle]).double()
    other = scale * torch.stack([turned.cos(), turned.sin()], dim=1)
    assert float(cosines(one, other)) == pytest.approx(float(turned.cos()), abs=1e-9)


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [([0.0, 0.0], [0.0, 0.0], 1.0), ([0.0, 0.0], [1.0, 0.0], 0.0), ([1.0, 0.0], [-2.0, 0.0], -1.0)],
)
def test_cosine_of_zero_and_nan(one: list[float], other: list[float], wanted: float) -> None:
    def row(values: list[float]) -> Tensor:
        return torch.tensor([values])

    assert float(cosines(row(one), row(other))) == wanted
    assert cosines(row(one), row([float("nan"), 1.0])).isnan().all()


def test_one_problem_is_refused() -> None:
    with pytest.raises(UsageError):
        independence(exact_prefix_sums(), TASK, BATCH[:1], steps=3)
