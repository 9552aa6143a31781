"""Laws of the local rule: what it sees, that it knows no direction, and that walls hold nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from iterant.engine import last, think
from iterant.errors import NetError
from iterant.nets import LocalRule, build
from iterant.nets.fast.grouped import Grouped
from iterant.tasks.mazes.task import Mazes


def rule(**changes: object) -> LocalRule:
    config = {"dims": 2, "channels": 3, "stem": 2, "masked": True, "readout": "argmax-open"}
    net = build("local-rule", {**config, **changes}, seed=4)
    assert isinstance(net, LocalRule)
    return net.double()


def mazes(size: int = 9) -> Tensor:
    return Mazes().sample(3, size=size, seed=5).inputs.double()


def test_it_is_small() -> None:
    # sight 2·16·64, recall 2·3·64 + 64, mix 64·16 + 16, head 16·2 + 2
    assert sum(w.numel() for w in rule().parameters()) == 2048 + 448 + 1040 + 34


def test_the_stem_meets_the_squares_exactly() -> None:
    images = mazes()
    squares = rule()._cells(images)
    assert squares.shape == (3, 3, 13, 13)
    back = squares.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
    assert torch.equal(back[:, :, 1:-1, 1:-1], images)


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("mirror", [False, True])
def test_turning_the_problem_turns_the_answer(turn: int, mirror: bool) -> None:
    def moved(images: Tensor) -> Tensor:
        turned = torch.rot90(images, turn, (2, 3))
        return turned.flip(3) if mirror else turned

    net, images = rule(), mazes()
    straight = last(think(net, images, steps=7)).logits
    assert (moved(straight) - last(think(net, moved(images), steps=7)).logits).abs().max() < 1e-12


def test_directions_differ_where_it_is_not_isotropic() -> None:
    net, images = rule(isotropic=False), mazes()
    straight = last(think(net, images, steps=7)).logits
    turned = last(think(net, torch.rot90(images, 1, (2, 3)), steps=7)).logits
    assert (torch.rot90(straight, 1, (2, 3)) - turned).abs().max() > 1e-6


def test_an_iteration_sees_one_square_around() -> None:
    net = rule(masked=False)
    images = torch.ones(1, 3, 24, 24, dtype=torch.float64)
    changed = images.clone()
    changed[:, :, 11:13, 11:13] = 0  # one lattice square: number 6 of 13
    for steps in (1, 2, 3):
        a, b = (last(think(net, x, steps=steps)).features for x in (images, changed))
        rows, columns = (a - b).abs().sum(dim=(0, 1)).nonzero(as_tuple=True)
        reach = ((rows - 6).abs() + (columns - 6).abs()).max().item()
        assert reach == steps


def test_walls_hold_nothing_and_the_state_is_bounded() -> None:
    net, images = rule(), mazes()
    closed = (net._cells(images) == 0).all(dim=1)
    for thought in think(net, images, steps=20):
        assert thought.features.abs().max() <= 1
        assert thought.features.movedim(1, -1)[closed].abs().max() == 0


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("grouped", [True, False])
def test_what_is_done_to_walls_is_heard_only_where_they_are_not_masked(
    masked: bool, grouped: bool
) -> None:
    rules = rule(masked=masked, messages=True, width=12, hidden=20)
    net, images = Grouped(rules) if grouped else rules, mazes()
    closed = (rules._cells(images) == 0).all(dim=1, keepdim=True)
    memory, features = net.read(images), last(think(net, images, steps=4)).features
    noise = torch.randn(features.shape, generator=torch.Generator().manual_seed(3)).double()
    calm, shaken = (net.step(x, memory, 4) for x in (features, features + noise * closed))
    assert torch.equal(calm, shaken) is masked


@pytest.mark.parametrize(
    ("change", "text"),
    [({"dims": 3}, "1 or 2 dimensions"), ({"stem": 3}, "1 or 2 pixels"), ({"hidden": 0}, "hidden")],
)
def test_impossible_rules_are_refused(change: dict[str, int], text: str) -> None:
    with pytest.raises(NetError, match=text):
        rule(**change)


def test_images_that_do_not_fit_are_refused() -> None:
    with pytest.raises(NetError, match="multiples of 2"):
        think(rule(), torch.zeros(1, 3, 9, 9, dtype=torch.float64), steps=1)
    with pytest.raises(NetError, match=r"shape \(N, 3, H, W\)"):
        think(rule(), torch.zeros(1, 1, 8, 8, dtype=torch.float64), steps=1)
    with pytest.raises(NetError, match=r"computes in torch\.float64"):
        think(rule(), torch.zeros(1, 3, 8, 8), steps=1)
