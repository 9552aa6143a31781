"""Training in float16: the loss is scaled so that small gradients do not vanish.

float16 has as fine a mantissa as the GPU's TF32, which plain float32 training uses, and eight
times as fine a one as bfloat16; but its smallest numbers are large. The scale grows while all is
well and is halved when a gradient overflows; that update is then left out. So is one whose loss is
no number, but that is no fault of the scale, which stays. Nothing here waits for the device, so
that it can be captured.
"""

from __future__ import annotations

import torch
from torch import Tensor

_GROW_EVERY = 2000
"""Updates without an overflow after which the scale is doubled."""

_LEAST = 1.0
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
        self.scale.clamp_(min=_LEAST)

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint must hold."""
        return {"scale": self.scale, "grown": self.grown}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what a checkpoint held."""
        self.scale.copy_(tensors["scale"])
        self.grown.copy_(tensors["grown"])
