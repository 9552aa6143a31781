"""Optimisers without torch's compiler, whose import takes seconds and which nothing here uses.

    >>> spare_the_compiler()
    >>> optimizer = torch.optim.Adam(net.parameters(), fused=True)
    >>> step(optimizer)

torch imports its compiler at the first optimiser, to tell it not to compile what optimisers do.
It asks each of their methods first whether somebody has told it already, so we do.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch

_TOLD = "__dynamo_disable"
_METHODS = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")


def spare_the_compiler() -> None:
    """Let optimisers be made, saved and restored without it; in vain where torch has changed."""
    for name in _METHODS:
        method = inspect.unwrap(getattr(torch.optim.Optimizer, name))
        if getattr(method, _TOLD, None) is None:
            setattr(method, _TOLD, method)


@torch.no_grad()
def step(optimizer: torch.optim.Optimizer) -> None:
    """The optimiser's own step, without what torch wraps around it (hooks, profiling, compiler)."""
    inner: Any = inspect.unwrap(type(optimizer).step)
    inner(optimizer)
