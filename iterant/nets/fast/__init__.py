"""Faster implementations of networks, behind one call.

    >>> fast = accelerate(net, inputs)           # the network itself if there is none
    >>> with threads(fast):
    ...     last(think(fast, inputs, steps=1000)).prediction

On a CPU, local rules and max-plus networks compute only the cells that can change
(`iterant.nets.fast.sparse`); on a GPU an iteration of a local rule is one kernel
(`iterant.nets.fast.cuda`). The paper's networks run in fewer and larger kernels
(`iterant.nets.fast.deep_thinking`). `iterant.solve` and `iterant.evaluate` call this themselves.

What callers must know: a sparse form keeps tables of the inputs that it read last. It serves one
batch at a time, and `iterant.solving.iterate_until_done` tells it which samples stay
(`select_samples`). With ``reuse`` an iteration overwrites the features; `previous_features` gives
those before the latest iteration, and older ones are gone. So `iterant.solve` asks for it only if
the halting rule and the callback have ``copies = True``: they clone what they keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import torch
from torch import Tensor

from iterant.nets.deep_thinking import DeepThinking, FeedForward
from iterant.nets.fast.cuda import FusedRule
from iterant.nets.fast.sparse import SparseMaxPlus, SparseRule
from iterant.nets.local_rule import LocalRule
from iterant.nets.max_plus import MaxPlus
from iterant.nets.protocol import Net

__all__ = [
    "FusedRule", "SparseMaxPlus", "SparseRule", "accelerate", "can_unroll_messages",
    "fused", "threads",
]  # fmt: skip


def accelerate(net: Net, inputs: Tensor, *, reuse: bool = False) -> Net:
    """A faster network that computes the same on these inputs, or the network itself.

    Use it with `think` like any network; the shape of its features differs. With ``reuse`` an
    iteration may overwrite the previous features: for callers that copy what they keep.
    """
    if type(net) is LocalRule:  # a subclass may compute something else
        if inputs.device.type == "cpu":
            return SparseRule(net, reuse=reuse)
        has_triton = find_spec("triton") is not None
        if inputs.is_cuda and inputs.dtype == torch.float32 and has_triton:
            return FusedRule(net)
    if type(net) is MaxPlus and inputs.device.type == "cpu":
        return SparseMaxPlus(net, reuse=reuse)
    return fused(net)


def fused(net: Net) -> Net:
    """A network of the paper in fewer and larger kernels; any other network unchanged.

    Unlike with `accelerate`, features have the original shape, so that interventions apply, and
    weights get gradients: in training call ``flush`` after every backward pass, and ``refresh``
    after every optimizer step.
    """
    # Not for subclasses, which may compute something else.
    if not (type(net) is DeepThinking or type(net) is FeedForward) or net.config.group_norm:
        return net
    weight = net.projection.weight
    if weight.is_cuda and weight.dtype == torch.float64:
        return net  # cuDNN fuses nothing in float64
    from iterant.nets.fast.deep_thinking import Fused  # a local rule does not need it

    return Fused(net)


def can_unroll_messages(net: Net) -> bool:
    """Whether `sparse_training.MessageTrajectory` can train this: messages and equal sides."""
    return type(net) is LocalRule and net.config.messages and net.config.isotropic


@contextmanager
def threads(net: Net) -> Iterator[None]:
    """Compute with as many threads as are fastest for this network.

    A sparse iteration is a few dozen operations on small tensors, which cost more to distribute
    over threads than to compute.
    """
    before = torch.get_num_threads()
    count = getattr(net, "threads", before)
    if count == before:  # setting it again would still change how MKL chooses its threads
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
