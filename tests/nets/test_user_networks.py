"""User-defined networks are checked before they are trained, with one-line errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from iterant.errors import NetError, RecipeError
from iterant.nets import build
from iterant.nets.protocol import check_user_net
from iterant.training.recipe import recipe


class Plain(nn.Module):
    """A valid network, with dropout, which would change the random state."""

    def __init__(self, dims: int, channels: int) -> None:
        super().__init__()
        conv = {1: nn.Conv1d, 2: nn.Conv2d}[dims]
        self.look = conv(channels + 4, 4, 3, padding=1)
        self.head = conv(4, 2, 1)
        self.drop = nn.Dropout(0.5)

    def read(self, inputs: Tensor) -> Tensor | None:
        return inputs

    def start(self, inputs: Tensor) -> Tensor:
        return inputs.new_zeros(len(inputs), 4, *inputs.shape[2:])

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        assert memory is not None
        out: Tensor = self.drop(self.look(torch.cat([features, memory], dim=1)))
        return out

    def answer(self, features: Tensor) -> Tensor:
        out: Tensor = self.head(features)
        return out


class FourClasses(Plain):
    def answer(self, features: Tensor) -> Tensor:
        return features


class Growing(Plain):
    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return torch.cat([features, features], dim=1)


def odd(name: str, step: Callable[..., object]) -> type[Plain]:
    """A network with another step, which a type checker would refuse."""
    return type(name, (Plain,), {"step": step})


class Fixed(Plain):
    def __init__(self, dims: int, channels: int) -> None:
        super().__init__(dims, channels)
        self.requires_grad_(False)


class NoNumbers(Plain):
    def answer(self, features: Tensor) -> Tensor:
        return super().answer(features) * torch.nan


NaNs = odd("NaNs", lambda self, features, memory, index: features * torch.nan)
NoIndex = odd("NoIndex", lambda self, features, memory: features)
Within = odd("Within", lambda self, features, memory, index: len(index))


class NoDims(Plain):
    def __init__(self, width: int = 4) -> None:
        super().__init__(1, width)


def built(made: type[Plain], dims: int = 1, channels: int = 1) -> Plain:
    """Built without changing the global generator."""
    with torch.random.fork_rng(devices=[]):
        return made(dims, channels)


@pytest.mark.parametrize("dims", [1, 2])
def test_a_valid_network_passes_and_is_unchanged(dims: int) -> None:
    net = built(Plain, dims, 3)
    before = torch.random.get_rng_state()
    check_user_net(net, "mine:Plain", dims=dims, channels=3)
    assert net.training
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (FourClasses, "wanted (2, 2, 8): a score for each of 2 classes at every position"),
        (Growing, "makes features of shape (2, 8, 8) from (2, 4, 8)"),
        (NoIndex, "step(features, memory, index)"),
        (Fixed, "'mine:Net' has nothing to learn"),
        (NaNs, "step() of 'mine:Net' gives NaN"),
        (NoNumbers, "answer() of 'mine:Net' gives NaN"),
    ],
)
def test_wrong_networks(made: type[Plain], said: str) -> None:
    with pytest.raises(NetError) as caught:
        check_user_net(built(made), "mine:Net", dims=1, channels=1)
    assert said in str(caught.value)


def test_the_number_of_classes() -> None:
    check_user_net(built(FourClasses), "mine:Net", dims=1, channels=1, classes=4)
    with pytest.raises(NetError, match=r"wanted \(2, 3, 8\)"):
        check_user_net(built(FourClasses), "mine:Net", dims=1, channels=1, classes=3)
    with pytest.raises(NetError, match=r"wanted __init__\(self, dims, channels, classes\)"):
        build(f"{Plain.__module__}:Plain", {"dims": 1, "channels": 1, "classes": 3})


def test_a_network_that_divides_by_a_norm_passes() -> None:
    normed = odd("Normed", lambda self, f, memory, index: f + memory / memory.norm(dim=(1, 2))[0])
    check_user_net(built(normed, channels=4), "mine:Normed", dims=1, channels=4)


def test_errors_inside_a_method_are_left_for_later() -> None:
    check_user_net(built(Within), "mine:Within", dims=1, channels=1)


def test_a_network_without_the_build_arguments() -> None:
    with pytest.raises(NetError, match=r"wanted __init__\(self, dims, channels\)"):
        build(f"{NoDims.__module__}:NoDims", {"dims": 1, "channels": 1})


def test_recipe_fields_that_a_user_network_does_not_take() -> None:
    mine = recipe("quick", "prefix-sums", "mine:Plain")
    assert mine.asked(epochs=2).epochs == 2
    with pytest.raises(RecipeError, match="hidden: for networks that come with iterant"):
        mine.asked(hidden=8)
    with pytest.raises(RecipeError, match="defaults of its own"):
        recipe("quick", "prefix-sums").asked(net="mine:Plain", width=8)
