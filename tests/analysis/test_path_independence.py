"""Path independence of networks for which it is known."""

from __future__ import annotations

import pytest
import torch
from exact import exact_prefix_sums, forgetting, poisoned, two_cycle
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from iterant.analysis.path_independence import STARTS, Independence, cosines, independence
from iterant.errors import UsageError
from iterant.tasks.prefix_sums import PrefixSums

TASK, BITS = PrefixSums(), 12
BATCH = TASK.sample(8, size=BITS, seed=4)


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


def test_broken_samples_are_left_out_of_means() -> None:
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
