"""Fused, CUDA-graph and sparse unrolls equal the eager one.

On the CPU a fake graph runs the work again; `iterant bench train` compares real ones on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from small_networks import small_batch, small_net
from torch import Tensor, nn
from torch.nn import functional

import iterant
from iterant.engine import State
from iterant.nets import LocalRule, build
from iterant.nets.fast import fused
from iterant.nets.from_recipe import build_network
from iterant.rng import StepRng
from iterant.tasks.protocol import Batch
from iterant.training import cuda_graphs as captured
from iterant.training.cuda_graphs import GraphUnroll
from iterant.training.objectives import (
    Criterion,
    Loss,
    Segment,
    StepResult,
    Unroll,
    build_objective,
)
from iterant.training.recipe import Recipe
from iterant.training.recipe import recipe as named_recipe
from iterant.training.trainer import Trainer


class FakeGraph:
    """Runs the work again and writes its results to the same tensors."""

    def __init__(self, work: Callable[[], StepResult | None]) -> None:
        self.work, self.result = work, work()
        if self.result is not None:
            copies = [State(state.features.clone(), state.step) for state in self.result.states]
            self.result = StepResult(self.result.loss.clone(), copies)

    def replay(self) -> None:
        new = self.work()
        if new is not None and self.result is not None:
            self.result.loss.copy_(new.loss)
            for old, state in zip(self.result.states, new.states, strict=True):
                old.features.copy_(state.features)


class FakeGraphUnroll(GraphUnroll):
    """GraphUnroll with fake graphs."""

    captures = 0

    def _capture(self, kind: object, work: Any) -> Any:
        self.captures += 1
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        changed = [self._buffers["features"], *gradients]
        before = [tensor.clone() for tensor in changed]
        graph = FakeGraph(work)
        torch._foreach_copy_(changed, before)
        return graph, graph.result


@pytest.fixture(autouse=True)
def _no_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured, "_CUDA", SimpleNamespace(Stream=object))


def unroll_of(variant: str, kind: str) -> tuple[Unroll, nn.Module]:
    net = small_net("mazes", variant)
    assert isinstance(net, nn.Module)
    for weight in net.parameters():
        weight.grad = torch.zeros_like(weight)
    if kind == "plain":
        return Unroll(net), net
    return FakeGraphUnroll(fused(net), net), net


OBJECTIVES: dict[str, dict[str, Any]] = {
    "alpha 0": {"alpha": 0.0},
    "alpha 0.3": {"alpha": 0.3},
    "alpha 1": {"alpha": 1.0},
    "n = 0": {"objective": "progressive-n0", "alpha": 0.5},
    "run-time weighted": {"objective": "run-time-weighted", "iterations": 5},
    "pool": {"objective": "pool", "pool_slots": 8, "pool_new_fraction": 0.5,
             "pool_corrupt_fraction": 0.5, "pool_shortest": 2, "pool_longest": 5},
}  # fmt: skip


def losses_and_gradients(unroll: Unroll, net: nn.Module, name: str, batch: Batch) -> Tensor:
    """(steps, 1 + parameters): the loss and all gradients of several steps."""
    objective = build_objective(Recipe(**{"batch_size": 4, "iterations": 6, **OBJECTIVES[name]}))
    seen = []
    for number in range(8):
        nn.Module.zero_grad(net, set_to_none=False)
        rows = torch.arange(objective.new_problems) + number % (
            len(batch) - objective.new_problems + 1
        )
        loss = objective.run(unroll, batch.inputs[rows], batch.targets[rows], StepRng(0, number))
        gradients = [weight.grad for weight in net.parameters() if weight.grad is not None]
        seen.append(torch.cat([loss.view(1), *[g.flatten() for g in gradients]]))
    return torch.stack(seen)


RECURRENT = [
    (name, variant) for name in OBJECTIVES for variant in ("dt", "dt-recall", "local-rule")
]
FIXED_DEPTH = [(name, "ff-recall") for name in OBJECTIVES if name != "pool"]


@pytest.mark.parametrize(("name", "variant"), RECURRENT + FIXED_DEPTH)
def test_graph_gradients_equal_eager_ones(name: str, variant: str) -> None:
    batch = small_batch("mazes")
    eager, graphs = (
        losses_and_gradients(*unroll_of(variant, kind), name, batch)
        for kind in ("plain", "captured")
    )
    assert eager.abs().max() > 0
    assert (eager - graphs).abs().max() < 1e-12


@pytest.mark.parametrize(
    ("variant", "captures"), [("dt-recall", 2), ("local-rule", 2), ("ff-recall", 4)]
)
def test_a_segment_length_is_captured_once(variant: str, captures: int) -> None:
    """Wherever it begins, unless iterations differ."""
    batch = small_batch("mazes")
    unroll, net = unroll_of(variant, "captured")
    assert isinstance(unroll, FakeGraphUnroll)
    features: Tensor = net.start(batch.inputs).detach()  # type: ignore[operator]
    for steps, first in ((3, 0), (2, 0), (3, 4), (3, 0), (2, 5)):
        state = State(features, first) if first else None
        unroll.forward_backward(batch.inputs, batch.targets, Segment(steps), state=state)
    assert unroll.captures == captures


MAZES: dict[str, object] = {
    "dims": 2, "channels": 3, "stem": 2, "masked": True, "readout": "argmax-open",
}  # fmt: skip
RULES: dict[str, dict[str, object]] = {
    "mazes": MAZES,
    "mazes, no mask": {**MAZES, "masked": False},
    "sums": {"dims": 1, "channels": 1, "width": 8, "hidden": 6, "classes": 3},
}


def rule(name: str) -> LocalRule:
    net = build("local-rule", {"messages": True, "width": 12, "hidden": 15, **RULES[name]}, seed=4)
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
    net: LocalRule, batch: Batch, segment: Segment, noisy: bool, criterion: Criterion, sparse: bool
) -> tuple[StepResult, list[Tensor]]:
    net.zero_grad()
    features = net.start(batch.inputs)
    noise = torch.randn(features.shape, generator=torch.Generator().manual_seed(1)).double()
    # Noise and corrupted states on walls must not matter to a masked rule.
    shake = 0.4 * noise.flip(0) if noisy else None
    state = State(noise.tanh(), 4)
    restart = torch.tensor([True, False, False])
    result = Unroll(net, criterion, sparse=sparse).forward_backward(
        batch.inputs, batch.targets, segment, state=state, restart=restart, noise=shake
    )
    return result, [w.grad.clone() for w in net.parameters() if w.grad is not None]


def assert_same_results(
    net: LocalRule, batch: Batch, segment: Segment, noisy: bool = False, loss: Loss | None = None
) -> None:
    criterion = Criterion(0.2, loss=loss)
    plain, theirs = forward_backward(net, batch, segment, noisy, criterion, sparse=False)
    sparse, ours = forward_backward(net, batch, segment, noisy, criterion, sparse=True)
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
        Segment(3, all_states=True),
        Segment(3, weights=(0.5,) * 3),
        Segment(3, weights=(0.1, 0.3, 0.6)),
    ],
)
def test_losses_gradients_and_states_equal_the_eager_unroll(
    name: str, segment: Segment, noisy: bool
) -> None:
    assert_same_results(rule(name), problems(name), segment, noisy)


def test_a_user_defined_loss_gets_the_logits_of_walls() -> None:
    assert_same_results(rule("mazes"), problems("mazes"), Segment(3), loss=functional.cross_entropy)


def test_cells_at_the_edge_cover_fewer_pixels() -> None:
    net = rule("mazes, no mask")
    inputs = torch.rand(3, 3, 6, 6, generator=torch.Generator().manual_seed(2)).double()
    batch = Batch(inputs, torch.randint(2, (3, 6, 6), generator=torch.Generator().manual_seed(3)))
    assert_same_results(net, batch, Segment(2))


@pytest.mark.parametrize(("word", "sparse"), [("mazes", True), ("prefix-sums", False)])
def test_which_best_recipes_train_on_messages_alone(word: str, sparse: bool) -> None:
    recipe, spec = named_recipe("best", word), iterant.task(word).spec
    net, _ = build_network(recipe.described(), spec, 3)
    assert Trainer(net, recipe, torch.device("cpu")).unroll.sparse is sparse
