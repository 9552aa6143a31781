"""What a network reads and answers, as far as it says so, and inputs that it cannot read.

    >>> needs_of(net)
    Needs(dims=2, channels=3, classes=2)
    >>> check_shape(inputs, needs_of(net))

Networks that come with iterant say it in their configuration. A class of the user's own need not:
what it was built with is kept, and one that was never built here says nothing and is let through.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from iterant import names
from iterant.errors import NetError
from iterant.nets.protocol import Net

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
        return f"{what} of {names.counted(self.channels, 'channel')}{classes}"


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
