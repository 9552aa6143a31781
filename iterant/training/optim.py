"""Optimizers, learning-rate schedules and loss scaling.

    >>> optimizer = build_optimizer(recipe, net)
    >>> lr_factor(recipe, step=0, steps_per_epoch=80)

Muon is orthogonalised momentum (Newton–Schulz) for matrix parameters, Adam for the rest. The
gradients of a kernel that all iterations share are dominated by a few directions; Muon moves along
all of them equally (Jordan et al., 2024). A kernel is the matrix (outputs, inputs × positions), and
its update is scaled to the RMS of a usual Adam update, so that learning rates mean the same (Liu
et al., 2025).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from iterant.training.recipe import Recipe

_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients of the odd polynomial that takes every singular value near 1."""
_NEWTON_SCHULZ_STEPS = 5
_ADAM_RMS = 0.2
"""Root mean square of a usual Adam update."""
_EPSILON = 1e-8
_GROWTH_INTERVAL = 2000
"""Steps without an overflow after which the loss scale is doubled."""
_MIN_SCALE = 1.0
"""Smallest loss scale: gradients divided by one near zero would become infinite."""


def build_optimizer(recipe: Recipe, net: nn.Module) -> torch.optim.Optimizer:
    """The optimizer; ``throttle`` divides the recurrent parameters' learning rate by m."""
    recurrent: Any = getattr(net, "recurrent", [])
    matrices = frozenset(id(weight) for weight in getattr(net, "hidden_weights", recurrent))
    slow = {id(weight) for weight in recurrent} if recipe.throttle else set()
    others = [weight for weight in net.parameters() if id(weight) not in slow]
    throttled = [weight for weight in net.parameters() if id(weight) in slow]
    groups = [
        {"params": params, "lr_factor": factor, "matrices": matrices}
        for params, factor in ((others, 1.0), (throttled, 1 / recipe.iterations))
        if params
    ]
    lr, decay, betas = recipe.lr, recipe.weight_decay, (0.9, recipe.beta2)
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(
            groups, lr=lr, momentum=recipe.momentum, weight_decay=decay, fused=True
        )
    if recipe.optimizer == "muon":
        return Muon(groups, lr=lr, momentum=recipe.momentum, betas=betas, weight_decay=decay)
    adam = torch.optim.Adam if recipe.optimizer == "adam" else torch.optim.AdamW
    return adam(groups, lr=lr, betas=betas, weight_decay=decay, fused=True)


