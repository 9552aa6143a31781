"""Messages without echo: what the pattern of weights promises, whatever the weights are."""

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
from iterant.nets.fast.grouped import Grouped
from iterant.nets.local_rule import GAIN, OWN_HIDDEN, OWN_WIDTH, MessageLayout, patterns
from iterant.tasks.mazes.task import Mazes

MAZES = Mazes()


def rule(seed: int = 4, **changes: Any) -> LocalRule:
    config = {"dims": 2, "channels": 3, "stem": 2, "masked": True, "readout": "argmax-open",
              "width": 12, "hidden": 20, "messages": True}  # fmt: skip
    net = build("local-rule", {**config, **changes}, seed=seed)
    assert isinstance(net, LocalRule)
    return net.double()


def restated(net: LocalRule, inputs: Tensor, steps: int) -> Tensor:
    """The rule told square by square and side by side, from its free numbers' meaning."""
    plain = net.dense_weights()
    config = net.config
    squares = plain._cells(inputs)
    sides = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    state = MessageLayout.of(config.width, 4, OWN_WIDTH)
    hidden = MessageLayout.of(config.hidden, 4, OWN_HIDDEN)
    sight, mix = plain.sight.weight[..., 0, 0], plain.mix.weight[..., 0, 0]
    tells = sight[list(hidden.of_side(0))][:, [config.width * 2 + n for n in state.of_side(0)]]
    keeps = sight[list(range(hidden.own))][:, [config.width * 2 + n for n in state.of_side(0)]]
    bias = plain.mix.bias
    assert bias is not None
    recalled = plain.recall(plain._with_neighbours(squares))
    _, _, high, wide = squares.shape
    is_open = (squares > 0).any(dim=1)
    now = plain.start(inputs)
    for _ in range(steps):
        new = torch.zeros_like(now)
        for b, y, x in is_open.nonzero().tolist():
            heard = {}
            for side, (down, right) in enumerate(sides):
                if 0 <= y + down < high and 0 <= x + right < wide:
                    heard[side] = now[b, list(state.of_side(side ^ 1)), y + down, x + right]
            for to, rows in hidden.parts():
                others = sum((m for side, m in heard.items() if side != to),
                             torch.zeros(state.each, dtype=now.dtype))  # fmt: skip
                matrix = keeps if to is None else tells
                inner = torch.relu(matrix @ others + recalled[b, list(rows), y, x])
                columns = list(range(state.own) if to is None else state.of_side(to))
                out = mix[columns][:, list(rows)] @ inner + bias[columns]
                new[b, columns, y, x] = torch.tanh(out)
        now = new
    return now


def thought(net: LocalRule, inputs: Tensor, steps: int) -> Tensor:
    with torch.no_grad():
        return last(think(net, inputs, steps=steps)).features


def test_it_is_what_its_words_say() -> None:
    net = rule()
    inputs = MAZES.sample(1, size=5, seed=3).inputs.double()
    with torch.no_grad():
        wanted = restated(net, inputs, 3)
    assert (thought(net, inputs, 3) - wanted).abs().max() < 1e-12


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), strength=st.floats(0.1, 100.0))
def test_every_state_leads_to_the_same_rest_exactly(seed: int, strength: float) -> None:
    net = rule(seed)
    inputs = MAZES.sample(4, size=7, seed=seed).inputs.double()
    memory = net.read(inputs)
    features = net.start(inputs)
    drawn = torch.Generator().manual_seed(seed)
    other = strength * torch.randn(features.shape, generator=drawn, dtype=torch.float64)
    with torch.no_grad():
        for step in range(120):  # more than a 7×7 maze has open squares
            features, other = net.step(features, memory, step), net.step(other, memory, step)
        assert torch.equal(features, other)
        assert torch.equal(net.step(features, memory, 0), features)


