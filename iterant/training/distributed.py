"""Data parallelism: several processes train one network.

    $ torchrun --nproc-per-node 2 -m iterant train prefix-sums --out runs/s0

Each process computes its shard of the batch and gradients are averaged, so an optimizer step equals
that of one process with the whole batch up to rounding. CPUs use gloo, GPUs NCCL. Only the first
process writes files.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Sequence
from datetime import timedelta

import torch
import torch.distributed as distributed
from torch import Tensor

from iterant.errors import RecipeError, TrainingStopped, argument

TIMEOUT = timedelta(minutes=10)
"""How long a process waits for the others."""


class ProcessGroup:
    """The processes that train one network: those of torchrun, or this one alone."""

    rank, size = 0, 1

    def __init__(self, device: torch.device | None = None) -> None:
        """Join the processes that torchrun started, if any; without ``device``, this one alone."""
        if device is None or int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return
        # Once per process, for all its runs: torchrun's rendezvous cannot be used twice.
        if not distributed.is_initialized():
            backend = "nccl" if device.type == "cuda" else "gloo"
            distributed.init_process_group(backend, timeout=TIMEOUT)
            atexit.register(self.leave)
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()
        self._device = device

    def check(self, batch: int) -> None:
        if batch % self.size:
            raise RecipeError(
                f"a batch of {batch} cannot be shared equally by {self.size} processes; "
                f"choose a batch_size that {self.size} divides"
            )

    def shard(self, rows: Tensor) -> Tensor:
        """The rows of this process: equal shards, in order."""
        count = len(rows) // self.size
        return rows[self.rank * count : (self.rank + 1) * count]

    def gather(self, rows: Tensor) -> Tensor:
        """The rows of all processes, in order."""
        if self.size == 1:
            return rows
        local = rows.contiguous()  # collectives need contiguous tensors
        parts = [torch.empty_like(local) for _ in range(self.size)]
        self._communicate(lambda: distributed.all_gather(parts, local))
        return torch.cat(parts)

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its mean over the processes, in one all-reduce."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        self._communicate(lambda: distributed.all_reduce(flat))
        flat /= self.size
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def maximum(self, number: int) -> int:
        """The largest number of any process: all must leave a loop together, for one reason."""
        if self.size == 1:
            return number
        value = torch.tensor(int(number), device=self._device)
        self._communicate(lambda: distributed.all_reduce(value, op=distributed.ReduceOp.MAX))
        return int(value)

    def leave(self) -> None:
        """Leave the group, at exit or after a failure, so that the others notice at once."""
        if self.size > 1 and distributed.is_initialized():
            distributed.destroy_process_group()

    def _communicate(self, call: Callable[[], object]) -> None:
        """Run a collective; a lost process ends this one with a clear message."""
        try:
            call()
        except RuntimeError as error:
            cause = str(error).strip().splitlines()[0]
            raise TrainingStopped(
                f"process {self.rank} of {self.size} lost contact with another ({cause}); "
                f"the last checkpoint is intact: start all of them again with {argument('resume')}"
            ) from error


ALONE = ProcessGroup()
