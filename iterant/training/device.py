"""Devices by name.

>>> device_of("auto")
device(type='cpu')
"""

from __future__ import annotations

import os

import torch

from iterant.errors import UsageError


def device_of(word: str = "auto") -> torch.device:
    """The device of that name; ``auto`` is the GPU if there is one.

    Each process of torchrun takes the GPU of its local rank.
    """
    if word == "auto":
        word = "cuda" if torch.cuda.is_available() else "cpu"
    device = device_named(word)
    if device.type == "cuda":
        if device.index is None:
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if count <= device.index:
            raise UsageError(
                f"device {str(device)!r} was asked for and {count or 'no'} GPU is there; "
                "use --device cpu"
            )
    return device


def device_named(word: str) -> torch.device:
    """The device of that name, whether or not there is such a GPU; UsageError if unknown."""
    unknown = UsageError(f"unknown device {word!r}; use auto, cpu, cuda or cuda:0")
    try:
        device = torch.device(word)
    except RuntimeError as error:
        raise unknown from error
    if device.type not in ("cpu", "cuda", "mps"):  # torch has more: meta, xla
        raise unknown
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UsageError(
            f"device {word!r} was asked for and no Apple GPU is there; use --device cpu"
        )
    return device
