"""The device that a command line names, refused where torch has it and nothing computes on it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter


def _check(_: object, word: str) -> None:
    """Raise UsageError for what is no computer here; whether a GPU is there is asked later."""
    if word != "auto":
        from iterant.training.devices import device_named

        device_named(word)


DeviceName = Annotated[str, Parameter(help="auto, cpu, cuda or cuda:0", validator=_check)]
