"""A straightforward training step, the baseline of benchmarks.

It computes what ours computes, in the straightforward way of the reference implementation: the
problem is concatenated and convolved at every iteration; the head reads out every iteration
although training uses only the last; iterations before the trained segment are run with gradients,
which are dropped; the full unroll is run even where α = 1 gives it no weight. Everything is
float32, kernel by kernel. The loss is restated on purpose: a test compares it with ours.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant.errors import UsageError, argument
from iterant.nets import FeedForward, Net, PaperNet
from iterant.rng import StepRng
from iterant.training.objectives import Progressive, build_objective
from iterant.training.optim import build_optimizer
from iterant.training.recipe import Recipe

_GOLDEN = 0.618033988749895
"""The fractional parts of its multiples are evenly spread, however many there are."""


@dataclass(frozen=True)
class EvenRng(StepRng):
    """Draws n and k of the progressive loss, spread evenly over their range within ``of`` steps.

    A few random draws may happen to be long or short; these have the mean length.
    """

    of: int

    def integer(self, low: int, high: int, what: str) -> int:
        if what == "prefix":
            fraction = (self.step + 0.5) / self.of
        else:
            fraction = (self.step * _GOLDEN + 0.5) % 1.0
        return low + int(fraction * (high - low + 1))


def iterate(net: PaperNet, inputs: Tensor, features: Tensor, index: int) -> Tensor:
    """(N, width, *space) features before -> after iteration ``index``; inputs (N, C, *space)."""
    if net.recall is not None:
        convolve = functional.conv1d if net.config.dims == 1 else functional.conv2d
        features = convolve(torch.cat([features, inputs], dim=1), net.recall.weight, padding=1)
        if net.config.recall_relu:
            features = torch.relu(features)
    block: Any = net.blocks[index] if isinstance(net, FeedForward) else net.block
    after: Tensor = block(features)
    return after


def plain_loss(
    net: PaperNet, inputs: Tensor, targets: Tensor, recipe: Recipe, n: int, k: int
) -> Tensor:
    """The paper's Algorithm 1 for given n and k: a scalar with its graph."""

    def unroll(features: Tensor, first: int, stop: int) -> tuple[Tensor, Tensor]:
        logits = features.new_empty(0)
        for index in range(first, stop):
            features = iterate(net, inputs, features, index)
            logits = net.head(features)
        return logits, features

    def cross_entropy(logits: Tensor) -> Tensor:
        losses = functional.cross_entropy(
            logits, targets, reduction="none", label_smoothing=recipe.label_smoothing
        )
        counted = net.readout.counted(inputs)
        return losses.mean() if counted is None else losses[counted].mean()

    alpha = recipe.alpha
    start = torch.relu(net.projection(inputs))
    full, _ = unroll(start, 0, recipe.iterations)
    loss = (1 - alpha) * cross_entropy(full) if alpha != 1 else inputs.new_zeros(())
    if alpha != 0:
        prefix = unroll(start, 0, n)[1].detach() if n else start
        segment, _ = unroll(prefix, n, n + k)
        loss = loss + alpha * cross_entropy(segment)
    return loss


def progressive_of(net: Net, recipe: Recipe) -> Progressive:
    """The recipe's objective, if the plain step can train this network by it."""
    objective = build_objective(recipe)
    if not isinstance(objective, Progressive) or not isinstance(net, PaperNet):
        raise UsageError(
            f"the plain step trains the paper's networks by its progressive loss, not "
            f"{recipe.net!r} by {recipe.objective!r}; choose {argument('recipe', 'paper')}"
        )
    return objective


class PlainStep:
    """Optimizer steps on a copy of a network."""

    def __init__(self, net: Net, recipe: Recipe, device: torch.device) -> None:
        self.recipe, self.objective = recipe, progressive_of(net, recipe)
        copied: Any = copy.deepcopy(net)
        self.net: PaperNet = copied.to(device)
        self.optimizer = build_optimizer(recipe, self.net)
        for group in self.optimizer.param_groups:
            group["fused"] = None  # torch's default
        for weight in self.net.parameters():
            # As in our step: weight decay also reaches the projection in steps with n > 0.
            weight.grad = torch.zeros_like(weight)

    def step(self, inputs: Tensor, targets: Tensor, rng: StepRng, lr_factor: float) -> Tensor:
        """One optimizer step at ``lr_factor`` times the learning rate; returns the loss."""
        self.optimizer.zero_grad(set_to_none=False)
        n, k = self.objective.draw(rng)
        loss = plain_loss(self.net, inputs, targets, self.recipe, n, k)
        torch.autograd.backward(loss)
        if self.recipe.grad_clip is not None:
            nn.utils.clip_grad_norm_(self.net.parameters(), self.recipe.grad_clip)
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.lr * group["lr_factor"] * lr_factor
        self.optimizer.step()
        return loss.detach()
