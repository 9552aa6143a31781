"""Networks that compute the same as another one with less work, behind one call.

    >>> fast = accelerate(net, inputs)           # the network itself where nothing faster is known
    >>> with threads(fast):
    ...     last(think(fast, inputs, steps=1000)).prediction

On a CPU, a local rule computes only the cells that can change (`iterant.nets.fast.sparse`);
on a GPU an iteration of it is one kernel (`iterant.nets.fast.cuda`).
Networks of the paper take fewer and larger kernels.
`iterant.solve` and `iterant.evaluate` call this themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from iterant.nets.deep_thinking import PaperNet
from iterant.nets.fast.cuda import FusedRule, can_fuse_rule
from iterant.nets.fast.sparse import SparseRule, has_sparse_form
from iterant.nets.protocol import Net

__all__ = ["FusedRule", "SparseRule", "accelerate", "fused", "has_sparse_form", "threads"]


def accelerate(net: Net, inputs: Tensor, *, reuse: bool = False) -> Net:
    """The network itself, or one that computes the same answers to these inputs with less work.

    It takes part in `think` as any network does; its features have a shape of their own. With
    ``reuse`` an iteration may overwrite the features of the one before: for callers that copy what
    they keep.
    """
    if has_sparse_form(net) and inputs.device.type == "cpu":
        return SparseRule(net, reuse=reuse)
    if can_fuse_rule(net, inputs):
        return FusedRule(net)
    return fused(net)


def fused(net: Net) -> Net:
    """A network of the paper by fewer and larger kernels; any other network itself.

    Unlike those of `accelerate`, its features are the network's own, for interventions.
    """
    if not isinstance(net, PaperNet):
        return net
    # Imported here: a local rule needs none of these modules.
    from iterant.nets.fast.strings import fused as fused_form

    weight = net.projection.weight
    if weight.is_cuda and weight.dtype == torch.float64:  # cuDNN fuses nothing in float64
        return net
    form = fused_form(net)
    if form is None:
        return net
    form.pin()
    return form


@contextmanager
def threads(net: Net) -> Iterator[None]:
    """Compute with as many threads as are fastest for this network.

    A sparse iteration is a few dozen operations on small tensors, which cost more to share out
    between threads than to compute.
    """
    wanted: Any = getattr(net, "threads", None)
    before = torch.get_num_threads()
    if not isinstance(wanted, int) or wanted == before:
        yield
        return
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)
