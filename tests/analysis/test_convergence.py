"""Convergence and path independence of networks whose every state is known."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from exact_networks import exact_prefix_sums, forgetting, poisoned, two_cycle
from small_networks import Ticking
from torch import Tensor

from iterant.analysis import Result, Trial, interventions
from iterant.analysis.convergence import compare_starts, converge, converge_on_noise, cosines
from iterant.analysis.interventions import gaussian
from iterant.nets.protocol import Net
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch

TASK, BITS = PrefixSums(), 12
BATCH = TASK.sample(7, size=BITS, seed=4)
BROKEN = BATCH.inputs[:, 0, 0] > 0
"""Of `poisoned`: strings that begin with 1."""


def trial(net: Net, steps: int, batch: Batch = BATCH, **more: Any) -> Trial:
    return Trial("convergence", net, TASK, batch, steps, **more)


def counts(result: Result, what: str = "features") -> dict[str, Any]:
    """The classes that have samples."""
    return {word: count for word, count in result.figures[what].items() if count}


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
    result = converge(trial(exact_prefix_sums(), 40))
    # One position of one channel becomes known at each iteration, and then nothing changes.
    assert result.figures["mean change"] == [1.0] * BITS + [0.0] * (40 - BITS)
    for what in ("features", "answers", "solved"):
        assert counts(result, what) == {"settled": 7}


def test_answers_settle_while_features_cycle() -> None:
    result = converge(trial(two_cycle(), 40))
    assert counts(result) == {"cycling": 7, "periods": {"2": 7}}
    assert counts(result, "answers") == {"settled": 7}
    assert counts(result, "solved") == {"cycling": 7}
    assert result.figures["mean change"][-1] == pytest.approx(BITS**0.5)


@pytest.mark.parametrize("steps", [5, 6, 23, 24, 50])
@pytest.mark.parametrize("period", [1, 2, 3, 8, 9])
def test_shortest_period_is_found(period: int, steps: int) -> None:
    """Up to 8, or a third of the iterations."""
    result = converge(trial(Turning(period), steps))
    seen = {"cycling": 7, "periods": {str(period): 7}} if period > 1 else {"settled": 7}
    wanted = seen if period <= min(8, steps // 3) else {"moving": 7}
    assert counts(result) == wanted
    if steps == 50:  # in fewer, an answer may look settled
        assert counts(result, "answers") == wanted
    assert len(result.figures["mean change"]) == steps


def test_moving() -> None:
    inputs = torch.tensor([5.0, 1000.0]).view(2, 1, 1).expand(2, 1, BITS)
    batch = Batch(inputs, torch.zeros(2, BITS, dtype=torch.int64))
    result = converge(trial(Ticking(), 40, batch, tolerance=1e-6))
    assert counts(result) == {"settled": 1, "moving": 1}
    # Its answer, the parity of what is counted, has a period all the same.
    assert counts(result, "answers") == {"settled": 1, "cycling": 1, "periods": {"2": 1}}


def test_broken_features_are_a_class_and_left_out_of_means() -> None:
    count = int(BROKEN.sum())
    result = converge(trial(poisoned(20), 40))
    assert counts(result) == counts(result, "answers") == {"broken": count, "settled": 7 - count}
    assert counts(result, "solved") == {"settled": 7 - count}
    assert result.figures["broken"] == [0] * 20 + [count] * 20
    assert torch.tensor(result.figures["mean change"]).isfinite().all()
    ones = converge(trial(poisoned(2), 6, TASK.encode("1" * BITS)))
    assert torch.tensor(ones.figures["mean change"]).isnan().tolist() == [False] * 2 + [True] * 4


def test_random_inputs() -> None:
    result = converge_on_noise(trial(Ticking(), 9, seed=2))
    inputs = gaussian(BATCH.inputs, 2, "random inputs")  # features count up to them
    first = inputs.clamp(max=1).flatten(1).norm(dim=1).mean()
    assert result.figures["mean change"][0] == pytest.approx(float(first), rel=1e-5)
    assert (result.figures["solved"], result.figures["inputs"]) == (None, "random inputs")


# Path independence


def starts(net: Net) -> dict[str, Any]:
    result = compare_starts(trial(net, 30))
    assert list(result.figures["starts"]) == ["zeros", "noise", "another problem"]
    return {**result.figures, "plot": result.plots[0][1]}


@pytest.mark.parametrize("positions", [1 << 20, 1])
def test_with_recall_all_starts_agree(positions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In small parts too: each has another problem to start from."""
    monkeypatch.setattr(interventions, "POSITIONS_AT_ONCE", positions)
    figures = starts(exact_prefix_sums())
    for start in figures["starts"].values():
        assert start["cosine"] == pytest.approx([1.0] * 7)
        assert (start["same answer"], start["accuracy"]) == (1, 1)
    relation = figures["relation to accuracy"]
    assert relation["cosine of solved"] == pytest.approx(1)
    assert relation["cosine of unsolved"] != relation["cosine of unsolved"], "there are none"


