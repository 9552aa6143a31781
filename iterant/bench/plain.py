"""The training step as one would write it first, to measure ours against.

    >>> step = PlainStep(net, recipe, device)
    >>> loss = step.update(inputs, targets, moment, factor)

It computes what `iterant.training` computes, and takes the same draws, in the straightforward way
in which the reference implementation works: features and problem are concatenated and convolved
at every iteration; the head reads out every iteration though only the last is used; the iterations
before the stretch are run with gradients, which are then dropped; the full unroll is run at every
update, even where α = 1 gives it no weight. Everything is float32, kernel by kernel.

A test shows that losses and gradients of the two steps are equal.

Draws that stand for all others: a few updates, as long on average as very many.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from iterant.errors import UsageError
from iterant.nets import DeepThinking, FeedForward, Net, PaperNet
from iterant.training.build import build_objective, build_optimizer
from iterant.training.objectives import Progressive
from iterant.training.recipe import Recipe
from iterant.training.rng import StepRng

_GOLDEN = 0.618033988749895
"""Its multiples, without their whole parts, fill the line evenly however many there are."""


@dataclass(frozen=True)
class Even(StepRng):
    """An update of the progressive loss; ``of`` such updates cover all draws evenly.

    A few updates drawn at random may by chance be long or short; these few stand for all.
    """

    of: int

    def whole(self, low: int, high: int, what: str) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        shares = {
            "prefix": (self.update + 0.5) / self.of,
            "stretch": (self.update * _GOLDEN + 0.5) % 1.0,
        }
        return low + int(shares[what] * (high - low + 1))


_CONVOLVE = {1: functional.conv1d, 2: functional.conv2d}


def unrolled(
    net: PaperNet, inputs: Tensor, iterations: int, features: Tensor | None = None, done: int = 0
) -> tuple[Tensor, Tensor]:
    """Logits and features after one or more iterations, on from features after ``done`` of them."""
    start = torch.relu(net.projection(inputs))
    thought = start if features is None else features
    logits = thought.new_empty(0)
    for index in range(done, done + iterations):
        thought = iterated(net, inputs, thought, index)
        logits = net.head(thought)
    return logits, thought


def iterated(net: PaperNet, inputs: Tensor, features: Tensor, index: int) -> Tensor:
    """The features after iteration ``index``, with the problem concatenated to them."""
    if net.recall is not None:
        joined = torch.cat([features, inputs], dim=1)
        features = _CONVOLVE[net.config.dims](joined, net.recall.weight, padding=1)
        if net.config.recall_relu:
            features = torch.relu(features)
    after: Tensor = _blocks(net, index)(features)
    return after


def _blocks(net: PaperNet, index: int) -> nn.Module:
    if isinstance(net, FeedForward):
        return net.blocks[index]
    if isinstance(net, DeepThinking):
        return net.block
    raise UsageError(f"there is no plain step for a {type(net).__name__}; choose a paper network")


def plain_loss(
    net: PaperNet,
    inputs: Tensor,
    targets: Tensor,
    objective: Progressive,
    draw: tuple[int, int],
    smoothing: float = 0.0,
) -> Tensor:
    """The paper's Algorithm 1 with n and k given, as a number with its graph."""
    (n, k), alpha = draw, objective.alpha
    nothing = inputs.new_zeros(())
    whole, _ = unrolled(net, inputs, objective.iterations)
    full = _cross_entropy(net, whole, inputs, targets, smoothing) if alpha != 1 else nothing
    part = nothing
    if alpha != 0:
        features = unrolled(net, inputs, n)[1].detach() if n else None
        logits, _ = unrolled(net, inputs, k, features, done=n)
        part = _cross_entropy(net, logits, inputs, targets, smoothing)
    return (1 - alpha) * full + alpha * part


def _cross_entropy(
    net: PaperNet, logits: Tensor, inputs: Tensor, targets: Tensor, smoothing: float
) -> Tensor:
    """The mean over all positions that count, of all problems together."""
    losses = functional.cross_entropy(logits, targets, reduction="none", label_smoothing=smoothing)
    counted = net.readout.counted(inputs)
    return losses.mean() if counted is None else losses[counted].mean()


def progressive_of(net: Net, recipe: Recipe) -> Progressive:
    """The recipe's objective, where the plain step can train this network by it."""
    objective = build_objective(recipe)
    if not isinstance(objective, Progressive) or not isinstance(net, PaperNet):
        raise UsageError(
            f"the plain step trains the paper's networks by its progressive loss, not "
            f"{recipe.net!r} by {recipe.objective!r}; choose --recipe paper"
        )
    return objective


class PlainStep:
    """One update after another, the plain way, on a copy of the network."""

    def __init__(self, net: Net, recipe: Recipe, device: torch.device) -> None:
        """Take a copy of a paper network; the recipe must have a progressive objective."""
        self.recipe, self.objective = recipe, progressive_of(net, recipe)
        copied: Any = copy.deepcopy(net)
        self.net: PaperNet = copied.to(device)
        self.optimizer = build_optimizer(recipe, self.net)
        for group in self.optimizer.param_groups:
            group["fused"] = None  # what torch does by itself
        for weight in self.net.parameters():
            # As ours: the projection decays in updates that begin after it, too.
            weight.grad = torch.zeros_like(weight)

    def update(self, inputs: Tensor, targets: Tensor, rng: StepRng, factor: float) -> Tensor:
        """One update; returns the loss as a number on the device."""
        self.optimizer.zero_grad(set_to_none=False)
        draw = self.objective.draw(rng)
        smoothing = self.recipe.smoothing
        loss = plain_loss(self.net, inputs, targets, self.objective, draw, smoothing)
        torch.autograd.backward(loss)
        if self.recipe.clip is not None:
            nn.utils.clip_grad_norm_(self.net.parameters(), self.recipe.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.rate * group["share"] * factor
        self.optimizer.step()
        return loss.detach()
