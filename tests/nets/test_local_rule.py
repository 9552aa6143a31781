"""Laws of the local rule: what a cell sees, symmetry, walls, and messages that do not return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import local_rule, maze_inputs
from torch import Tensor

from iterant.engine import last, think
from iterant.errors import NetError
from iterant.nets import LocalRule, Net
from iterant.nets.local_rule import in_cells

MESSAGES: dict[str, Any] = {"messages": True, "width": 12, "hidden": 20}


def message_rule(seed: int = 4, **changes: Any) -> LocalRule:
    return local_rule(seed, **{**MESSAGES, **changes})


def features(net: Net, inputs: Tensor, steps: int) -> Tensor:
    with torch.no_grad():
        return last(think(net, inputs, steps=steps)).features


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("changes", [{}, MESSAGES], ids=["state", "messages"])
def test_an_isotropic_rule_is_equivariant_to_rotations_and_mirror_images(
    changes: dict[str, Any], isotropic: bool
) -> None:
    net, images = local_rule(isotropic=isotropic, **changes), maze_inputs()
    answer = net.answer(features(net, images, 9))
    moves: list[Callable[[Tensor], Tensor]] = [lambda x: x.rot90(1, (-2, -1)), lambda x: x.flip(-1)]
    for move in moves:
        moved = net.answer(features(net, move(images), 9))
        assert torch.allclose(moved, move(answer), atol=1e-12) is isotropic


def test_an_iteration_sees_the_direct_neighbours() -> None:
    net = local_rule(masked=False)
    images = torch.ones(1, 3, 24, 24, dtype=torch.float64)
    changed = images.clone()
    changed[:, :, 11:13, 11:13] = 0  # one cell: number 6 of 13
    for steps in (1, 2, 3):
        difference = features(net, images, steps) - features(net, changed, steps)
        rows, columns = difference.abs().sum(dim=(0, 1)).nonzero(as_tuple=True)
        assert ((rows - 6).abs() + (columns - 6).abs()).max().item() == steps


def test_the_state_is_zero_in_walls_and_bounded() -> None:
    net, images = local_rule(), maze_inputs()
    closed = (in_cells(images, net.config.stem) == 0).all(dim=1)
    for thought in think(net, images, steps=20):
        assert thought.features.abs().max() <= 1
        assert thought.features.movedim(1, -1)[closed].abs().max() == 0


@pytest.mark.parametrize("masked", [True, False])
def test_noise_in_walls_is_seen_only_where_they_are_not_masked(masked: bool) -> None:
    net, images = message_rule(masked=masked), maze_inputs()
    closed = (in_cells(images, net.config.stem) == 0).all(dim=1, keepdim=True)
    memory, state = net.read(images), features(net, images, 4)
    noise = torch.randn(state.shape, generator=torch.Generator().manual_seed(3)).double()
    without, with_noise = (net.step(x, memory, 4) for x in (state, state + noise * closed))
    assert torch.equal(without, with_noise) is masked


def test_sides_must_be_multiples_of_a_cell() -> None:
    with pytest.raises(NetError, match="multiples of 2"):
        think(local_rule(), torch.zeros(1, 3, 9, 9, dtype=torch.float64), steps=1)


def parts(channels: int, own: int) -> dict[int | None, slice]:
    """The channels of a cell itself (None) and of its four sides; ``own`` in units of a side."""
    each = channels // (4 + own)
    channels_of: dict[int | None, slice] = {None: slice(own * each)}
    for side in range(4):
        channels_of[side] = slice((own + side) * each, (own + side + 1) * each)
    return channels_of


def restated(net: LocalRule, inputs: Tensor, steps: int) -> Tensor:
    """The rule computed cell by cell and side by side, from the meaning of its weights."""
    config, cells = net.config, in_cells(inputs, net.config.stem)
    sides = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    state, hidden = parts(config.width, own=2), parts(config.hidden, own=1)
    sight, mix = net.sight.weight[..., 0, 0], net.mix.weight[..., 0, 0]
    each = config.width // 6
    bias = net.mix.bias
    assert bias is not None
    recalled = net.read(inputs)[:, :-1]
    _, _, high, wide = cells.shape
    is_open = (cells > 0).any(dim=1)
    now = net.start(inputs)
    for _ in range(steps):
        new = torch.zeros_like(now)
        for b, y, x in is_open.nonzero().tolist():
            received = {}
            for side, (down, right) in enumerate(sides):
                if 0 <= y + down < high and 0 <= x + right < wide:
                    received[side] = now[b, state[side ^ 1], y + down, x + right]
            for to, rows in hidden.items():
                inner = recalled[b, rows, y, x]
                for side, message in received.items():
                    if side != to:
                        inner = inner + sight[rows, side * each : (side + 1) * each] @ message
                inner = torch.relu(inner)
                new[b, state[to], y, x] = torch.tanh(mix[state[to], rows] @ inner + bias[state[to]])
        now = new
    return now


@pytest.mark.parametrize("isotropic", [True, False])
def test_messages_equal_a_computation_cell_by_cell(isotropic: bool) -> None:
    net, inputs = message_rule(isotropic=isotropic), maze_inputs(1, size=5, seed=3)
    with torch.no_grad():
        expected = restated(net, inputs, 3)
    assert (features(net, inputs, 3) - expected).abs().max() < 1e-12


@torch.no_grad()
def ends(net: LocalRule, seed: int, strength: float) -> tuple[Tensor, Tensor]:
    """States long after zeros and after noise; 120 is more than a 7×7 maze has open cells."""
    inputs = maze_inputs(4, size=7, seed=seed)
    memory, state = net.read(inputs), net.start(inputs)
    noise = torch.randn(state.shape, generator=torch.Generator().manual_seed(seed)).double()
    other = strength * noise
    for step in range(120):
        state, other = net.step(state, memory, step), net.step(other, memory, step)
    assert torch.equal(net.step(state, memory, 0), state)
    return state, other


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), strength=st.floats(0.1, 100.0))
def test_every_state_leads_to_the_same_fixed_point(seed: int, strength: float) -> None:
    state, other = ends(message_rule(seed), seed, strength)
    assert torch.equal(state, other)


def test_gradients_are_summed_over_shared_weights() -> None:
    net = message_rule()
    layers: list[Any] = [net.sight, net.recall, net.mix, net.head]
    for layer in layers:
        for shared in layer.parametrizations.values():
            assert torch.autograd.gradcheck(shared[0], (shared.original,))
