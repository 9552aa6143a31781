"""Learning with a local rule on its open squares alone: most of a maze is wall.

    >>> hands = SquareHands(net, smoothing=0.2)          # as PlainHands, several times faster

The open squares of all problems are rows of one matrix, and an iteration is two matrix products
over them. Losses and gradients are those of `iterant.training.unroll.EagerUnroll` up to rounding: a
rule's walls hold nothing, whatever noise or damage a pool adds. Only the penalty on restless
features differs where walls were damaged, which is no restlessness of the rule's.

Shapes: B batch, W width, K classes, *S space in pixels, *Q space in squares, N open squares.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from iterant.engine import State
from iterant.nets.fast import has_sparse_form
from iterant.nets.fast.packed import neighbours_of
from iterant.nets.local_rule import LocalRule
from iterant.nets.protocol import Net
from iterant.training.objectives import Segment, StepResult
from iterant.training.unroll import EagerUnroll, backward, initial_state

_POOL = {1: functional.avg_pool1d, 2: functional.avg_pool2d}


def fits(net: Net) -> bool:
    """Whether all that counts in this network's answers lies on open squares."""
    if not has_sparse_form(net):
        return False
    return not net.config.masked or net.config.readout == "argmax-open"


class _Around(torch.autograd.Function):
    """(N, W) to (N, D, W): what the neighbours on each of D sides hold, zeros where there is none.

    If I am on your left, you are on my right: the gradient is gathered from the opposite side.
    """

    @staticmethod
    def forward(ctx: Any, held: Tensor, beside: Tensor) -> Tensor:
        ctx.save_for_backward(beside)
        return _with_wall(held)[beside]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (beside,), (gradient,) = ctx.saved_tensors, gradients
        total = _with_wall(gradient[:, 0])[beside[:, 1]]
        for side in range(1, beside.shape[1]):
            total = total + _with_wall(gradient[:, side])[beside[:, side ^ 1]]
        return total, None


class _Near(torch.autograd.Function):
    """(N, W) to (N, W): the sum of what all neighbours hold; its own transpose."""

    @staticmethod
    def forward(ctx: Any, held: Tensor, beside: Tensor) -> Tensor:
        ctx.save_for_backward(beside)
        return _summed(held, beside)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _summed(gradients[0], ctx.saved_tensors[0]), None


def _summed(held: Tensor, beside: Tensor) -> Tensor:
    padded = _with_wall(held)
    total = padded[beside[:, 0]]
    for side in range(1, beside.shape[1]):
        total += padded[beside[:, side]]
    return total


def _with_wall(held: Tensor) -> Tensor:
    return torch.cat([held, held.new_zeros(1, held.shape[1])])


class SparseUnroll(EagerUnroll):
    """The verbs on open squares; advancing is left to the plain way."""

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
        first = initial_state(net, inputs, state, restart)
        memory = net.read(inputs)
        is_open = memory[:, -1].detach().bool()
        places = is_open.flatten().nonzero().flatten()
        term = rows_of(memory[:, :-1])[places]
        beside = neighbours_of(is_open)
        path = [rows_of(first.features)[places]]
        shake = 0.0 if noise is None else rows_of(noise)[places]
        for _ in range(segment.steps):
            path.append(_next(net, path[-1] + shake, term, beside))
        counted = [(share, held) for share, held in zip(self.shares(segment), path[1:], strict=True)
                   if share]  # fmt: skip
        held = torch.stack([held for _, held in counted])
        logits = functional.linear(held, net.head.weight.flatten(1), net.head.bias)
        wanted = self.wanted(inputs, targets)[places]
        loss = self.weighed(logits, wanted, [share for share, _ in counted])
        if segment.settle:
            moved = torch.stack(path)
            total = (moved[1:] - moved[:-1]).abs().sum()
            loss = loss + segment.settle * total / (segment.steps * first.features.numel())
        backward(net, loss * segment.weight, self.scale)

        def state_at(number: int) -> State:
            return self.spread(path[number].detach(), places, is_open, first.step + number)

        kept = None if keep is None else state_at(keep)
        return StepResult(loss.detach(), state_at(segment.steps), kept)

    @staticmethod
    def shares(segment: Segment) -> tuple[float, ...]:
        """What the criterion after every iteration counts; one after the last if none is said."""
        return segment.each or (*[0.0] * (segment.steps - 1), 1.0)

    @staticmethod
    def weighed(logits: Tensor, wanted: Tensor, shares: list[float]) -> Tensor:
        """The criterion of (iterations, N, K) logits, weighted."""
        exact = logits if logits.dtype == torch.float64 else logits.float()
        losses = -(exact.log_softmax(dim=-1) * wanted).sum(dim=(1, 2))
        return (losses * losses.new_tensor(shares)).sum()

    @staticmethod
    def spread(held: Tensor, places: Tensor, is_open: Tensor, step: int) -> State:
        """What open squares hold, (N, W), among walls that hold nothing."""
        dense = held.new_zeros(is_open.numel(), held.shape[1])
        dense[places] = held
        return State(dense.view(*is_open.shape, -1).movedim(-1, 1), step)

    def wanted(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """(squares of all problems, K): how much of each class the loss wants of each square.

        A square answers for all of its pixels; the mean is over a problem's counted pixels, then
        over problems.
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
        of_square = classes.sum(dim=1, keepdim=True)
        wanted = (1 - smoothing) * classes + smoothing / config.classes * of_square
        total = of_square.flatten(1).sum(dim=1).clamp_min(1) * len(inputs)
        return rows_of(wanted / total.view(-1, *[1] * (wanted.dim() - 1)))


def _next(net: LocalRule, held: Tensor, term: Tensor, beside: Tensor) -> Tensor:
    """One iteration of all squares."""
    around: Any = _Near if net.config.summed else _Around
    seen = around.apply(held, beside).flatten(1)
    sight, mix = net.sight.weight.flatten(1), net.mix.weight.flatten(1)
    hidden = torch.relu(torch.addmm(term, torch.cat([held, seen], dim=1), sight.T))
    return torch.tanh(functional.linear(hidden, mix, net.mix.bias))


def rows_of(values: Tensor) -> Tensor:
    """(B, X, *Q) as a row a square."""
    return values.movedim(1, -1).flatten(0, -2)
