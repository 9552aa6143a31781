"""Waves and pointers: values are distances, one fixed point from any state, shortest paths."""

from __future__ import annotations

import pytest
import torch

import iterant
from iterant.engine import After, last, think
from iterant.nets import MaxPlus, MaxPlusConfig, build
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
    config = MaxPlusConfig(2, 3, width=1, hidden=1, stem=2, readout="argmax-open")
    net = build("max-plus", config)
    assert isinstance(net, MaxPlus)
    net.eval()
    with torch.no_grad():
        net.source.copy_(torch.tensor([[1.0, -1.0, -1.0]]))  # the end is red
        net.decay.fill_(0.0)
        net.attention.fill_(10.0)
        # Up, down, left, right, the cell itself: among equals down, left, right, up.
        net.direction.copy_(torch.tensor([[0.0, 3.0, 2.0, 1.0, 0.0]]))
        net.mark.weight.copy_(torch.tensor([[-2.0, 4.0, -2.0]]))  # the start is green
        net.mark.bias.fill_(-1.0)
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


def test_the_value_of_a_wave_is_the_distance_from_its_source() -> None:
    batch = iterant.task("mazes", problems="start=any,p=0.3").sample(5, size=15, seed=1)
    net = solver()
    features = last(think(net, batch.inputs, steps=200)).features
    steps = torch.from_numpy(distances(from_image(batch.inputs)))  # to the end, -1: wall
    inner = features[:, 0, 2:-2, 2:-2] / UNIT / torch.nn.functional.softplus(net.decay).item()
    torch.testing.assert_close(inner[steps >= 0], -steps[steps >= 0].float())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_the_values_of_waves_are_the_same_from_any_state(seed: int, kind: str) -> None:
    """With random weights: after as many iterations as the farthest cell is away."""
    batch = iterant.task("mazes", problems=kind).sample(4, size=9, seed=seed)
    net, waves = network(seed), slice(0, 8)
    noise = After(5, features=lambda x: torch.randn(x.shape, generator=torch.Generator()))
    undisturbed = last(think(net, batch.inputs, steps=120)).features
    disturbed = last(think(net, batch.inputs, steps=120, intervene=noise)).features
    reached = undisturbed[:, waves] > -1
    assert torch.equal(disturbed[:, waves][reached], undisturbed[:, waves][reached])


@pytest.mark.parametrize("kind", ["start=any,p=0.2", "start=any"])
def test_a_solver_recovers_from_noise_zeros_and_other_states(kind: str) -> None:
    task = iterant.task("mazes", problems=kind)
    batch = task.sample(10, size=13, seed=2)
    noise = torch.randn(10, 6, 17, 17, generator=torch.Generator().manual_seed(0))
    for change in (torch.zeros_like, noise.view_as, lambda x: x.flip(0)):
        moved = After(60, features=change)
        prediction = last(think(solver(), batch.inputs, steps=400, intervene=moved)).prediction
        assert bool(task.solved(prediction, batch).all())


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


def test_a_change_is_reported_only_of_iterations_without_gradients() -> None:
    """Else a halting rule would read the change of an earlier batch."""
    batch = iterant.task("mazes").sample(2, size=5, seed=0)
    net = network()
    last(think(net, batch.inputs, steps=60))
    assert net.moved is not None
    last(think(net, batch.inputs, steps=1, grad=True))
    assert net.moved is None
