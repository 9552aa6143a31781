"""The device that a command line names, refused where torch has it and nothing computes on it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from iterant.errors import UsageError

_KINDS = ("auto", "cpu", "cuda", "mps")


def _check(_: object, word: str) -> None:
    """Raise UsageError for what is no computer here: torch also knows meta, xla and others."""
    kind = word.partition(":")[0]
    if kind not in _KINDS:
        raise UsageError(f"unknown device {word!r}; use auto, cpu, cuda or cuda:0")
    if kind == "mps":
        import torch

        if not torch.backends.mps.is_available():
            raise UsageError(
                f"device {word!r} was asked for and no Apple GPU is there; use --device cpu"
            )


DeviceName = Annotated[str, Parameter(help="auto, cpu, cuda or cuda:0", validator=_check)]