def test_without_recall_they_differ() -> None:
    figures = starts(forgetting())
    assert figures["accuracy from own start"] == 1
    zeros, other = figures["starts"]["zeros"], figures["starts"]["another problem"]
    assert (zeros["cosine"], zeros["same answer"]) == ([0.0] * 7, 0)
    assert max(other["cosine"]) < 0.999
    assert other["accuracy"] == 0


def test_phase_of_a_cycle_depends_on_the_start() -> None:
    result = starts(two_cycle())
    figures = result["starts"]
    assert figures["zeros"]["cosine"] == pytest.approx([1.0] * 7)
    assert max(figures["noise"]["cosine"]) < 0.999
    assert figures["noise"]["same answer"] == 1
    # The worst start of each problem counts.
    worst = [min(cosines) for cosines in zip(*(s["cosine"] for s in figures.values()), strict=True)]
    mean = result["relation to accuracy"]["cosine of solved"]
    assert mean == pytest.approx(sum(worst) / 7)
    assert result["plot"].y == pytest.approx(sorted(worst))
    assert result["plot"].x == pytest.approx([100 * rank / 7 for rank in range(1, 8)])


def test_broken_samples_are_left_out_of_cosines() -> None:
    figures, fine = starts(poisoned(5)), float((~BROKEN).double().mean())
    assert (figures["broken"], figures["accuracy from own start"]) == (int(BROKEN.sum()), fine)
    for start in figures["starts"].values():
        assert torch.equal(torch.tensor(start["cosine"]).isnan(), BROKEN)
        assert start["mean cosine"] == pytest.approx(1)
        assert start["same answer"] == fine, "NaN agrees with nothing"


def test_relation_to_accuracy() -> None:
    class Half(type(forgetting())):  # type: ignore[misc]
        """Recalls the problem only of strings that begin with 1; others answer wrongly."""

        def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
            stepped = super().step(features, memory, index)
            return torch.where(BROKEN[:, None, None], stepped, features)

    figures = compare_starts(trial(Half(), 30)).figures
    cosine = torch.tensor([start["cosine"] for start in figures["starts"].values()]).amin(dim=0)
    relation = figures["relation to accuracy"]
    assert figures["accuracy from own start"] == float(BROKEN.double().mean())
    assert relation["cosine of solved"] == pytest.approx(float(cosine[BROKEN].mean()))
    assert relation["cosine of unsolved"] == pytest.approx(float(cosine[~BROKEN].mean()))
    wanted = torch.corrcoef(torch.stack([cosine, BROKEN.float()]))[0, 1]
    assert relation["correlation"] == pytest.approx(float(wanted), rel=1e-4)
    assert relation["correlation"] > 0.5


def test_cosine_of_small_zero_and_nan_features() -> None:
    zero, one, nan = torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]), torch.full((1, 2), torch.nan)
    assert [float(cosines(zero, other)) for other in (zero, one)] == [1, 0]
    assert float(cosines(one, -1e-20 * one)) == pytest.approx(-1)
    assert cosines(one, nan).isnan().all()
