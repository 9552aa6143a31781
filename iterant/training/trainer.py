"""One optimizer step: gradients, optimizer, loss scale and EMA.

    >>> trainer = Trainer(net, recipe, device)
    >>> loss = trainer.step(inputs, targets, StepRng(seed=0, step=0), lr_factor=1.0)

The optimizer updates float32 parameters. In half precision a copy of the network runs forward and
backward, and its gradients are copied back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from iterant import registry
from iterant.errors import RecipeError, argument
from iterant.nets.fast import can_unroll_messages, fused
from iterant.nets.protocol import Net, check_precision, depth_of
from iterant.rng import StepRng
from iterant.training.cuda_graphs import CapturedCall, GraphUnroll
from iterant.training.distributed import ALONE, ProcessGroup
from iterant.training.objectives import Criterion, Unroll, UserObjective, build_objective
from iterant.training.optim import LossScale, build_optimizer
from iterant.training.recipe import Recipe

_EMA_WARMUP = 10
"""After t steps the decay of the EMA is at most t / (t + 10)."""


class Trainer:
    """A network in training: its parameters, optimizer, EMA and objective."""

    def __init__(
        self,
        net: Net,
        recipe: Recipe,
        device: torch.device,
        processes: ProcessGroup = ALONE,
        objective: UserObjective | None = None,
    ) -> None:
        """``objective``: a user-defined one, or a loss for that of the recipe."""
        uses_pool = recipe.objective == "pool" and not isinstance(objective, type)
        if uses_pool and depth_of(net) is not None:
            raise RecipeError(
                "a network of fixed depth cannot be trained from a pool of states; "
                f"use {argument('objective', 'progressive')}"
            )
        self.recipe, self.device, self.processes = recipe, device, processes
        self.user_objective = objective
        self.objective = build_objective(recipe, processes, objective)
        self._may_draw = ":" in registry.name_of("net", type(net))  # ours draw no random numbers
        module: Any = net
        self.master: nn.Module = module.to(device)
        if device.type == "cuda":
            # Shapes are constant within a run: let cuDNN choose its kernels by timing them once.
            torch.backends.cudnn.benchmark = True
            _make_channels_last(self.master)
        self.dtype: torch.dtype = registry.find("precision", recipe.precision)
        check_precision(net, self.dtype)
        # `master` has the float32 parameters that the optimizer moves. `compute` runs forward and
        # backward: the master itself, or its copy in half precision. `fused` is a faster form of
        # `compute`, or `compute` itself.
        half = self.dtype != torch.float32
        self.compute: Any = copy.deepcopy(self.master).to(self.dtype) if half else self.master
        self.fused: Any = fused(self.compute)
        self.optimizer = build_optimizer(recipe, self.master)
        self.loss_scale: LossScale | None = None
        if self.dtype == torch.float16:
            self.loss_scale = LossScale(device, self.optimizer)
        loss = None if isinstance(objective, type) else objective
        criterion = Criterion(recipe.label_smoothing, recipe.position_loss, loss)
        scale = None if self.loss_scale is None else self.loss_scale.scale
        self.unroll: Unroll
        if device.type == "cuda":
            self.unroll = GraphUnroll(self.fused, self.compute, criterion, scale)
        else:
            sparse = device.type == "cpu" and can_unroll_messages(net)
            self.unroll = Unroll(self.fused, criterion, scale, sparse=sparse)
        self.steps = 0
        """Optimizer steps done"""
        self.ema: dict[str, Tensor] | None = None
        if recipe.ema_decay is not None:
            named = self.master.named_parameters()
            self.ema = {name: weight.detach().clone() for name, weight in named}
        self._ema_weight = torch.ones((), device=device)
        for weight in [*self.master.parameters(), *self.compute.parameters()]:
            if weight.requires_grad and weight.grad is None:
                weight.grad = torch.zeros_like(weight)
        self._apply: Callable[[], None] = self._apply_gradients
        can_capture = processes.size == 1 and "capturable" in self.optimizer.defaults
        if device.type == "cuda" and can_capture:
            for group in self.optimizer.param_groups:
                group["capturable"] = True
                group["lr"] = torch.zeros((), device=device)
            self._apply = CapturedCall(self._apply_gradients)

    def step(self, inputs: Tensor, targets: Tensor, rng: StepRng, lr_factor: float) -> Tensor:
        """One optimizer step; returns the loss, a scalar on the device (reading it waits)."""
        torch._foreach_zero_(_gradients(self.compute))
        with self._seeded(rng):
            loss = self.objective.run(self.unroll, inputs.to(self.dtype), targets, rng)
        if self.loss_scale is not None:
            self.loss_scale.finite_loss.copy_(loss.isfinite())
        for group in self.optimizer.param_groups:
            lr = self.recipe.lr * group["lr_factor"] * lr_factor
            if isinstance(group["lr"], Tensor):  # a captured step reads it from there
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        self.steps += 1
        if self.recipe.ema_decay is not None:
            decay = min(self.recipe.ema_decay, self.steps / (self.steps + _EMA_WARMUP))
            self._ema_weight.fill_(1 - decay)
        self._apply()
        return loss

    @contextmanager
    def _seeded(self, rng: StepRng) -> Iterator[None]:
        """Seed PyTorch's CPU generator, from which a user-defined network may draw dropout."""
        if not self._may_draw:
            yield
            return
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.set_state(rng.generator("dropout").get_state())
            yield

    def _apply_gradients(self) -> None:
        """Step the optimizer, then update everything that depends on the weights."""
        gradients = _gradients(self.master)
        if self.compute is not self.master:
            torch._foreach_copy_(gradients, _gradients(self.compute))
        if self.loss_scale is None:
            self.processes.average(gradients)
        else:  # all processes must adapt their scales alike
            self.processes.average([*gradients, self.loss_scale.finite_loss])
            self.loss_scale.unscale(gradients)
        if self.recipe.grad_clip is not None:
            nn.utils.clip_grad_norm_(self.master.parameters(), self.recipe.grad_clip, foreach=True)
        self.optimizer.step()
        self._sync_copies()
        if self.ema is not None:
            with torch.no_grad():
                pairs = zip(self.ema.values(), self.master.parameters(), strict=True)
                for mean, weight in pairs:
                    mean.lerp_(weight, self._ema_weight)

    @torch.no_grad()
    def _sync_copies(self) -> None:
        """Update the half-precision copy and the fused kernels."""
        if self.compute is not self.master:
            torch._foreach_copy_(list(self.compute.parameters()), list(self.master.parameters()))
        if self.fused is not self.compute:
            self.fused.refresh()

    @torch.no_grad()
    def _copy_buffers(self, source: nn.Module, target: nn.Module) -> None:
        """Copy buffers, which the half-precision copy changes: running means of batch norm."""
        if source is not target:
            for old, new in zip(target.buffers(), source.buffers(), strict=True):
                old.copy_(new)

    @contextmanager
    def with_ema_weights(self) -> Iterator[Net]:
        """The network in evaluation mode, inside the block with EMA weights if there are any."""
        weights, raw = list(self.compute.parameters()), []
        if self.ema is not None:
            raw = [weight.detach().clone() for weight in weights]
            with torch.no_grad():
                torch._foreach_copy_(weights, list(self.ema.values()))
        # User-defined networks may have dropout, and batch norm that they keep in evaluation mode.
        modes = {module: module.training for module in self.compute.modules()}
        self.compute.eval()
        try:
            yield self.compute
        finally:
            for module, mode in modes.items():
                module.training = mode
            if raw:
                with torch.no_grad():
                    torch._foreach_copy_(weights, raw)

    def evaluated_weights(self) -> dict[str, Tensor]:
        """The weights to evaluate and ship, named as in a checkpoint."""
        self._copy_buffers(self.compute, self.master)
        weights = self.master.state_dict()
        if self.ema is not None:  # buffers have none, and tied weights one under several names
            means = dict(zip(self.master.parameters(), self.ema.values(), strict=True))
            named = self.master.named_parameters(remove_duplicate=False)
            weights |= {name: means[weight] for name, weight in named}
        return {f"net.{name}": weight for name, weight in weights.items()}

    def tensors(self) -> dict[str, Tensor]:
        """Everything that the next step depends on, named for a checkpoint."""
        self._copy_buffers(self.compute, self.master)
        scale, states = self.loss_scale, self.optimizer.state_dict()["state"]
        parts: dict[str, dict[str, Tensor]] = {
            "net": self.master.state_dict(),
            "optimizer": {
                f"{index}.{key}": torch.as_tensor(value)
                for index, state in states.items()
                for key, value in state.items()
                if value is not None
            },
            "average": self.ema or {},
            "scaling": {} if scale is None else {"scale": scale.scale, "grown": scale.grown},
            "pool": self.objective.tensors(),
        }
        return {f"{part}.{name}": x for part, named in parts.items() for name, x in named.items()}

    @torch.no_grad()
    def restore(self, tensors: dict[str, Tensor], steps: int) -> None:
        """Restore what `tensors` returned after that many steps."""
        names = ("net", "optimizer", "average", "pool", "scaling")
        parts: dict[str, dict[str, Tensor]] = {name: {} for name in names}
        for name, value in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = value
        self.master.load_state_dict(parts["net"])
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in parts["optimizer"].items():
            index, _, key = name.partition(".")
            state.setdefault(int(index), {})[key] = value
        groups = self.optimizer.state_dict()["param_groups"]  # step() sets the learning rates
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        for weight, moments in self.optimizer.state.items():
            for key, value in moments.items():
                if isinstance(value, Tensor) and value.shape == weight.shape:
                    # Fused optimizers require the strides of the weights.
                    moments[key] = torch.empty_like(weight).copy_(value)
        for name, weight in (self.ema or {}).items():
            weight.copy_(parts["average"][name])
        if self.loss_scale is not None:
            self.loss_scale.scale.copy_(parts["scaling"]["scale"])
            self.loss_scale.grown.copy_(parts["scaling"]["grown"])
        self.objective.restore({name: x.to(self.device) for name, x in parts["pool"].items()})
        self._copy_buffers(self.master, self.compute)
        self._sync_copies()
        self.steps = steps


def _gradients(module: nn.Module) -> list[Tensor]:
    return [weight.grad for weight in module.parameters() if weight.grad is not None]


def _make_channels_last(module: nn.Module) -> None:
    """Lay out convolution kernels channels-last, which tensor cores read fastest."""
    for weight in module.parameters():
        if weight.dim() == 4:
            weight.data = weight.data.contiguous(memory_format=torch.channels_last)
        if weight.dim() == 3:
            weight.data = weight.data.transpose(1, 2).contiguous().transpose(1, 2)
