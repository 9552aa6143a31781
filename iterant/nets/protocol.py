"""The interface of a network: four methods that the engine calls, and optional attributes.

    >>> needs_of(net)
    Needs(dims=2, channels=3, classes=2)
    >>> check_shape(inputs, needs_of(net))

Any ``nn.Module`` with the methods of `Net` is a network. Networks do not depend on tasks, but carry
the readout that they were trained for. The networks of iterant state in their configuration what
inputs they read; a user's network may do the same.

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

METHODS = ("read", "start", "step", "answer")
"""The methods of a network."""
_SIGNATURES = "read(inputs), start(inputs), step(features, memory, index) and answer(features)"
_SIDE = 8
"""Positions per side of the inputs that a user's network is checked on: as on a chess board."""


@runtime_checkable
class Net(Protocol):
    """The methods that the engine calls."""

    def read(self, inputs: Tensor) -> Tensor | None:
        """What every iteration recalls of the inputs (B, C, *S), batch first; None: nothing."""

    def start(self, inputs: Tensor) -> Tensor:
        """The features before the first iteration, (B, W, *S)."""

    def step(self, features: Tensor, memory: Tensor | None, index: int) -> Tensor:
        """The features after one more iteration; ``index`` iterations are done."""

    def answer(self, features: Tensor) -> Tensor:
        """Logits (B, K, *S)."""


def readout_of(net: Net) -> Readout:
    """How the network's logits become an answer; argmax where it does not say.

    >>> type(readout_of(iterant.load("mazes"))).__name__
    'ArgmaxOpen'
    """
    readout: Any = getattr(net, "readout", None)
    return readout if isinstance(readout, Readout) else Argmax()


def depth_of(net: Net) -> int | None:
    """The number of iterations of a feed-forward network; None: unlimited.

    >>> depth_of(iterant.load("mazes")) is None
    True
    """
    depth: Any = getattr(net, "depth", None)
    return depth if isinstance(depth, int) else None


def moved_of(net: Net) -> Tensor | None:
    """(B,): the largest change of a feature in the latest iteration, where the network reports it.

    Only networks whose features lie between -1 and 1 report it. NaN or infinite where a feature
    is. It may lie on the CPU where the features lie on a GPU.
    """
    moved: Any = getattr(net, "moved", None)
    return moved if isinstance(moved, Tensor) else None


def keep_samples(net: Net, which: Tensor, inputs: Tensor, features: Tensor) -> None:
    """Tell a network that keeps tables of every sample which ones stay (indices in order).

    ``inputs`` and ``features``: these rows of the inputs it read last and of the features it
    returned last, the tensors that the next iteration is called with.
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


@dataclass(frozen=True)
class Needs:
    """The inputs and classes that a network is built for."""

    dims: int
    channels: int
    classes: int = 2

    def beside(self, other: Needs) -> str:
        """In words, classes only where they differ: "strings of 1 channel and 3 classes"."""
        kind = {1: "strings", 2: "images"}.get(self.dims, f"{self.dims}D problems")
        classes = f" and {self.classes} classes" if self.classes != other.classes else ""
        return f"{kind} of {counted(self.channels, 'channel')}{classes}"


def needs_of(net: Net) -> Needs | None:
    """What a network's configuration says; None where it does not."""
    config: Any = getattr(net, "config", None)
    fields = config if isinstance(config, Mapping) else getattr(config, "__dict__", {})
    names = ("dims", "channels", "classes")
    numbers = {name: fields[name] for name in names if isinstance(fields.get(name), int)}
    return Needs(**numbers) if {"dims", "channels"} <= numbers.keys() else None


def check_net(net: object) -> None:
    """Raise NetError where this is not a network but, for example, the name of one."""
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


def check_shape(inputs: Tensor, needs: Needs) -> None:
    """Raise NetError where inputs have other axes or channels, or are empty."""
    axes = needs.dims + 2
    expected = f"({', '.join(['N', str(needs.channels), 'H', 'W'][:axes])})"
    if inputs.dim() != axes or inputs.shape[1] != needs.channels:
        alone = inputs.dim() == axes - 1 and inputs.shape[0] == needs.channels
        hint = "; one problem alone is inputs[None]" if alone else ""
        raise NetError(
            f"this network reads inputs of shape {expected}, got {tuple(inputs.shape)}{hint}"
        )
    if min(inputs.shape) < 1:
        raise NetError(f"inputs of shape {tuple(inputs.shape)} are empty; wanted {expected}")


def check_kind(inputs: Tensor, weight: Tensor) -> None:
    """Raise NetError where inputs have another precision or device than a weight."""
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


def check_user_net(net: Net, word: str, *, dims: int, channels: int, classes: int = 2) -> None:
    """Try a user-defined network on small inputs: check its methods, shapes and for NaN.

    Other errors inside it are ignored here and shown later with their whole traceback: it may be
    made for one size only.
    """
    if isinstance(net, nn.Module) and not any(one.requires_grad for one in net.parameters()):
        raise NetError(f"{word!r} has nothing to learn: wanted a parameter that takes gradients")
    # All values differ: zeros would give NaN in a network that normalises.
    inputs = torch.linspace(-1, 1, 2 * channels * _SIDE**dims).view(2, channels, *[_SIDE] * dims)
    try:
        features, after, logits = _one_iteration(net, inputs)
    except TypeError as error:
        # A traceback of two levels: the call itself failed, so its arguments do not fit.
        here = error.__traceback__
        deep = here.tb_next.tb_next if here is not None and here.tb_next is not None else here
        if deep is None:
            raise NetError(f"{word!r} does not fit ({error}); wanted {_SIGNATURES}") from error
        return
    except Exception:
        return
    if after.shape != features.shape:
        raise NetError(
            f"step() of {word!r} makes features of shape {tuple(after.shape)} from "
            f"{tuple(features.shape)}; wanted the same shape"
        )
    expected = (2, classes, *inputs.shape[2:])
    if logits.shape != expected:
        raise NetError(
            f"answer() of {word!r} gave {tuple(logits.shape)} for 2 problems of "
            f"{tuple(inputs.shape[2:])}; "
            f"wanted {expected}: a score for each of {classes} classes at every position"
        )
    for method, values in (("step", after), ("answer", logits)):
        if values.isnan().any():
            raise NetError(f"{method}() of {word!r} gives NaN with the weights it begins with")


def _one_iteration(net: Net, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Features before and after one iteration, and logits; leaves the network unchanged."""
    training = isinstance(net, nn.Module) and net.training
    if isinstance(net, nn.Module):
        net.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            memory: Any = net.read(inputs)
            features = net.start(inputs)
            after = net.step(features, memory, 0)
            # Features of another shape are an error already; do not decode them.
            return features, after, net.answer(after) if after.shape == features.shape else after
    finally:
        if isinstance(net, nn.Module):
            net.train(training)