def test_an_ordinary_rule_keeps_no_such_promise() -> None:
    net = rule(messages=False, isotropic=False)
    with torch.no_grad():
        net.sight.weight.mul_(5)  # strong enough to hold on to what it held
    inputs = MAZES.sample(4, size=7, seed=1).inputs.double()
    memory, features = net.read(inputs), net.start(inputs)
    other = torch.randn(
        features.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    with torch.no_grad():
        for step in range(120):
            features, other = net.step(features, memory, step), net.step(other, memory, step)
    assert not torch.equal(features, other)


def turned(values: Tensor) -> Tensor:
    return values.rot90(1, (-2, -1))


def test_turning_and_mirroring_the_maze_turns_and_mirrors_the_answer() -> None:
    inputs = MAZES.sample(3, size=7, seed=2).inputs.double()
    for isotropic in (True, False):
        net = rule(isotropic=isotropic)
        with torch.no_grad():
            answer = net.answer(thought(net, inputs, 9))
            same = [
                torch.allclose(net.answer(thought(net, change(inputs), 9)), change(answer))
                for change in (turned, lambda values: values.flip(-1))
            ]
        assert all(same) is isotropic


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("dims", [1, 2])
def test_written_out_it_is_the_same(dims: int, isotropic: bool) -> None:
    size = {"width": 12, "hidden": 15} if dims == 1 else {}
    net = rule(dims=dims, channels=1, stem=1, masked=False, isotropic=isotropic,
               readout="argmax", **{"width": 12, "hidden": 20, **size})  # fmt: skip
    inputs = torch.randn(3, 1, *[9] * dims, generator=torch.Generator().manual_seed(2)).double()
    plain = net.dense_weights()
    assert not plain.config.messages
    assert torch.equal(thought(net, inputs, 12), thought(plain, inputs, 12))
    assert parameter_count(net) < parameter_count(plain)


@pytest.mark.parametrize("dims", [1, 2])
def test_in_groups_it_is_the_same(dims: int) -> None:
    size = {"width": 12, "hidden": 15} if dims == 1 else {}
    net = rule(dims=dims, channels=1, stem=1, masked=False, readout="argmax", **size)
    inputs = torch.randn(3, 1, *[9] * dims, generator=torch.Generator().manual_seed(2)).double()
    light = Grouped(net)
    difference = thought(net, inputs, 12) - last(think(light, inputs, steps=12)).features
    assert difference.abs().max() < 1e-12
    with pytest.raises(NetError, match="only a rule with messages and sides alike"):
        Grouped(rule(isotropic=False))


@pytest.mark.parametrize("isotropic", [True, False])
def test_every_free_number_is_written_where_the_pattern_says(isotropic: bool) -> None:
    net = rule(isotropic=isotropic)
    for name, pattern in patterns(net.config).items():
        layer, kind = name.split(".")
        module: Any = net.get_submodule(layer)
        free = module.parametrizations[kind].original
        assert set(pattern.flatten().tolist()) - {-1} == set(range(len(free))), name
        wanted = torch.cat([free, torch.zeros(1, dtype=free.dtype)])[pattern]
        for learning in (True, False):
            with torch.set_grad_enabled(learning):
                assert torch.equal(getattr(module, kind).flatten(), wanted.flatten()), name


def test_what_is_told_begins_louder_than_what_is_answered() -> None:
    net = rule(width=24, hidden=80)
    for name, pattern in patterns(net.config).items():
        layer, kind = name.split(".")
        module: Any = net.get_submodule(layer)
        largest = float(module.parametrizations[kind].original.detach().abs().max())
        sees = (pattern >= 0).sum(dim=-1).max().item() if pattern.dim() == 2 else None
        gain = 1.0 if layer == "head" else GAIN
        bound = 0.1 if sees is None else gain / sees**0.5
        assert 0.75 * bound < largest <= bound, name


def test_gradients_of_free_numbers_are_those_of_the_written_weights_summed() -> None:
    net = rule()
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
        written = getattr(plain.get_submodule(layer), kind).grad.flatten()
        at = pattern.flatten()
        wanted = torch.zeros_like(free).index_add(0, at[at >= 0], written[at >= 0])
        assert torch.allclose(free.grad, wanted)


def test_the_answer_is_read_from_what_a_square_holds_of_its_own() -> None:
    net = rule()
    own = MessageLayout.of(net.config.width, 4, OWN_WIDTH).own
    assert not net.head.weight[:, own:].any()
    assert len(set(net.head.weight[:, :own].flatten().tolist())) == 2 * own


def test_weights_survive_their_file_and_numbers_that_do_not_divide_are_refused() -> None:
    net, other = rule(1), rule(2)
    other.load_state_dict(net.state_dict())
    assert torch.equal(other.sight.weight, net.sight.weight)
    with pytest.raises(NetError, match=r"width is shared out in 6 parts alike.*got 16"):
        rule(width=16)
    with pytest.raises(NetError, match=r"hidden is shared out in 5 parts alike.*got 64"):
        rule(hidden=64)
