"""Laws of the local rule: what a cell sees, symmetry, walls, and messages that do not return."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from iterant.engine import last, think
from iterant.errors import NetError
from iterant.nets import LocalRule, build, parameter_count
from iterant.nets.local_rule import (
    GroupedRule,
    for_graphs,
    patterns,
)
from iterant.tasks.mazes.task import Mazes

MAZES = Mazes()
MESSAGES: dict[str, Any] = {"messages": True, "width": 12, "hidden": 20}


def rule(seed: int = 4, **changes: Any) -> LocalRule:
    config = {"dims": 2, "channels": 3, "stem": 2, "masked": True, "readout": "argmax-open"}
    net = build("local-rule", {**config, **changes}, seed=seed)
    assert isinstance(net, LocalRule)
    return net.double()


def message_rule(seed: int = 4, **changes: Any) -> LocalRule:
    return rule(seed, **{**MESSAGES, **changes})


def mazes(size: int = 9) -> Tensor:
    return MAZES.sample(3, size=size, seed=5).inputs.double()


def test_the_number_of_parameters() -> None:
    # sight 2·16·64, recall 2·3·64 + 64, mix 64·16 + 16, head 16·2 + 2
    assert sum(w.numel() for w in rule().parameters()) == 2048 + 448 + 1040 + 34


def test_the_stem_finds_the_cells_exactly() -> None:
    images = mazes()
    cells = rule()._cells(images)
    assert cells.shape == (3, 3, 13, 13)
    back = cells.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
    assert torch.equal(back[:, :, 1:-1, 1:-1], images)


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("mirror", [False, True])
def test_rotating_the_problem_rotates_the_answer(turn: int, mirror: bool) -> None:
    def moved(images: Tensor) -> Tensor:
        rotated = torch.rot90(images, turn, (2, 3))
        return rotated.flip(3) if mirror else rotated

    net, images = rule(), mazes()
    straight = last(think(net, images, steps=7)).logits
    assert (moved(straight) - last(think(net, moved(images), steps=7)).logits).abs().max() < 1e-12


def test_directions_differ_where_it_is_not_isotropic() -> None:
    net, images = rule(isotropic=False), mazes()
    straight = last(think(net, images, steps=7)).logits
    rotated = last(think(net, torch.rot90(images, 1, (2, 3)), steps=7)).logits
    assert (torch.rot90(straight, 1, (2, 3)) - rotated).abs().max() > 1e-6


def test_an_iteration_sees_the_direct_neighbours() -> None:
    net = rule(masked=False)
    images = torch.ones(1, 3, 24, 24, dtype=torch.float64)
    changed = images.clone()
    changed[:, :, 11:13, 11:13] = 0  # one cell: number 6 of 13
    for steps in (1, 2, 3):
        a, b = (last(think(net, x, steps=steps)).features for x in (images, changed))
        rows, columns = (a - b).abs().sum(dim=(0, 1)).nonzero(as_tuple=True)
        reach = ((rows - 6).abs() + (columns - 6).abs()).max().item()
        assert reach == steps


def test_the_state_is_zero_in_walls_and_bounded() -> None:
    net, images = rule(), mazes()
    closed = (net._cells(images) == 0).all(dim=1)
    for thought in think(net, images, steps=20):
        assert thought.features.abs().max() <= 1
        assert thought.features.movedim(1, -1)[closed].abs().max() == 0


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("grouped", [True, False])
def test_noise_in_walls_is_seen_only_where_they_are_not_masked(masked: bool, grouped: bool) -> None:
    rules = rule(masked=masked, **MESSAGES)
    net, images = GroupedRule(rules) if grouped else rules, mazes()
    closed = (rules._cells(images) == 0).all(dim=1, keepdim=True)
    memory, features = net.read(images), last(think(net, images, steps=4)).features
    noise = torch.randn(features.shape, generator=torch.Generator().manual_seed(3)).double()
    calm, shaken = (net.step(x, memory, 4) for x in (features, features + noise * closed))
    assert torch.equal(calm, shaken) is masked


@pytest.mark.parametrize(
    ("change", "text"),
    [({"dims": 3}, "1 or 2 dimensions"), ({"stem": 3}, "1 or 2 pixels"), ({"hidden": 0}, "hidden")],
)
def test_wrong_configurations(change: dict[str, int], text: str) -> None:
    with pytest.raises(NetError, match=text):
        rule(**change)


def test_sides_that_are_no_whole_cells() -> None:
    with pytest.raises(NetError, match="multiples of 2"):
        think(rule(), torch.zeros(1, 3, 9, 9, dtype=torch.float64), steps=1)


def parts(channels: int, own: int) -> dict[int | None, slice]:
    """The channels of a cell itself (None) and of its four sides; ``own`` in units of a side."""
    each = channels // (4 + own)
    channels_of: dict[int | None, slice] = {None: slice(own * each)}
    for side in range(4):
        channels_of[side] = slice((own + side) * each, (own + side + 1) * each)
    return channels_of


def restated(net: LocalRule, inputs: Tensor, steps: int) -> Tensor:
    """The rule computed cell by cell and side by side, from the meaning of its weights."""
    plain = net.dense_weights()
    config = net.config
    cells = plain._cells(inputs)
    sides = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    state, hidden = parts(config.width, own=2), parts(config.hidden, own=1)
    sight, mix = plain.sight.weight[..., 0, 0], plain.mix.weight[..., 0, 0]
    received_from = sight[:, 2 * config.width :][:, state[0]]
    bias = plain.mix.bias
    assert bias is not None
    recalled = plain.recall(plain.with_neighbours(cells))
    _, _, high, wide = cells.shape
    is_open = (cells > 0).any(dim=1)
    now = plain.start(inputs)
    for _ in range(steps):
        new = torch.zeros_like(now)
        for b, y, x in is_open.nonzero().tolist():
            received = {}
            for side, (down, right) in enumerate(sides):
                if 0 <= y + down < high and 0 <= x + right < wide:
                    received[side] = now[b, state[side ^ 1], y + down, x + right]
            for to, rows in hidden.items():
                others = sum(m for side, m in received.items() if side != to)
                # All sides have the weights of side 0.
                matrix = received_from[hidden[None if to is None else 0]]
                seen = matrix @ others if isinstance(others, Tensor) else 0
                inner = torch.relu(seen + recalled[b, rows, y, x])
                new[b, state[to], y, x] = torch.tanh(mix[state[to], rows] @ inner + bias[state[to]])
        now = new
    return now


def thought(net: LocalRule, inputs: Tensor, steps: int) -> Tensor:
    with torch.no_grad():
        return last(think(net, inputs, steps=steps)).features


def test_messages_equal_a_computation_cell_by_cell() -> None:
    net = message_rule()
    inputs = MAZES.sample(1, size=5, seed=3).inputs.double()
    with torch.no_grad():
        expected = restated(net, inputs, 3)
    assert (thought(net, inputs, 3) - expected).abs().max() < 1e-12


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), strength=st.floats(0.1, 100.0))
def test_every_state_leads_to_the_same_fixed_point(seed: int, strength: float) -> None:
    net = message_rule(seed)
    inputs = MAZES.sample(4, size=7, seed=seed).inputs.double()
    memory = net.read(inputs)
    features = net.start(inputs)
    drawn = torch.Generator().manual_seed(seed)
    other = strength * torch.randn(features.shape, generator=drawn, dtype=torch.float64)
    with torch.no_grad():
        for step in range(120):  # more than a 7×7 maze has open cells
            features, other = net.step(features, memory, step), net.step(other, memory, step)
        assert torch.equal(features, other)
        assert torch.equal(net.step(features, memory, 0), features)


def test_a_rule_without_messages_may_have_several_fixed_points() -> None:
    net = message_rule(messages=False, isotropic=False)
    with torch.no_grad():
        net.sight.weight.mul_(5)  # strong enough to keep its state
    inputs = MAZES.sample(4, size=7, seed=1).inputs.double()
    memory, features = net.read(inputs), net.start(inputs)
    other = torch.randn(
        features.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    with torch.no_grad():
        for step in range(120):
            features, other = net.step(features, memory, step), net.step(other, memory, step)
    assert not torch.equal(features, other)


def rotated(values: Tensor) -> Tensor:
    return values.rot90(1, (-2, -1))


def test_messages_are_symmetric_where_isotropic() -> None:
    inputs = MAZES.sample(3, size=7, seed=2).inputs.double()
    for isotropic in (True, False):
        net = message_rule(isotropic=isotropic)
        with torch.no_grad():
            answer = net.answer(thought(net, inputs, 9))
            same = [
                torch.allclose(net.answer(thought(net, change(inputs), 9)), change(answer))
                for change in (rotated, lambda values: values.flip(-1))
            ]
        assert all(same) is isotropic


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("dims", [1, 2])
def test_dense_weights_compute_the_same(dims: int, isotropic: bool) -> None:
    size = {"width": 12, "hidden": 15} if dims == 1 else {}
    net = message_rule(dims=dims, channels=1, stem=1, masked=False, isotropic=isotropic,
               readout="argmax", **{"width": 12, "hidden": 20, **size})  # fmt: skip
    inputs = torch.randn(3, 1, *[9] * dims, generator=torch.Generator().manual_seed(2)).double()
    plain = net.dense_weights()
    assert not plain.config.messages
    assert torch.equal(thought(net, inputs, 12), thought(plain, inputs, 12))
    assert parameter_count(net) < parameter_count(plain)


@pytest.mark.parametrize("dims", [1, 2])
def test_grouped_convolutions_compute_the_same(dims: int) -> None:
    size = {"width": 12, "hidden": 15} if dims == 1 else {}
    net = message_rule(dims=dims, channels=1, stem=1, masked=False, readout="argmax", **size)
    inputs = torch.randn(3, 1, *[9] * dims, generator=torch.Generator().manual_seed(2)).double()
    light = GroupedRule(net)
    difference = thought(net, inputs, 12) - last(think(light, inputs, steps=12)).features
    assert difference.abs().max() < 1e-12
    assert isinstance(for_graphs(net), GroupedRule)
    unequal = message_rule(isotropic=False)
    assert type(for_graphs(unequal)) is type(unequal.dense_weights())


@pytest.mark.parametrize("isotropic", [True, False])
def test_weights_follow_the_pattern(isotropic: bool) -> None:
    net = message_rule(isotropic=isotropic)
    for name, pattern in patterns(net.config).items():
        layer, kind = name.split(".")
        module: Any = net.get_submodule(layer)
        free = module.parametrizations[kind].original
        assert set(pattern.flatten().tolist()) - {-1} == set(range(len(free))), name
        expected = torch.cat([free, torch.zeros(1, dtype=free.dtype)])[pattern]
        for learning in (True, False):
            with torch.set_grad_enabled(learning):
                assert torch.equal(getattr(module, kind).flatten(), expected.flatten()), name


def test_gradients_are_summed_over_shared_weights() -> None:
    net = message_rule()
    inputs = MAZES.sample(2, size=5, seed=3).inputs.double()
    plain = net.dense_weights().requires_grad_(True)
    for one in (net, plain):
        total: Any = last(think(one, inputs, steps=5)).features.square().sum()
        total.backward()
    for name, pattern in patterns(net.config).items():
        layer, kind = name.split(".")
        if layer == "head":
            continue
        free = net.get_submodule(layer).parametrizations[kind].original  # type: ignore[union-attr, index]
        dense = getattr(plain.get_submodule(layer), kind).grad.flatten()
        at = pattern.flatten()
        expected = torch.zeros_like(free).index_add(0, at[at >= 0], dense[at >= 0])
        assert torch.allclose(free.grad, expected)


def test_state_dicts_and_widths_that_do_not_divide() -> None:
    net, other = message_rule(1), message_rule(2)
    other.load_state_dict(net.state_dict())
    assert torch.equal(other.sight.weight, net.sight.weight)
    with pytest.raises(NetError, match=r"width is shared out in 6 parts alike.*got 16"):
        message_rule(width=16)
    with pytest.raises(NetError, match=r"hidden is shared out in 5 parts alike.*got 64"):
        message_rule(hidden=64)
