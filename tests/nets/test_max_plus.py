"""Distances and pointers: one fixed point from any state, shortest paths."""

from __future__ import annotations

import pytest
import torch

import iterant
from iterant.engine import After, last, think
from iterant.halting import ExactRest
from iterant.nets import MaxPlus, MaxPlusConfig, build
from iterant.nets.fast import SparseMaxPlus
from iterant.nets.local_rule import bias_of
from iterant.nets.max_plus import UNIT
from iterant.tasks.mazes.grid import distances, from_image

KINDS = ["start=any,walls=0.3", "start=any,p=0.2", "start=any"]


def network(seed: int = 0) -> MaxPlus:
    net = build("max-plus", {"dims": 2, "channels": 3, "stem": 2, "readout": "argmax-open"}, seed)
    assert isinstance(net, MaxPlus)
    return net.eval()


def solver() -> MaxPlus:
    """Weights set by hand: marks run from the start down the distance to the end."""
    config = MaxPlusConfig(2, 3, width=2, hidden=2, stem=2, readout="argmax-open")
    net = build("max-plus", config)
    assert isinstance(net, MaxPlus)
    net.eval()
    with torch.no_grad():
        net.source.copy_(torch.tensor([1.0, -1.0, -1.0]))  # the end is red
        net.decay.fill_(0.0)
        net.attention.fill_(5.0)
        # Up, down, left, right, the cell itself: among equals down, left, right, up.
        net.direction.copy_(torch.tensor([0.0, 3.0, 2.0, 1.0, 0.0]))
        net.mark.copy_(torch.tensor([-1.0, 1.0, -1.0]))  # the start is green
        net.head.weight[:, 0, 0, 0] = torch.tensor([-1.0, 1.0])
        bias_of(net.head).copy_(torch.tensor([0.5, -0.5]))
    return net


@pytest.mark.parametrize("kind", KINDS)
def test_it_can_express_shortest_paths_with_their_order_of_ties(kind: str) -> None:
    task = iterant.task("mazes", problems=kind)
    batch = task.sample(30, size=17, seed=3)
    answer = iterant.solve(solver(), batch.inputs, max_steps=1000)
    assert bool(answer.settled.all())
    assert bool(task.solved(answer.prediction, batch).all())


def test_distances_are_those_from_the_source() -> None:
    batch = iterant.task("mazes", problems="start=any,p=0.3").sample(5, size=15, seed=1)
    net = solver()
    features = last(think(net, batch.inputs, steps=200)).features
    steps = torch.from_numpy(distances(from_image(batch.inputs)))  # to the end, -1: wall
    inner = features[:, 0, 2:-2, 2:-2] / UNIT / net.growth[0].item()
    torch.testing.assert_close(inner[steps >= 0], steps[steps >= 0].float())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_distances_are_the_same_from_any_state(seed: int, kind: str) -> None:
    """With random weights, also in cells that no source can reach."""
    batch = iterant.task("mazes", problems=kind).sample(4, size=9, seed=seed)
    net = network(seed)
    distances = slice(0, net.config.width)
    noise = After(5, features=lambda x: torch.randn(x.shape, generator=torch.Generator()))
    undisturbed = last(think(net, batch.inputs, steps=120)).features
    disturbed = last(think(net, batch.inputs, steps=120, intervene=noise)).features
    assert torch.equal(disturbed[:, distances], undisturbed[:, distances])


def test_a_region_that_is_cut_off_comes_to_rest() -> None:
    """Its distances, which only refer to each other, grow and are then dropped."""
    task = iterant.task("mazes", problems="start=any,p=0.3")
    batch = task.sample(6, size=13, seed=4)
    walled = batch.inputs.clone()
    walled[:, :, 11:13] = 0.0  # a row of cells
    shut = After(80, inputs=lambda _: walled)
    rested = last(think(solver(), batch.inputs, steps=400, intervene=shut)).features
    assert torch.equal(rested[:, 0], last(think(solver(), walled, steps=400)).features[:, 0])


@pytest.mark.parametrize("kind", ["start=any,p=0.2", "start=any"])
def test_a_solver_recovers_from_noise_zeros_and_other_states(kind: str) -> None:
    task = iterant.task("mazes", problems=kind)
    batch = task.sample(10, size=13, seed=2)
    noise = torch.randn(10, 12, 17, 17, generator=torch.Generator().manual_seed(0))
    for change in (torch.zeros_like, noise.view_as, lambda x: x.flip(0)):
        moved = After(60, features=change)
        prediction = last(think(solver(), batch.inputs, steps=400, intervene=moved)).prediction
        assert bool(task.solved(prediction, batch).all())


@pytest.mark.parametrize("reuse", [False, True])
def test_every_iteration_of_the_sparse_form_is_that_of_the_network(reuse: bool) -> None:
    # In float64: rounding decides which side has the highest score at the edge of what is reached.
    net, task = network(3).double(), iterant.task("mazes", problems="start=any,p=0.2")
    inputs = task.sample(4, size=11, seed=1).inputs.double()
    inputs[2] = 0  # all wall
    fill = After(20, features=lambda x: torch.full_like(x, 1.5))
    plain = think(net, inputs, steps=60, intervene=fill, grad=False)
    sparse = think(SparseMaxPlus(net, reuse=reuse), inputs, steps=60, intervene=fill, grad=False)
    for one, other in zip(plain, sparse, strict=True):
        torch.testing.assert_close(other.logits, one.logits)


@pytest.mark.parametrize("dims", [1, 2])
def test_every_parameter_gets_a_gradient(dims: int) -> None:
    net = build("max-plus", {"dims": dims, "channels": 3}, seed=1)
    assert isinstance(net, MaxPlus)
    inputs = torch.rand(4, 3, *[8] * dims, generator=torch.Generator().manual_seed(0))
    torch.autograd.backward(last(think(net.train(), inputs, steps=12)).logits.square().sum())
    for name, weight in net.named_parameters():
        assert weight.grad is not None
        assert weight.grad.isfinite().all(), name
        assert weight.grad.abs().sum() > 0, name


def test_after_training_only_a_mark_that_decides_is_computed() -> None:
    """The answers are those of all marks, and states come to rest also after noise."""
    net = network(3)
    with torch.no_grad():
        net.choice[2] = 1.0  # 88 % of the weight
    task = iterant.task("mazes", problems="start=any,p=0.3")
    inputs = task.sample(10, size=13, seed=1).inputs
    noise = After(5, features=lambda x: torch.rand(x.shape, generator=torch.Generator()))
    answer = iterant.solve(net, inputs, max_steps=1000, rule=ExactRest())
    assert answer.steps.max() < 1000
    thought = last(think(net, inputs, steps=1000, intervene=noise))
    mark = torch.arange(thought.features.shape[1] - net.config.width) % net.config.hidden
    assert not thought.features[:, net.config.width :][:, mark != 2].any()
    assert torch.equal(last(think(net, inputs, steps=1001, state=thought.state)).features,
                       thought.features)  # fmt: skip
    of_all = last(think(net.train(), inputs, steps=1000, grad=False)).prediction
    assert torch.equal(answer.prediction, of_all)
