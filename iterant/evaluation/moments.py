"""When things were done on a device, without waiting for it in between.

    >>> moments = moments_of(torch.device("cuda"), time.perf_counter())
    >>> for thought in think(net, inputs, steps=30):
    ...     moments.note()
    >>> moments.seconds()                                   # waits now, once

A GPU works through what it was given while the program is far ahead: the program's clock would tell
when work was handed over. The GPU notes its own, and is asked at the end.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

import torch


class Moments(Protocol):
    """A clock that notes."""

    def note(self) -> None:
        """Note the moment when all that was asked for until now is done."""

    def seconds(self) -> list[float]:
        """Since the beginning, a number for every note."""


class OfProgram:
    """By the program's clock: what computes while the program waits."""

    def __init__(self, begun: float) -> None:
        """Begun then, by ``time.perf_counter``."""
        self.begun = begun
        self.noted: list[float] = []

    def note(self) -> None:
        """Now."""
        self.noted.append(time.perf_counter())

    def seconds(self) -> list[float]:
        """Since the beginning."""
        return [moment - self.begun for moment in self.noted]


class OfCard:
    """By a GPU's own clock, read once."""

    def __init__(self, device: torch.device, begun: float) -> None:
        """Begun then; what the program did since counts too."""
        self.stream = torch.cuda.current_stream(device)
        self.before = time.perf_counter() - begun
        self.first = self._event()
        self.noted: list[torch.cuda.Event] = []

    def _event(self) -> torch.cuda.Event:
        made: Any = torch.cuda.Event
        event: torch.cuda.Event = made(enable_timing=True)
        event.record(self.stream)
        return event

    def note(self) -> None:
        """When the GPU comes to it."""
        self.noted.append(self._event())

    def seconds(self) -> list[float]:
        """Since the beginning; waits for the last."""
        if self.noted:
            self.noted[-1].synchronize()
        return [self.before + self.first.elapsed_time(event) / 1000 for event in self.noted]


def moments_of(device: torch.device, begun: float) -> Moments:
    """The clock that fits a device; ``begun`` by ``time.perf_counter``."""
    return OfCard(device, begun) if device.type == "cuda" else OfProgram(begun)
