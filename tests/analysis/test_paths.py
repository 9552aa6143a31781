"""Whether all starts lead to one end, on networks of which it is known."""

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


def test_with_recall_every_start_leads_to_the_same_end() -> None:
    seen = independence(exact_prefix_sums(), TASK, BATCH, steps=30)
    for start in STARTS:
        assert seen.cosine[start].tolist() == pytest.approx([1.0] * len(BATCH))
        assert seen.agreed[start].all()
        assert seen.right[start].all()
    assert seen.relation["cosine of solved"] == pytest.approx(1)
    assert seen.relation["cosine of unsolved"] != seen.relation["cosine of unsolved"]


def test_without_recall_they_do_not() -> None:
    seen = independence(forgetting(), TASK, BATCH, steps=30)
    assert seen.right["own"].all()
    assert seen.cosine["zeros"].tolist() == [0.0] * len(BATCH)
    assert (seen.cosine["another problem"] < 0.999).all()
    assert not seen.right["another problem"].any()
    assert not seen.agreed["zeros"].any()


def test_a_cycle_remembers_how_it_began() -> None:
    seen = independence(two_cycle(), TASK, BATCH, steps=30)
    assert seen.cosine["zeros"].tolist() == pytest.approx([1.0] * len(BATCH))
    assert (seen.cosine["noise"] < 0.999).all()
    assert seen.agreed["noise"].all()


def test_broken_samples_are_counted_and_in_no_mean() -> None:
    broken = BATCH.inputs[:, 0, 0] > 0
    seen = independence(poisoned(5), TASK, BATCH, steps=30)
    assert torch.equal(seen.worst.isnan(), broken)
    assert seen.broken == int(broken.sum())
    assert seen.figures()["starts"]["zeros"]["mean cosine"] == pytest.approx(1)
    assert seen.figures()["accuracy from own start"] == float((~broken).double().mean())
    for agreed in seen.agreed.values():
        assert torch.equal(agreed, ~broken), "what is no number agrees with nothing"


def test_the_relation_to_accuracy_is_that_of_the_samples() -> None:
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
def test_a_cosine_is_that_of_the_angle_whatever_the_length(scale: float, angle: float) -> None:
    one = torch.tensor([[1.0, 0.0]]).double()
    turned = torch.tensor([angle]).double()
    other = scale * torch.stack([turned.cos(), turned.sin()], dim=1)
    assert float(cosines(one, other)) == pytest.approx(float(turned.cos()), abs=1e-9)


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [([0.0, 0.0], [0.0, 0.0], 1.0), ([0.0, 0.0], [1.0, 0.0], 0.0), ([1.0, 0.0], [-2.0, 0.0], -1.0)],
)
def test_cosines_of_nothing(one: list[float], other: list[float], wanted: float) -> None:
    def row(values: list[float]) -> Tensor:
        return torch.tensor([values])

    assert float(cosines(row(one), row(other))) == wanted
    assert cosines(row(one), row([float("nan"), 1.0])).isnan().all()


def test_one_problem_has_no_other_to_start_from() -> None:
    with pytest.raises(UsageError, match="at least 2, got 1"):
        independence(exact_prefix_sums(), TASK, BATCH[:1], steps=3)
