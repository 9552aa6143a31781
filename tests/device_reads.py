"""How often a program asks a device for numbers, which is waiting where the device is a GPU."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode


class Questions(TorchFunctionMode):
    """Counts what a program waits for a GPU for: numbers that it wants to see."""

    ASKING = frozenset(
        {Tensor.cpu, Tensor.item, Tensor.tolist, Tensor.numpy, Tensor.nonzero,
         Tensor.__bool__, Tensor.__int__, Tensor.__float__, Tensor.__index__}
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func in self.ASKING
        return func(*args, **(kwargs or {}))
