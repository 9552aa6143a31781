"""What a network reads and answers, as far as it says so, and inputs that it cannot read.

    >>> needs_of(net)
    Needs(dims=2, channels=3, classes=2)
    >>> check_shape(inputs, needs_of(net))

Networks that come with iterant say it in their configuration. A class of the user's own need not:
what it was built with is kept, and one that was never built here says nothing and is let through.

What a network is: four methods that the engine calls, and three facts it may state.

A user's own ``nn.Module`` takes part by offering the four methods. Networks know no task, but
carry the readout they were trained for.

A network of the user's own, tried before anything is spent on it.

Training would go on for minutes with an answer of too many classes, and fail with a traceback where
a method takes too few arguments.

Shapes: B batch, C channels, W width, K classes, *S space.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from iterant.errors import NetError
from iterant.formatting import counted
from iterant.nets.readout import Argmax, Readout


@runtime_checkable
class Net(Protocol):
    """What the engine asks of a network."""

    def read(self, inputs: Tensor) -> Tensor | None:
        """What every iteration recalls of (B, C, *S) inputs, batch first; None: nothing."""

    def start(self, inputs: Tensor) -> Tensor:
        """The features before the first iteration, (B, W, *S)."""

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """The features after one more iteration; ``index`` counts those already done."""

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S)."""


def readout_of(net: Net) -> Readout:
    """How the network's logits become an answer; plain argmax where it does not say.

    >>> type(readout_of(iterant.load("mazes"))).__name__
    'ArgmaxOpen'
    """
    readout: Any = getattr(net, "readout", None)
    return readout if isinstance(readout, Readout) else Argmax()


def depth_of(net: Net) -> int | None:
    """How many iterations the network has; None where it can go on for ever.

    >>> depth_of(iterant.load("mazes")) is None
    True
    """
    depth: Any = getattr(net, "depth", None)
    return depth if isinstance(depth, int) else None


def moved_of(net: Net) -> Tensor | None:
    """(B,): the largest change of a feature in the latest iteration, where the network knows it.

    Only networks whose features lie between -1 and 1 say so; others are compared. NaN or
    infinite where a feature is. It may lie on the CPU where the features lie on a GPU.
    """
    moved: Any = getattr(net, "moved", None)
    return moved if isinstance(moved, Tensor) else None


def keep_samples(net: Net, which: Tensor, inputs: Tensor, features: Tensor) -> None:
    """Tell a network that keeps something of every sample which ones stay, indices in order.

    ``inputs`` and ``features`` are the rows that stay of the inputs it read last and of the
    features it returned last: the tensors that the next iteration will be called with.
    """
    keep: Any = getattr(net, "keep", None)
    if callable(keep):
        keep(which, inputs, features)


def like(net: Net, inputs: Tensor) -> Tensor:
    """The inputs on the network's device and in its precision.

    >>> like(net.double(), x).dtype
    torch.float64
    """
    weight = next(iter(net.parameters()), None) if isinstance(net, nn.Module) else None
    return inputs if weight is None else inputs.to(weight.device, weight.dtype)


METHODS = ("read", "start", "step", "answer")
"""What a network offers."""


@dataclass(frozen=True)
class Needs:
    """What problems a network is made for."""

    dims: int
    channels: int
    classes: int = 2

    def beside(self, other: Needs) -> str:
        """In words, classes only where they differ: "strings of 1 channel and 3 classes"."""
        what = {1: "strings", 2: "images"}.get(self.dims, f"{self.dims}D problems")
        classes = f" and {self.classes} classes" if self.classes != other.classes else ""
        return f"{what} of {counted(self.channels, 'channel')}{classes}"


def check_net(net: object) -> None:
    """Raise NetError where this is no network, such as the name of one."""
    if isinstance(net, str | os.PathLike):
        raise NetError(
            f"wanted a network, got {os.fspath(net)!r}; load it: iterant.load({os.fspath(net)!r})"
        )
    if isinstance(net, type):
        raise NetError(
            f"wanted a network, got the class {net.__name__}; build one: {net.__name__}(…)"
        )
    if missing := [name for name in METHODS if not callable(getattr(net, name, None))]:
        raise NetError(
            f"wanted a network, got {type(net).__name__}, which has no {', '.join(missing)}; "
            f"a network has the methods {', '.join(METHODS)}"
        )


def needs_of(net: Net) -> Needs | None:
    """What a network's configuration says; None where it has none or it does not say."""
    config: Any = getattr(net, "config", None)
    said = config if isinstance(config, Mapping) else getattr(config, "__dict__", {})
    found = {name: said.get(name) for name in ("dims", "channels", "classes")}
    if not all(isinstance(found[name], int) for name in ("dims", "channels")):
        return None
    return Needs(**{name: value for name, value in found.items() if isinstance(value, int)})


def check_shape(inputs: Tensor, needs: Needs) -> None:
    """Raise NetError where inputs have other axes or channels, or hold nothing."""
    axes = needs.dims + 2
    wanted = f"({', '.join(['N', str(needs.channels), 'H', 'W'][:axes])})"
    if inputs.dim() != axes or inputs.shape[1] != needs.channels:
        alone = inputs.dim() == axes - 1 and inputs.shape[0] == needs.channels
        hint = "; one problem alone is inputs[None]" if alone else ""
        raise NetError(
            f"this network reads inputs of shape {wanted}, got {tuple(inputs.shape)}{hint}"
        )
    if min(inputs.shape) < 1:
        raise NetError(f"inputs of shape {tuple(inputs.shape)} are empty; wanted {wanted}")


def check_kind(inputs: Tensor, weight: Tensor) -> None:
    """Raise NetError where inputs are of another precision or on another device than a weight."""
    if inputs.dtype != weight.dtype:
        raise NetError(
            f"this network computes in {weight.dtype}, the inputs are {inputs.dtype}; "
            f"use inputs.to({weight.dtype})"
        )
    if inputs.device != weight.device:
        raise NetError(
            f"this network is on {weight.device}, the inputs on {inputs.device}; "
            f"use inputs.to({str(weight.device)!r})"
        )


_WANTED = "read(inputs), start(inputs), step(features, memory, index) and answer(features)"
_SIDE = 8
"""Positions a side of what it is tried on: a chess board has no more."""


def check_user_net(net: Net, word: str, *, dims: int, channels: int, classes: int = 2) -> None:
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
