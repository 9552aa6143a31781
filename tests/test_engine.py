"""Laws of `think`, on every network and every task."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_networks import PAIRS, Ticking, small_batch, small_net
from torch import Tensor

from iterant.engine import After, State, last, think
from iterant.errors import NetError


@pytest.mark.parametrize(("problem", "variant"), PAIRS)
def test_four_steps_then_six_equal_ten(problem: str, variant: str) -> None:
    net, batch = small_net(problem, variant), small_batch(problem)
    x = batch.inputs
    with torch.no_grad():
        thoughts = list(think(net, x, steps=10))
        four = last(think(net, x, steps=4))
        resumed = last(think(net, x, steps=6, state=four.state))
        single = torch.cat([last(think(net, x[i : i + 1], steps=10)).logits for i in range(len(x))])
    assert [thought.step for thought in thoughts] == list(range(1, 11))
    assert (four.step, resumed.step) == (4, 10)
    assert torch.equal(thoughts[-1].features, resumed.features)
    assert torch.equal(thoughts[-1].logits, resumed.logits)
    # A batch equals its samples one by one, and answers in the shape of the targets.
    assert (thoughts[-1].logits - single).abs().max() < 1e-12
    assert resumed.prediction.shape == batch.targets.shape
    assert resumed.prediction.dtype == torch.int64


def test_logits_are_computed_when_read() -> None:
    net, x = Ticking(), torch.full((2, 1, 3), 9.0)
    thoughts = list(think(net, x, steps=5))
    assert (net.answers, net.reads) == (0, 1)
    assert thoughts[-1].prediction.tolist() == [[1, 1, 1]] * 2
    assert thoughts[-1].logits is thoughts[-1].logits
    assert net.answers == 1


def test_gradients_are_kept_in_training_mode_or_when_asked_for() -> None:
    net: Any = small_net("mazes", "dt-recall")
    x = small_batch("mazes").inputs
    thought = last(think(net, x, steps=1))
    assert thought.logits.requires_grad
    assert not thought.state.detached().features.requires_grad
    assert not last(think(net, x, steps=1, grad=False)).logits.requires_grad
    with torch.no_grad():
        assert not last(think(net, x, steps=1, grad=True)).logits.requires_grad
    net.eval()
    thoughts = think(net, x, steps=2)
    thought = next(thoughts)
    assert torch.is_grad_enabled(), "between two iterations as outside"
    assert not thought.features.requires_grad
    assert not thought.logits.requires_grad
    # Gradients of the inputs or the state are asked for by these.
    state = State(thought.features.clone().requires_grad_(), 1)
    for asked in (
        think(net, x, steps=2, grad=True),
        think(net, x.clone().requires_grad_(), steps=1),
        think(net, x, steps=1, state=state),
    ):
        assert last(asked).logits.requires_grad


def test_interventions_happen_between_iterations() -> None:
    net, x = Ticking(), torch.full((2, 1, 3), 9.0)
    zeroed = After(3, features=torch.zeros_like)
    for interventions in (zeroed, [zeroed]):
        thoughts = think(net, x, steps=5, intervene=interventions)
        assert [one.features[0, 0, 0].item() for one in thoughts] == [1, 2, 3, 1, 2]


def test_an_intervention_on_the_input_is_read_anew() -> None:
    net, x = Ticking(), torch.full((2, 1, 3), 2.0)
    longer = After(4, inputs=lambda inputs: inputs + 1)
    thoughts = list(think(net, x, steps=6, intervene=[longer]))
    assert [thought.features[0, 0, 0].item() for thought in thoughts] == [1, 2, 2, 2, 3, 3]
    assert net.reads == 2
    assert thoughts[3].inputs is x
    assert thoughts[4].inputs[0, 0, 0] == 3


GOOD = torch.zeros(2, 3, 8, 8, dtype=torch.float64)


@pytest.mark.parametrize(
    ("inputs", "steps", "text"),
    [
        (GOOD, -1, "0 or more, got -1"),
        (GOOD, 2.5, "0 or more, got 2.5"),
        (GOOD.long(), 1, r"got torch.int64; .* inputs.float"),
        (GOOD[0], 1, r"got \(3, 8, 8\)"),
        (GOOD[:, :2], 1, r"got \(2, 2, 8, 8\)"),
        (GOOD[:0], 1, r"got \(0, 3, 8, 8\)"),
        (GOOD.numpy(), 1, "torch.from_numpy"),
        (GOOD.float(), 1, "computes in torch.float64"),
        (GOOD.to("meta"), 1, "the inputs are .* on meta"),
        (GOOD.index_fill(2, torch.tensor(3), torch.nan), 1, r"finite, got nan at \[0, 0, 3, 0\]"),
        (GOOD - torch.inf, 1, "finite, got -inf at"),
    ],
)
def test_wrong_inputs_and_steps(inputs: Tensor, steps: int, text: str) -> None:
    net = small_net("mazes", "dt-recall")
    with pytest.raises(NetError, match=text) as caught:
        think(net, inputs, steps=steps)
    assert "\n" not in str(caught.value)


def test_the_depth_of_a_feed_forward_network() -> None:
    net = small_net("mazes", "ff")
    with pytest.raises(NetError, match="has 12 iterations, asked for iteration 13"):
        think(net, GOOD, steps=13)
    with pytest.raises(NetError, match="ask for at most 2 more"):
        think(net, GOOD, steps=3, state=State(net.start(GOOD), 10))


def test_last_of_an_empty_iterator_and_negative_steps() -> None:
    with pytest.raises(NetError, match="was empty"):
        last([])
    with pytest.raises(NetError, match="was empty"):
        last(think(Ticking(), torch.ones(1, 1, 3), steps=0))
    wrong: list[Any] = [-1, 2.5]  # after 2.5 iterations nothing would ever happen
    for step in wrong:
        with pytest.raises(NetError, match=f"of 0 or more, got {step}"):
            After(step)


def test_a_state_of_another_batch() -> None:
    net, x = small_net("prefix-sums", "dt-recall"), small_batch("prefix-sums").inputs
    state = State(net.start(x))
    with pytest.raises(NetError, match="holds 4 samples, the inputs 1"):
        think(net, x[:1], steps=1, state=state)
