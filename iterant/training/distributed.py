"""The processes that train together: who takes which rows, and how gradients become one.

    $ torchrun --nproc-per-node 2 -m iterant train prefix-sums --out runs/s0

Each process computes its share of the batch's rows; gradients are averaged, so the update equals
that of one process with the whole batch up to rounding. gloo joins CPUs, NCCL GPUs. Only the
first process writes.
"""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Sequence
from datetime import timedelta

import torch
import torch.distributed as distributed
from torch import Tensor

from iterant.errors import RecipeError, TrainingStopped

PATIENCE = timedelta(minutes=10)
"""How long a process waits for the others before it gives up."""

_parted: list[int] = []


class ProcessGroup:
    """One process on its own; what several do differently is in `Joined`."""

    rank = 0
    size = 1

    def check(self, batch: int) -> None:
        """Refuse a batch that cannot be shared equally."""

    def shard(self, rows: Tensor) -> Tensor:
        """This process's share of the rows."""
        return rows

    def gather(self, rows: Tensor) -> Tensor:
        """All processes' rows, in order."""
        return rows

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its mean over the processes."""

    def any_process(self, flag: bool) -> bool:
        """Whether any process raised its flag: all must leave a loop together."""
        return flag

    def leave(self) -> None:
        """Part from the others, after a failure."""


class Joined(ProcessGroup):
    """Several processes, joined by torch.distributed."""

    def __init__(self, device: torch.device) -> None:
        """Join the processes that torchrun started."""
        # Joined once, for all runs of these processes: torchrun's meeting place serves only once.
        if not distributed.is_initialized():
            if _parted:
                raise TrainingStopped(
                    "the processes parted after a failure; start all of them again"
                )
            backend = "nccl" if device.type == "cuda" else "gloo"
            distributed.init_process_group(backend, timeout=PATIENCE)
            atexit.register(self.leave)
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()
        self._device = device

    def check(self, batch: int) -> None:
        """Refuse a batch that cannot be shared equally."""
        if batch % self.size:
            raise RecipeError(
                f"a batch of {batch} cannot be shared equally by {self.size} processes; "
                f"choose a batch that {self.size} divides"
            )

    def shard(self, rows: Tensor) -> Tensor:
        """This process's share of the rows: equal shares, in order."""
        self.check(len(rows))
        share = len(rows) // self.size
        return rows[self.rank * share : (self.rank + 1) * share]

    def gather(self, rows: Tensor) -> Tensor:
        """All processes' rows, in order."""
        shard = rows.contiguous()  # whatever the layout: what is sent is memory in order
        parts = [torch.empty_like(shard) for _ in range(self.size)]
        self._together(lambda: distributed.all_gather(parts, shard))
        return torch.cat(parts)

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its mean over the processes, in one message."""
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        self._together(lambda: distributed.all_reduce(flat))
        flat /= self.size
        place = 0
        for tensor in tensors:
            tensor.copy_(flat[place : place + tensor.numel()].view_as(tensor))
            place += tensor.numel()

    def any_process(self, flag: bool) -> bool:
        """Whether any process raised its flag."""
        raised = torch.tensor(float(flag), device=self._device)
        self._together(lambda: distributed.all_reduce(raised, op=distributed.ReduceOp.MAX))
        return bool(raised > 0)

    def leave(self) -> None:
        """Part from the others, for good: they notice at once instead of waiting."""
        if distributed.is_initialized():
            _parted.append(self.rank)
            distributed.destroy_process_group()

    def _together(self, talk: object) -> None:
        """Talk to the others; one that is gone ends this process with a clear message."""
        if not callable(talk):
            raise TypeError(talk)
        try:
            talk()
        except RuntimeError as error:
            # Backends begin with a place in their source and end with advice; the cause is between.
            cause = re.sub(r"^\[[^\]]*\] *", "", str(error).strip()).splitlines()[0].split(". ")[0]
            raise TrainingStopped(
                f"process {self.rank} of {self.size} lost contact with another ({cause}); "
                "the last checkpoint is intact: start all of them again with --resume"
            ) from error


def join(device: torch.device) -> ProcessGroup:
    """The crew that this process belongs to: torchrun's if torchrun started it, be it alone."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    return Joined(device) if several or "TORCHELASTIC_RUN_ID" in os.environ else ProcessGroup()
