"""Readouts: how logits become an answer, and which positions count.

    >>> Argmax().predict(logits, inputs)        # (B, K, *S) -> (B, *S) int64

The loss, the confidence of an iteration and the prediction use the same readout, so that they
cannot disagree on which positions count.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from iterant import registry


@runtime_checkable
class Readout(Protocol):
    """How logits become an answer."""

    def predict(self, logits: Tensor, inputs: Tensor) -> Tensor:
        """(B, *S) int64: the class of every position."""

    def counted(self, inputs: Tensor) -> Tensor | None:
        """(B, *S) bool: the positions that the loss and the confidence count; None: all."""


class Argmax:
    """The most probable class at every position: prefix sums."""

    def predict(self, logits: Tensor, inputs: Tensor) -> Tensor:
        """The most probable class."""
        return _argmax(logits)

    def counted(self, inputs: Tensor) -> Tensor | None:
        """Every position counts."""
        return None


def _argmax(logits: Tensor) -> Tensor:
    """The class of the largest logit, the first of equals.

    For two classes a comparison is some fifty times faster than argmax on a CPU.
    """
    if logits.shape[1] != 2:
        return logits.argmax(dim=1)
    zero, one = logits.unbind(dim=1)
    # Like argmax, a NaN counts as the largest.
    return ((one > zero) | (one.isnan() & ~zero.isnan())).long()


class ArgmaxOpen:
    """The most probable class where the input is not all zero, else 0: mazes and their walls."""

    def predict(self, logits: Tensor, inputs: Tensor) -> Tensor:
        """The most probable class, 0 on walls."""
        return _argmax(logits) * self.counted(inputs)

    def counted(self, inputs: Tensor) -> Tensor:
        """Only open positions count."""
        is_open, *others = (inputs > 0).unbind(dim=1)
        for channel in others:  # a CPU takes far longer for `any` over channels
            is_open = is_open | channel
        return is_open


class TwoBest:
    """1 on the two positions with the highest score of class 1: a move's origin and destination.

    Of equal scores the earlier position wins, so that the answer is the same on every device.
    """

    def predict(self, logits: Tensor, inputs: Tensor) -> Tensor:
        """1 on the two best positions, 0 elsewhere."""
        scores = logits[:, 1].flatten(1)
        best = scores.argsort(dim=1, descending=True, stable=True)[:, :2]
        flat = torch.zeros_like(scores, dtype=torch.int64).scatter_(1, best, 1)
        return flat.view_as(logits[:, 1])

    def counted(self, inputs: Tensor) -> Tensor | None:
        """Every position counts."""
        return None


def readout(word: str) -> Readout:
    """The readout of that name, as a network's configuration holds it.

    >>> readout("two-best").predict(torch.tensor([[[0.0, 0, 0, 0], [1, 5, 0, 2]]]), None)
    tensor([[0, 1, 0, 1]])
    """
    instance: Readout = registry.find("readout", word)()
    return instance
