"""The objectives restated with plain loops and autograd, to compare with.

Nothing here shares code with `iterant.training`; random draws are arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from iterant.nets import Net


def parameters(net: Net) -> list[nn.Parameter]:
    assert isinstance(net, nn.Module)
    return list(net.parameters())


def unrolled(net: Net, inputs: Tensor, features: Tensor, steps: int, first: int = 0) -> Tensor:
    """Features after ``steps`` iterations, with gradients."""
    for index in range(first, first + steps):
        features = net.step(features, net.read(inputs), index)
    return features


def loss_of(
    net: Net, features: Tensor, inputs: Tensor, targets: Tensor, smoothing: float = 0.0
) -> Tensor:
    """Cross-entropy, position by position; on images only over open pixels, as for mazes."""
    logits = net.answer(features)
    masked = inputs.dim() == 4 and inputs.shape[1] == 3
    classes = logits.shape[1]
    problems = []
    for row in range(len(inputs)):
        terms = []
        for coordinates in torch.cartesian_prod(
            *[torch.arange(side) for side in targets.shape[1:]]
        ):
            position = tuple(coordinates.reshape(-1).tolist())
            if masked and not any(inputs[(row, c, *position)] > 0 for c in range(3)):
                continue
            scores = logits[(row, slice(None), *position)]
            log_probabilities = scores - scores.exp().sum().log()
            target = torch.full((classes,), smoothing / classes, dtype=scores.dtype)
            target[targets[(row, *position)]] += 1 - smoothing
            terms.append(-(target * log_probabilities).sum())
        problems.append(torch.stack(terms).mean())
    return torch.stack(problems).mean()


def progressive(
    net: Net, inputs: Tensor, targets: Tensor, *, m: int, alpha: float, n: int, k: int
) -> Tensor:
    """Algorithm 1 for one batch and one draw of n and k."""
    full = loss_of(net, unrolled(net, inputs, net.start(inputs), m), inputs, targets)
    start = net.start(inputs)
    if n > 0:
        start = unrolled(net, inputs, start, n).detach()
    part = loss_of(net, unrolled(net, inputs, start, k, first=n), inputs, targets)
    return (1 - alpha) * full + alpha * part


def run_time_weighted(net: Net, inputs: Tensor, targets: Tensor, *, m: int) -> Tensor:
    """A loss after every iteration, the i-th with weight i, weights adding up to one."""
    total = torch.zeros((), dtype=inputs.dtype)
    for i in range(1, m + 1):
        features = unrolled(net, inputs, net.start(inputs), i)
        total = total + i * loss_of(net, features, inputs, targets)
    return total / sum(range(1, m + 1))


def gradients_of(loss: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    """The gradient of every parameter, zeros where none arrives."""
    gradients = torch.autograd.grad(loss, list(weights), allow_unused=True)
    return [
        torch.zeros_like(weight) if gradient is None else gradient
        for weight, gradient in zip(weights, gradients, strict=True)
    ]


def assert_same(ours: Sequence[Tensor], theirs: Sequence[Tensor], tolerance: float) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)
