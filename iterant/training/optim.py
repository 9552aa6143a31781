"""Muon: momentum whose singular values are all made alike before the weights move.

    >>> optimizer = Muon([{"params": weights, "matrices": {id(kernel)}}], rate=2e-3)

The gradients of a kernel that every iteration shares are dominated by a few directions; an update
that moves along all of them equally learns faster (Jordan and others, 2024). A kernel is the matrix
(outputs, inputs × positions). Its update has the root mean square of a usual Adam update, so that
rates mean the same (Liu and others, 2025). Weights that are no matrices between features, such as
the projection's and the head's, are moved by Adam with decoupled weight decay.

Training in float16: the loss is scaled so that small gradients do not vanish.

float16 has as fine a mantissa as the GPU's TF32, which plain float32 training uses, and eight
times as fine a one as bfloat16; but its smallest numbers are large. The scale grows while all is
well and is halved when a gradient overflows; that update is then left out. So is one whose loss is
no number, but that is no fault of the scale, which stays. Nothing here waits for the device, so
that it can be captured.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the odd polynomial that takes every singular value near 1: steep at 0, flat at 1."""
_TIMES = 5
_ADAM = 0.2
"""Root mean square of a usual Adam update."""
_LEAST = 1e-8

Move = tuple[Tensor, Tensor]
"""A weight and its direction."""


class Muon(torch.optim.Optimizer):
    """Orthogonalised momentum for the weights that a group calls matrices, AdamW for the others."""

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        rate: float = 1e-3,
        *,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.95),
        weight_decay: float = 0.0,
    ) -> None:
        """Groups of parameters; ``matrices`` of a group: ids of those to be orthogonalised."""
        defaults = {
            "lr": rate, "momentum": momentum, "betas": betas, "weight_decay": weight_decay,
            "matrices": frozenset(), "capturable": False,
        }  # fmt: skip
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Move the weights by their gradients; nothing here waits for the device."""
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            matrices = [weight for weight in weights if id(weight) in group["matrices"]]
            others = [weight for weight in weights if id(weight) not in group["matrices"]]
            rate = group["lr"] * self._sound
            moves = (*self._orthogonal(matrices, group), *self._adam(others, group))
            for weight, move in moves:
                weight.mul_(1 - rate * group["weight_decay"]).sub_(move * rate)

    @property
    def _sound(self) -> Tensor | float:
        """0 where gradients overflowed (`iterant.training.optim` tells), 1 else."""
        overflow: Tensor | None = vars(self).get("found_inf")
        return 1.0 if overflow is None else 1 - overflow

    def _orthogonal(self, weights: list[Tensor], group: dict[str, Any]) -> list[Move]:
        """Nesterov momentum, orthogonalised; kernels of one shape together."""
        alike: dict[torch.Size, list[Tensor]] = {}
        for weight in weights:
            alike.setdefault(weight.shape, []).append(weight)
        moves: list[Move] = []
        for kernels in alike.values():
            ahead = []
            for weight in kernels:
                first = self._state(weight, "first")
                gradient = self._gradient(weight)
                first.mul_(group["momentum"]).add_(gradient)
                ahead.append((gradient + group["momentum"] * first).flatten(1))
            made = orthogonal(torch.stack(ahead))
            made = made * (_ADAM * max(made.shape[1:]) ** 0.5)
            moves += [
                (weight, move.view(weight.shape))
                for weight, move in zip(kernels, made, strict=True)
            ]
        return moves

    def _adam(self, weights: list[Tensor], group: dict[str, Any]) -> list[Move]:
        """Adam's direction for every weight."""
        moves: list[Move] = []
        slow, slower = group["betas"]
        for weight in weights:
            first, second = self._state(weight, "first"), self._state(weight, "second")
            step = self._state(weight, "step", torch.zeros((), device=weight.device))
            step += 1
            gradient = self._gradient(weight)
            first.lerp_(gradient, 1 - slow)
            second.lerp_(gradient * gradient, 1 - slower)
            mean, square = first / (1 - slow**step), second / (1 - slower**step)
            moves.append((weight, mean / (square.sqrt() + _LEAST)))
        return moves

    def _gradient(self, weight: Tensor) -> Tensor:
        """A weight's gradient, zero where it overflowed."""
        gradient = torch.zeros_like(weight) if weight.grad is None else weight.grad
        overflow: Tensor | None = vars(self).get("found_inf")
        return gradient if overflow is None else gradient.where(overflow == 0, 0.0)

    def _state(self, weight: Tensor, name: str, first: Tensor | None = None) -> Tensor:
        """What is remembered of a weight, zeros like it at first."""
        state: dict[str, Tensor] = self.state[weight]
        if name not in state:
            state[name] = torch.zeros_like(weight) if first is None else first
        return state[name]


def orthogonal(matrices: Tensor) -> Tensor:
    """(N, R, C) matrices with their singular values brought near 1, in float32."""
    rate, cubed, fifth = _COEFFICIENTS
    turned = matrices.shape[1] > matrices.shape[2]
    # The products are most of the work; bfloat16 is fine enough, for the values need not be exact.
    kind = torch.bfloat16 if matrices.is_cuda else matrices.dtype
    x = matrices.mT if turned else matrices
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + _LEAST)).to(kind)
    for _ in range(_TIMES):
        square = x @ x.mT
        x = rate * x + (cubed * square + fifth * square @ square) @ x
    made: Tensor = x.mT if turned else x
    return made.to(matrices.dtype)


_GROW_EVERY = 2000
"""Updates without an overflow after which the scale is doubled."""

_LEAST_SCALING = 1.0
"""The smallest scale: dividing by one that has come near zero would make numbers infinite."""


class Scaling:
    """The scale of the loss, and whether the last gradients overflowed."""

    def __init__(self, device: torch.device) -> None:
        """Begin at 2**16."""
        self.scale = torch.full((), 2.0**16, device=device)
        self.grown = torch.zeros((), dtype=torch.int32, device=device)
        self.overflow = torch.zeros((), device=device)
        self.sound = torch.ones((), device=device)

    def attach(self, optimizer: torch.optim.Optimizer) -> None:
        """Let a fused optimiser leave out updates whose gradients overflowed."""
        vars(optimizer)["found_inf"] = self.overflow

    def see(self, loss: Tensor) -> None:
        """Note whether the update's loss is a number."""
        self.sound.copy_(loss.isfinite())

    def unscale(self, gradients: list[Tensor]) -> None:
        """Divide the gradients by the scale, note an overflow, and adapt the scale."""
        self.overflow.zero_()
        torch._amp_foreach_non_finite_check_and_unscale_(
            gradients, self.overflow, self.scale.reciprocal()
        )
        torch._amp_update_scale_(
            self.scale, self.grown, self.overflow * self.sound, 2.0, 0.5, _GROW_EVERY
        )
        self.scale.clamp_(min=_LEAST_SCALING)

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must hold."""
        return {"scale": self.scale, "grown": self.grown}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what a checkpoint held."""
        self.scale.copy_(tensors["scale"])
        self.grown.copy_(tensors["grown"])
