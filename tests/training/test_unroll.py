"""Fused and CUDA-graph unrolls equal the eager one.

On the CPU a fake graph runs the work again; `iterant bench train` compares real ones on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from thinkers import small_batch, small_net
from torch import Tensor, nn

from iterant.engine import State, last, think
from iterant.nets import DeepThinking
from iterant.nets.fast.deep_thinking import Fused, can_fuse
from iterant.nets.fast.hopper import FusedStrings
from iterant.rng import StepRng
from iterant.tasks.protocol import Batch
from iterant.training import cuda_graphs as captured
from iterant.training.cuda_graphs import GraphUnroll
from iterant.training.objectives import Segment, build_objective
from iterant.training.recipe import Recipe
from iterant.training.unroll import StepResult, Unroll, run_segment


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
    class Cuda:
        Stream = object

    monkeypatch.setattr(captured, "_CUDA", Cuda)


def unroll_of(variant: str, kind: str) -> tuple[Unroll, nn.Module]:
    net = small_net("mazes", variant)
    assert isinstance(net, nn.Module)
    for weight in net.parameters():
        weight.grad = torch.zeros_like(weight)
    if kind == "plain":
        return Unroll(net), net
    return FakeGraphUnroll(Fused(net) if can_fuse(net) else net, net), net


OBJECTIVES: dict[str, dict[str, Any]] = {
    "alpha 0": {"alpha": 0.0},
    "alpha 0.3": {"alpha": 0.3},
    "alpha 1": {"alpha": 1.0},
    "n = 0": {"objective": "progressive-n0", "alpha": 0.5},
    "run-time weighted": {"objective": "run-time-weighted", "iterations": 5},
    "pool": {"objective": "pool", "pool_slots": 8, "pool_fresh": 0.5, "pool_damage": 0.5,
             "pool_shortest": 2, "pool_longest": 5},
}  # fmt: skip


def losses_and_gradients(unroll: Unroll, net: nn.Module, name: str, batch: Batch) -> Tensor:
    """(steps, 1 + parameters): the loss and all gradients of several steps."""
    objective = build_objective(Recipe(**{"batch": 4, "iterations": 6, **OBJECTIVES[name]}))
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


RECURRENT = [(name, variant) for name in OBJECTIVES for variant in ("dt", "dt-recall")]
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


@pytest.mark.parametrize("steps", [0, 1, 5, 13])
def test_graph_prefix_from_the_start_and_from_a_state(steps: int) -> None:
    x = small_batch("mazes").inputs
    plain, _ = unroll_of("dt-recall", "plain")
    fast, _ = unroll_of("dt-recall", "captured")
    wanted, got = plain.forward_no_grad(x, None, steps), fast.forward_no_grad(x, None, steps)
    assert got.step == wanted.step == steps
    assert (got.features - wanted.features).abs().max() < 1e-12
    further = fast.forward_no_grad(x, State(wanted.features + 1, 3), 2)
    expected = plain.forward_no_grad(x, State(wanted.features + 1, 3), 2)
    assert further.step == expected.step == 5
    assert (further.features - expected.features).abs().max() < 1e-12


def test_a_segment_length_is_captured_once() -> None:
    batch = small_batch("mazes")
    unroll, _ = unroll_of("dt-recall", "captured")
    assert isinstance(unroll, FakeGraphUnroll)
    for steps in (3, 2, 3, 3, 2):
        unroll.forward_backward(batch.inputs, batch.targets, Segment(steps))
    assert unroll.captures == 2


def plain_net(variant: str) -> DeepThinking:
    net = small_net("prefix-sums", variant)
    assert isinstance(net, DeepThinking)
    return net


@pytest.mark.parametrize("variant", ["dt", "dt-recall"])
@pytest.mark.parametrize("name", ["alpha 0.3", "alpha 1", "run-time weighted", "pool"])
def test_fused_gradients_equal_eager_ones(name: str, variant: str) -> None:
    results = []
    for fuse in (False, True):
        net = plain_net(variant)
        for weight in net.parameters():
            weight.grad = torch.zeros_like(weight)
        unroll = Unroll(FusedStrings(net) if fuse else net)
        batch = small_batch("prefix-sums")
        results.append(losses_and_gradients(unroll, net, name, batch))
    assert results[0].abs().max() > 0
    assert (results[0] - results[1]).abs().max() < 1e-11


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("learning", [False, True])
def test_iterate_equals_think(steps: int, learning: bool) -> None:
    x, net = small_batch("prefix-sums").inputs, plain_net("dt-recall")
    fast = FusedStrings(net)
    with torch.set_grad_enabled(learning):
        begun = State(net.start(x), 3)
        wanted = list(think(net, x, steps=steps, state=begun))
        got = list(run_segment(fast, x, steps=steps, state=begun))
        end = last(run_segment(fast, x, steps=steps))
    assert [t.step for t in got] == [t.step for t in wanted][0 if learning else -1 :]
    for mine, theirs in zip(reversed(got), reversed(wanted), strict=False):
        assert (mine.features - theirs.features).abs().max() < 1e-12
        assert (mine.logits - theirs.logits).abs().max() < 1e-12
    assert end.step == steps
