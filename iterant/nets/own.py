"""A network of the user's own, tried before anything is spent on it.

    >>> check_own(Gated(dims=1, channels=1), "mine:Gated", dims=1, channels=1)

Training would go on for minutes with an answer of too many classes, and fail with a traceback where
a method takes too few arguments.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from iterant.errors import NetError
from iterant.nets.protocol import Net

_WANTED = "read(inputs), start(inputs), step(features, memory, index) and answer(features)"
_SIDE = 8
"""Positions a side of what it is tried on: a chess board has no more."""


def check_own(net: Net, word: str, *, dims: int, channels: int, classes: int = 2) -> None:
    """Refuse a network whose methods or shapes cannot be right for a task.

    What else goes wrong inside of it is left for later, where the whole traceback is shown: it may
    be made for one size alone.
    """
    if isinstance(net, nn.Module) and not any(one.requires_grad for one in net.parameters()):
        raise NetError(f"{word!r} has nothing to learn: wanted a parameter that takes gradients")
    # No two numbers are alike: zeros would make NaN of a network that normalises.
    inputs = torch.linspace(-1, 1, 2 * channels * _SIDE**dims).view(2, channels, *[_SIDE] * dims)
    try:
        features, after, logits = _one_iteration(net, inputs)
    except TypeError as error:
        # Raised by the call itself, not within it: the arguments do not fit.
        here = error.__traceback__
        deep = here.tb_next.tb_next if here is not None and here.tb_next is not None else here
        if deep is None:
            raise NetError(f"{word!r} does not fit ({error}); wanted {_WANTED}") from error
        return
    except Exception:
        return
    if after.shape != features.shape:
        raise NetError(
            f"step() of {word!r} makes features of shape {_of(after)} from {_of(features)}; "
            "wanted the same shape"
        )
    wanted = (2, classes, *inputs.shape[2:])
    if logits.shape != wanted:
        raise NetError(
            f"answer() of {word!r} gave {_of(logits)} for 2 problems of {_of(inputs[0, 0])}; "
            f"wanted {wanted}: a score for each of {classes} classes at every position"
        )
    for method, made in (("step", after), ("answer", logits)):
        if made.isnan().any():
            raise NetError(f"{method}() of {word!r} gives NaN with the weights it begins with")


def _one_iteration(net: Net, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Features before and after one iteration, and the answer; leaves no trace in the network."""
    learning = isinstance(net, nn.Module) and net.training
    if isinstance(net, nn.Module):
        net.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            memory: Any = net.read(inputs)
            features = net.start(inputs)
            after = net.step(features, memory, 0)
            # Features that changed their shape are refused, so nobody asks for their answer.
            return features, after, net.answer(after) if after.shape == features.shape else after
    finally:
        if isinstance(net, nn.Module):
            net.train(learning)


def _of(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)
