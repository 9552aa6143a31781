"""Training a local rule on its open cells alone: most of a maze is wall.

    >>> unroll = SparseUnroll(net, smoothing=0.2)        # as EagerUnroll, several times faster

Losses, gradients and states are those of `iterant.training.unroll.EagerUnroll` up to rounding:
walls hold zero, whatever noise or corruption a pool adds. Only the penalty on change (``settle``)
differs where walls were corrupted, since that vanishes by itself.

Shapes: B batch, K classes, *Q space in cells, N open cells.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from iterant.engine import State
from iterant.nets.fast import has_sparse_form
from iterant.nets.fast.gradients import CellPath, cell_rows, unroll_cells
from iterant.nets.protocol import Net
from iterant.training.objectives import Segment, StepResult
from iterant.training.unroll import EagerUnroll, backward, initial_state

_POOL = {1: functional.avg_pool1d, 2: functional.avg_pool2d}


def can_unroll_cells(net: Net) -> bool:
    """Whether this is a local rule and all positions that its loss counts lie on open cells."""
    if not has_sparse_form(net):
        return False
    return not net.config.masked or net.config.readout == "argmax-open"


class SparseUnroll(EagerUnroll):
    """Gradients on open cells; iterations without gradients are run as by `EagerUnroll`."""

    def forward_backward(
        self,
        inputs: Tensor,
        targets: Tensor,
        segment: Segment,
        *,
        state: State | None = None,
        restart: Tensor | None = None,
        keep: int | None = None,
        noise: Tensor | None = None,
    ) -> StepResult:
        """Iterate with gradients, add those of the loss to the parameters."""
        net: Any = self.net
        start = initial_state(net, inputs, state, restart)
        # The penalty on change counts messages to walls, which only the path of cells computes.
        unroll = CellPath if segment.settle else unroll_cells
        path = unroll(net, inputs, start.features, segment.steps, noise)
        # Without weights of each iteration, the loss is that of the last.
        each = segment.each or (*[0.0] * (segment.steps - 1), 1.0)
        weights = {iteration: weight for iteration, weight in enumerate(each, 1) if weight}
        loss = self._loss(
            path.logits(list(weights)),
            self._targets(inputs, targets)[path.cells],
            list(weights.values()),
        )
        if isinstance(path, CellPath) and segment.settle:
            scale = segment.steps * start.features.numel()
            loss = loss + segment.settle * path.total_change() / scale
        backward(net, loss * segment.weight, self.scale)

        def state_after(iteration: int) -> State:
            return State(path.features(iteration), start.step + iteration)

        kept = None if keep is None else state_after(keep)
        return StepResult(loss.detach(), state_after(segment.steps), kept)

    @staticmethod
    def _loss(logits: Tensor, targets: Tensor, weights: list[float]) -> Tensor:
        """Weighted cross entropy of (iterations, N, K) logits and (N, K) shares of classes."""
        exact = logits if logits.dtype == torch.float64 else logits.float()
        losses = -(exact.log_softmax(dim=-1) * targets).sum(dim=(1, 2))
        return (losses * losses.new_tensor(weights)).sum()

    def _targets(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """(cells of all samples, K): the share of the loss of every cell and class.

        A cell answers for all of its pixels; the mean is over a sample's counted pixels, then over
        samples.
        """
        net: Any = self.net
        config, smoothing = net.config, self.smoothing
        classes = functional.one_hot(targets, config.classes).movedim(-1, 1).to(inputs.dtype)
        counted = net.readout.counted(inputs)
        if counted is not None:
            classes = classes * counted[:, None]
        if config.stem > 1:
            pool = _POOL[config.dims]
            classes = pool(classes, 2, stride=2, padding=1) * 2**config.dims
        pixels = classes.sum(dim=1, keepdim=True)
        shares = (1 - smoothing) * classes + smoothing / config.classes * pixels
        total = pixels.flatten(1).sum(dim=1).clamp_min(1) * len(inputs)
        return cell_rows(shares / total.view(-1, *[1] * (shares.dim() - 1)))
