"""One optimizer step: gradients by the objective, then optimizer, loss scale and EMA.

    >>> trainer = Trainer(net, recipe, device)
    >>> loss = trainer.update(inputs, targets, StepRng(seed=0, update=0), factor=1.0)

The network's own parameters are float32, and the optimizer moves these. In half precision a copy
of the network computes and its gradients are copied back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from iterant import registry
from iterant.errors import NetError, RecipeError
from iterant.formatting import counted
from iterant.nets.fast import trainable_form
from iterant.nets.protocol import Net, depth_of
from iterant.training.build import build_objective
from iterant.training.cuda_graphs import CapturedCall, GraphUnroll
from iterant.training.distributed import ProcessGroup
from iterant.training.objectives import Unroll, Update
from iterant.training.optim import LossScale, build_optimizer
from iterant.training.recipe import Recipe
from iterant.training.replay_pool import ReplayPool
from iterant.training.rng import StepRng
from iterant.training.sparse import SparseUnroll, can_unroll_cells
from iterant.training.unroll import EagerUnroll

_EMA_WARMUP = 10
"""After t steps the decay of the EMA is at most t / (t + 10)."""


class Trainer:
    """A network in training: its parameters, optimizer, EMA and objective."""

    def __init__(
        self,
        net: Net,
        recipe: Recipe,
        device: torch.device,
        processes: ProcessGroup | None = None,
        *,
        capture: bool = True,
    ) -> None:
        """``capture``: use CUDA graphs where there is a GPU."""
        if not isinstance(net, nn.Module):
            raise NetError(f"only an nn.Module can be trained, got {type(net).__name__}")
        self.recipe, self.device, self.processes = recipe, device, processes or ProcessGroup()
        self.objective = build_objective(recipe)
        if (depth := depth_of(net)) is not None and isinstance(self.objective, ReplayPool):
            raise RecipeError(
                f"a network of fixed depth ({counted(depth, 'iteration')}) cannot be trained "
                "from a pool of states; use --objective progressive"
            )
        self.module: nn.Module = net.to(device)
        self.dtype: torch.dtype = registry.find("precision", recipe.precision)
        self.compute = self._compute_copy()
        self.net = _as_net(self.compute)
        self.fast = trainable_form(self.compute)
        self.optimizer = build_optimizer(recipe, self.module)
        self.loss_scale = LossScale(device) if self.dtype == torch.float16 else None
        scale = None if self.loss_scale is None else self.loss_scale.scale
        if self.loss_scale is not None:
            self.loss_scale.attach(self.optimizer)
        self.unroll = self._build_unroll(scale, captured=device.type == "cuda" and capture)
        if self.fast is not None:
            self.fast.pin()
        self.updates = 0
        self.average = (
            None
            if recipe.average is None
            else {name: weight.detach().clone() for name, weight in self.module.named_parameters()}
        )
        self._ema_weight = torch.ones((), device=device)
        for weight in [*self.module.parameters(), *self.compute.parameters()]:
            if weight.requires_grad and weight.grad is None:
                weight.grad = torch.zeros_like(weight)
        self._apply: Callable[[], None] = self._step
        if device.type == "cuda" and capture and type(self.processes) is ProcessGroup:
            self._capture_step()

    def _build_unroll(self, scale: Tensor | None, *, captured: bool) -> Unroll:
        """CUDA graphs on a GPU; on a CPU active cells only, where that is exact; else eager."""
        net, smoothing, places = self.fast or self.net, self.recipe.smoothing, self.recipe.places
        if captured:
            return GraphUnroll(net, self.compute, smoothing, scale, places)
        if self.device.type != "cpu" or places or not can_unroll_cells(self.net):
            return EagerUnroll(net, smoothing, scale, places)
        return SparseUnroll(net, smoothing, scale)

    def _capture_step(self) -> None:
        """Capture the optimizer step as a CUDA graph, where the optimizer allows it."""
        if "capturable" in self.optimizer.defaults:
            for group in self.optimizer.param_groups:
                group["capturable"] = True
                group["lr"] = torch.zeros((), device=self.device)
            self._apply = CapturedCall(self._step)

    def _compute_copy(self) -> nn.Module:
        """The network that computes: the trained one itself, or its copy in half precision."""
        if self.device.type == "cuda":
            # Shapes are constant within a run: let cuDNN choose its kernels by timing them once.
            torch.backends.cudnn.benchmark = True
            self.module = _channels_last(self.module)
        if self.dtype == torch.float32:
            return self.module
        return copy.deepcopy(self.module).to(self.dtype)

    def update(self, inputs: Tensor, targets: Tensor, rng: StepRng, factor: float) -> Tensor:
        """One optimizer step; returns the loss, a scalar on the device (reading it waits)."""
        torch._foreach_zero_(_gradients(self.compute))
        loss = self.objective.run(
            self.unroll, Update(inputs.to(self.dtype), targets, rng, self.processes)
        )
        if self.loss_scale is not None:
            self.loss_scale.see(loss)
        for group in self.optimizer.param_groups:
            rate = self.recipe.rate * group["share"] * factor
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        self.updates += 1
        if self.recipe.average is not None:
            decay = min(self.recipe.average, self.updates / (self.updates + _EMA_WARMUP))
            self._ema_weight.fill_(1 - decay)
        self._apply()
        return loss

    def _step(self) -> None:
        """Step the optimizer, then update everything that depends on the weights."""
        gradients = _gradients(self.module)
        if self.compute is not self.module:
            torch._foreach_copy_(gradients, _gradients(self.compute))
        self.processes.average(gradients)
        if self.loss_scale is not None:
            self.loss_scale.unscale(gradients)
        if self.recipe.clip is not None:
            nn.utils.clip_grad_norm_(self.module.parameters(), self.recipe.clip, foreach=True)
        self.optimizer.step()
        self._sync_copies()

    @torch.no_grad()
    def _sync_copies(self) -> None:
        """Update the half-precision copy, the fused kernels and the EMA."""
        weights: list[Tensor] = list(self.module.parameters())
        if self.compute is not self.module:
            torch._foreach_copy_(list(self.compute.parameters()), weights)
        if self.fast is not None:
            self.fast.refresh()
        if self.average is not None:
            for mean, weight in zip(self.average.values(), weights, strict=True):
                mean.lerp_(weight, self._ema_weight)

    @contextmanager
    def averaged(self) -> Iterator[Net]:
        """The network to evaluate: with EMA weights where the recipe keeps them."""
        if self.average is None:
            yield self.net
            return
        compute = dict(self.compute.named_parameters())
        raw = [compute[name].detach().clone() for name in self.average]
        with torch.no_grad():
            torch._foreach_copy_(
                [compute[name] for name in self.average], list(self.average.values())
            )
        try:
            yield self.net
        finally:
            with torch.no_grad():
                torch._foreach_copy_([compute[name] for name in self.average], raw)

    def evaluated_weights(self) -> dict[str, Tensor]:
        """The weights to evaluate and ship, named as in a checkpoint."""
        weights = {**self.module.state_dict(), **(self.average or {})}  # buffers have no EMA
        return {f"net.{name}": weight for name, weight in weights.items()}

    def tensors(self, *, pool: bool = True) -> dict[str, Tensor]:
        """Everything that the next step depends on, named for a checkpoint."""
        tensors = {f"net.{name}": weight for name, weight in self.module.state_dict().items()}
        for index, state in self.optimizer.state_dict()["state"].items():
            for key, value in state.items():
                if value is not None:
                    tensors[f"optimizer.{index}.{key}"] = torch.as_tensor(value)
        for name, weight in (self.average or {}).items():
            tensors[f"average.{name}"] = weight
        if self.loss_scale is not None:
            tensors |= {
                f"scaling.{name}": value for name, value in self.loss_scale.tensors().items()
            }
        if pool and isinstance(self.objective, ReplayPool):
            tensors |= {f"pool.{name}": value for name, value in self.objective.tensors().items()}
        return tensors

    @torch.no_grad()
    def restore(self, tensors: dict[str, Tensor], updates: int) -> None:
        """Restore what `tensors` returned after ``updates`` steps."""
        names = ("net", "optimizer", "average", "pool", "scaling")
        parts: dict[str, dict[str, Tensor]] = {name: {} for name in names}
        for name, value in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = value
        self.module.load_state_dict(parts["net"])
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in parts["optimizer"].items():
            index, _, key = name.partition(".")
            state.setdefault(int(index), {})[key] = value
        groups = self.optimizer.state_dict()["param_groups"]  # rates are set at every update
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        _lay_out_like_weights(self.optimizer)
        for name, weight in (self.average or {}).items():
            weight.copy_(parts["average"][name])
        if self.loss_scale is not None:
            self.loss_scale.restore(parts["scaling"])
        if isinstance(self.objective, ReplayPool):
            slots = {name: value.to(self.device) for name, value in parts["pool"].items()}
            self.objective.restore(slots)
        if self.compute is not self.module:
            torch._foreach_copy_(list(self.compute.parameters()), list(self.module.parameters()))
        if self.fast is not None:
            self.fast.refresh()
        self.updates = updates


def _gradients(module: nn.Module) -> list[Tensor]:
    return [weight.grad for weight in module.parameters() if weight.grad is not None]


def _lay_out_like_weights(optimizer: torch.optim.Optimizer) -> None:
    """Give restored moments the strides of their weights, which fused optimizers require."""
    for weight, state in optimizer.state.items():
        for key, value in state.items():
            if isinstance(value, Tensor) and value.shape == weight.shape:
                state[key] = torch.empty_like(weight).copy_(value)


def _channels_last(module: nn.Module) -> nn.Module:
    """Convolution kernels in channels-last layout, which tensor cores read fastest."""
    for weight in module.parameters():
        if weight.dim() == 4:
            weight.data = weight.data.contiguous(memory_format=torch.channels_last)
        if weight.dim() == 3:
            weight.data = weight.data.transpose(1, 2).contiguous().transpose(1, 2)
    return module


def _as_net(module: nn.Module) -> Net:
    if not isinstance(module, Net):
        raise NetError(f"{type(module).__name__} lacks one of: read, start, step, answer")
    return module