def lr_factor(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """Factor of the learning rate at an optimizer step: warm-up times schedule.

    The last epoch of the warm-up has the full rate already, as in the authors' code.
    """
    epoch, progress = step // steps_per_epoch, step / (steps_per_epoch * recipe.epochs)
    warm = 1.0
    if epoch + 1 < recipe.warmup_epochs:
        warm = 1 - math.exp(-(epoch + 1) / recipe.warmup_epochs)
    if step < recipe.warmup_steps:
        warm *= (step + 1) / recipe.warmup_steps
    if recipe.schedule == "steps":
        return warm * recipe.lr_decay ** sum(epoch >= milestone for milestone in recipe.milestones)
    if recipe.schedule == "cosine":  # half a cosine from 1 to 0 over the whole run
        return warm * 0.5 * (1 + math.cos(math.pi * progress))
    if recipe.schedule == "wsd":  # constant for a share of the run, then linear to 0
        return warm * min(1.0, (1 - progress) / (1 - recipe.stable_fraction))
    return warm


class Muon(torch.optim.Optimizer):
    """Orthogonalised momentum for the weights in a group's ``matrices``, AdamW for the others."""

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float, **options: Any) -> None:
        """``options``: momentum, betas, weight_decay.

        ``matrices`` of a group: ids of the parameters to be orthogonalised.
        """
        defaults = {"lr": lr, "momentum": 0.95, "betas": (0.9, 0.95), "weight_decay": 0.0}
        defaults |= {"matrices": frozenset(), "capturable": False}
        super().__init__(groups, defaults | options)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One optimizer step; does not wait for the device."""
        # LossScale sets found_inf: 1 where gradients overflowed, and the step is skipped.
        overflow: Tensor | None = vars(self).get("found_inf")
        for group in self.param_groups:
            matrices: dict[Tensor, Tensor] = {}  # gradients by parameter
            others: dict[Tensor, Tensor] = {}
            for weight in group["params"]:
                if weight.grad is not None:
                    gradient = weight.grad
                    if overflow is not None:
                        gradient = gradient.where(overflow == 0, 0.0)
                    (matrices if id(weight) in group["matrices"] else others)[weight] = gradient
            # After an overflow the learning rate is 0: nothing moves, and nothing waits.
            lr = group["lr"] * (1.0 if overflow is None else 1 - overflow)
            directions = {**self._orthogonal(matrices, group), **self._adam(others, group)}
            for weight, direction in directions.items():
                weight.mul_(1 - lr * group["weight_decay"]).sub_(direction * lr)

    def _orthogonal(
        self, gradients: dict[Tensor, Tensor], group: dict[str, Any]
    ) -> dict[Tensor, Tensor]:
        """Nesterov momentum, orthogonalised; kernels of one shape are batched."""
        by_shape: dict[torch.Size, dict[Tensor, Tensor]] = {}
        for weight, gradient in gradients.items():
            state = self.state[weight]
            if not state:
                state["first"] = torch.zeros_like(weight)
            first = state["first"]
            first.mul_(group["momentum"]).add_(gradient)
            # (outputs, inputs × positions)
            momentum = (gradient + group["momentum"] * first).flatten(1)
            by_shape.setdefault(weight.shape, {})[weight] = momentum
        directions: dict[Tensor, Tensor] = {}
        for momenta in by_shape.values():
            matrices = orthogonal(torch.stack(list(momenta.values())))  # (N, R, C)
            # An orthogonal (R, C) matrix has entries of RMS 1 / sqrt(max(R, C)).
            matrices = matrices * (_ADAM_RMS * max(matrices.shape[1:]) ** 0.5)
            for weight, matrix in zip(momenta, matrices, strict=True):
                directions[weight] = matrix.view(weight.shape)
        return directions

    def _adam(self, gradients: dict[Tensor, Tensor], group: dict[str, Any]) -> dict[Tensor, Tensor]:
        directions: dict[Tensor, Tensor] = {}
        beta1, beta2 = group["betas"]
        for weight, gradient in gradients.items():
            state = self.state[weight]
            if not state:
                state["first"], state["second"] = torch.zeros_like(weight), torch.zeros_like(weight)
                state["step"] = torch.zeros((), device=weight.device)
            state["step"] += 1
            first = state["first"].lerp_(gradient, 1 - beta1)
            second = state["second"].lerp_(gradient * gradient, 1 - beta2)
            mean = first / (1 - beta1 ** state["step"])  # both without the bias to zero
            square = second / (1 - beta2 ** state["step"])
            directions[weight] = mean / (square.sqrt() + _EPSILON)
        return directions


def orthogonal(matrices: Tensor) -> Tensor:
    """(N, R, C) matrices with their singular values brought near 1, in float32."""
    a, b, c = _NEWTON_SCHULZ
    tall = matrices.shape[1] > matrices.shape[2]
    # bfloat16 is precise enough on a GPU, since the singular values need not be exact.
    dtype = torch.bfloat16 if matrices.is_cuda else matrices.dtype
    x = matrices.mT if tall else matrices
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + _EPSILON)).to(dtype)
    for _ in range(_NEWTON_SCHULZ_STEPS):
        square = x @ x.mT  # (N, R, R)
        x = a * x + (b * square + c * square @ square) @ x
    result: Tensor = x.mT if tall else x
    return result.to(matrices.dtype)


class LossScale:
    """The loss scale of float16 training; never waits for the device, so it can be captured.

    It grows while gradients are finite and is halved when one overflows; that optimizer step is
    skipped. A step whose loss is not finite is skipped too, but leaves the scale alone. torch's
    GradScaler does the latter differently and cannot be part of a CUDA graph.
    """

    def __init__(self, device: torch.device, optimizer: torch.optim.Optimizer) -> None:
        """Start at 2**16; the optimizer skips steps whose gradients overflowed."""
        self.scale = torch.full((), 2.0**16, device=device)
        self.grown = torch.zeros((), dtype=torch.int32, device=device)
        """Steps since the last overflow or growth (torch: growth tracker)"""
        self.overflow = torch.zeros((), device=device)
        self.finite_loss = torch.ones((), device=device)
        """1 if the loss is finite, of several processes in all of them; else less"""
        # torch's fused optimizers skip a step by this attribute, which GradScaler sets, too.
        vars(optimizer)["found_inf"] = self.overflow

    def unscale(self, gradients: list[Tensor]) -> None:
        """Divide the gradients by the scale, note an overflow, and adapt the scale."""
        self.overflow.zero_()
        torch._amp_foreach_non_finite_check_and_unscale_(
            gradients, self.overflow, self.scale.reciprocal()
        )
        overflow = self.overflow * self.finite_loss.floor()
        torch._amp_update_scale_(self.scale, self.grown, overflow, 2.0, 0.5, _GROWTH_INTERVAL)
        self.scale.clamp_(min=_MIN_SCALE)
