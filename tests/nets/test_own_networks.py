"""What cannot be a network is refused before it is trained, in one sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from iterant.errors import NetError, RecipeError
from iterant.nets import build
from iterant.nets.protocol import check_user_net
from iterant.training.recipes import recipe


class Plain(nn.Module):
    """A network that is right, with parts that would leave traces."""

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
        made: Tensor = self.drop(self.look(torch.cat([features, memory], dim=1)))
        return made

    def answer(self, features: Tensor) -> Tensor:
        made: Tensor = self.head(features)
        return made


class FourClasses(Plain):
    def answer(self, features: Tensor) -> Tensor:
        return features


class Growing(Plain):
    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        return torch.cat([features, features], dim=1)


def odd(name: str, step: Callable[..., object]) -> type[Plain]:
    """A network whose step no type checker would let pass."""
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


def drawn(made: type[Plain], dims: int = 1, channels: int = 1) -> Plain:
    """Its weights drawn, and the global generator as it was."""
    with torch.random.fork_rng(devices=[]):
        return made(dims, channels)


@pytest.mark.parametrize("dims", [1, 2])
def test_a_network_that_fits_passes_and_stays_as_it_was(dims: int) -> None:
    net = drawn(Plain, dims, 3)
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
def test_what_does_not_fit_is_said(made: type[Plain], said: str) -> None:
    with pytest.raises(NetError) as caught:
        check_user_net(drawn(made), "mine:Net", dims=1, channels=1)
    assert said in str(caught.value)


def test_a_network_answers_as_many_classes_as_the_task_has() -> None:
    check_user_net(drawn(FourClasses), "mine:Net", dims=1, channels=1, classes=4)
    with pytest.raises(NetError, match=r"wanted \(2, 3, 8\)"):
        check_user_net(drawn(FourClasses), "mine:Net", dims=1, channels=1, classes=3)
    with pytest.raises(NetError, match=r"wanted __init__\(self, dims, channels, classes\)"):
        build(f"{Plain.__module__}:Plain", {"dims": 1, "channels": 1, "classes": 3})


def test_what_is_divided_by_a_norm_is_no_reason_to_refuse() -> None:
    normed = odd("Normed", lambda self, f, memory, index: f + memory / memory.norm(dim=(1, 2))[0])
    check_user_net(drawn(normed, channels=4), "mine:Normed", dims=1, channels=4)


def test_what_fails_within_a_method_is_left_to_its_traceback() -> None:
    check_user_net(drawn(Within), "mine:Within", dims=1, channels=1)


def test_a_network_that_takes_no_dims_is_told_what_it_is_built_with() -> None:
    with pytest.raises(NetError, match=r"wanted __init__\(self, dims, channels\)"):
        build(f"{NoDims.__module__}:NoDims", {"dims": 1, "channels": 1})


def test_sizes_that_it_would_never_hear_of_are_refused() -> None:
    mine = recipe("quick", "prefix-sums", "mine:Plain")
    assert mine.asked(epochs=2).epochs == 2
    with pytest.raises(RecipeError, match="hidden: for networks that come with iterant"):
        mine.asked(hidden=8)
    with pytest.raises(RecipeError, match="defaults of its own"):
        recipe("quick", "prefix-sums").asked(net="mine:Plain", width=8)
