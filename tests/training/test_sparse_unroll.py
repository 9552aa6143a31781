"""Training on active cells only equals training on all cells."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import iterant
from iterant.engine import State
from iterant.nets import LocalRule, build
from iterant.tasks.protocol import Batch
from iterant.training.objectives import Criterion, Segment
from iterant.training.recipe import recipe as named_recipe
from iterant.training.trainer import Trainer, build_network
from iterant.training.unroll import SparseUnroll, StepResult, Unroll

MAZES: dict[str, object] = {
    "dims": 2, "channels": 3, "stem": 2, "masked": True, "readout": "argmax-open",
}  # fmt: skip
SUMS: dict[str, object] = {"dims": 1, "channels": 1, "isotropic": False}
MESSAGES: dict[str, object] = {"messages": True, "width": 12, "hidden": 15}
RULES: dict[str, dict[str, object]] = {
    "mazes": MAZES,
    "directions": {**MAZES, "isotropic": False},
    "messages": {**MAZES, **MESSAGES},
    "messages by direction": {**MAZES, **MESSAGES, "isotropic": False, "width": 6, "hidden": 5},
    "messages, no mask": {**MAZES, **MESSAGES, "masked": False},
    "no mask": {**MAZES, "masked": False},
    "sums": SUMS,
    "sums, isotropic": {**SUMS, "isotropic": True},
    "sums, three classes": {**SUMS, "classes": 3},
    "sums, messages": {**SUMS, **MESSAGES, "isotropic": True, "width": 8, "hidden": 6,
                       "classes": 3},
}  # fmt: skip


def rule(name: str) -> LocalRule:
    net = build("local-rule", {"width": 5, "hidden": 7, **RULES[name]}, seed=4)
    assert isinstance(net, LocalRule)
    return net.double()


def problems(name: str) -> Batch:
    sums = name.startswith("sums")
    task = iterant.task("prefix-sums" if sums else "mazes")
    batch = task.sample(3, size=8 if sums else 5, seed=3)
    classes = rule(name).config.classes
    # With three classes, all of them occur.
    targets = batch.targets if classes == 2 else batch.targets.cumsum(-1) % classes
    return Batch(batch.inputs.double(), targets)


def forward_backward(
    unroll: Unroll, batch: Batch, segment: Segment, noisy: bool
) -> tuple[StepResult, list[Tensor]]:
    assert isinstance(unroll.net, nn.Module)
    unroll.net.zero_grad()
    features = unroll.net.start(batch.inputs)
    noise = torch.randn(features.shape, generator=torch.Generator().manual_seed(1)).double()
    memory = unroll.net.read(batch.inputs)
    assert memory is not None
    # Noise and corrupted states on walls must not matter to a masked rule. Only the penalty on
    # change would see them vanish.
    shake = 0.4 * noise.flip(0) if noisy else None
    state = State(noise.tanh() * (memory.detach()[:, -1:] if segment.settle else 1), 4)
    restart = torch.tensor([True, False, False])
    made = unroll.forward_backward(
        batch.inputs, batch.targets, segment, state=state, restart=restart, noise=shake
    )
    return made, [w.grad.clone() for w in unroll.net.parameters() if w.grad is not None]


def assert_same_results(
    net: LocalRule, batch: Batch, segment: Segment, noisy: bool = False
) -> None:
    plain, theirs = forward_backward(Unroll(net, Criterion(0.2)), batch, segment, noisy)
    sparse, ours = forward_backward(SparseUnroll(net, Criterion(0.2)), batch, segment, noisy)
    torch.testing.assert_close(sparse.loss, plain.loss, rtol=1e-12, atol=1e-12)
    assert len(ours) == len(theirs) == 7
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-11, atol=1e-13)
    for here, there in zip(sparse.states, plain.states, strict=True):
        assert here.step == there.step
        torch.testing.assert_close(here.features, there.features, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize(
    "segment",
    [
        Segment(3, path=True),
        Segment(3, weights=(0.5,) * 3, settle=0.5),
        Segment(3, weights=(0.1, 0.3, 0.6)),
    ],
)
def test_losses_gradients_and_states_equal_the_eager_unroll(
    name: str, segment: Segment, noisy: bool
) -> None:
    assert_same_results(rule(name), problems(name), segment, noisy)


def test_cells_at_the_edge_cover_fewer_pixels() -> None:
    net = rule("no mask")
    inputs = torch.rand(3, 3, 6, 6, generator=torch.Generator().manual_seed(2)).double()
    batch = Batch(inputs, torch.randint(2, (3, 6, 6), generator=torch.Generator().manual_seed(3)))
    assert_same_results(net, batch, Segment(2))


@pytest.mark.parametrize("word", ["mazes", "prefix-sums"])
def test_the_best_recipes_train_on_active_cells(word: str) -> None:
    recipe, spec = named_recipe("best", word), iterant.task(word).spec
    net, _ = build_network(recipe, spec, 3)
    assert type(Trainer(net, recipe, torch.device("cpu")).unroll) is SparseUnroll
