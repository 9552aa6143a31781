"""The answers to one problem by iteration, in bounded memory.

    >>> film = Film(positions=2)
    >>> film.put(Frame(step=1, prediction=np.array([0, 1], dtype=np.uint8), sure=0.4))
    >>> [frame.step for frame in film.changes()]
    [1]

The frames of a film are spread evenly over the iterations: when it is full, every other frame is
dropped and frames are taken half as often from then on. Films of small problems hold every
iteration.

Shapes: B batch, K classes, *S space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.engine import Thought
from iterant.errors import UsageError
from iterant.nets.protocol import readout_of

_BYTES = 16 << 20
_FEWEST, _MOST = 16, 4096


@dataclass(frozen=True)
class Frame:
    """The answer after one iteration."""

    step: int
    prediction: NDArray[np.uint8]
    """(*S)"""
    sure: float
    """The probability of the predicted class at the least confident position"""


class Film:
    """Frames of one problem, at most ``most``."""

    def __init__(self, positions: int, most: int | None = None) -> None:
        """Film a problem of so many positions; ``most=None``: as many frames as fit in 16 MiB."""
        room = _BYTES // max(1, positions) if most is None else most
        self.most = min(max(room, _FEWEST), _MOST) if most is None else room
        if self.most < 2:
            raise UsageError(f"a film holds 2 frames or more, got {most}")
        self.every = 1
        self._frames: list[Frame] = []

    @property
    def frames(self) -> tuple[Frame, ...]:
        """In the order of iterations."""
        return tuple(self._frames)

    def due(self, step: int) -> bool:
        """Whether this iteration gets a frame; the first always does."""
        return (step - 1) % self.every == 0

    def put(self, frame: Frame, *, last: bool = False) -> None:
        """Add a frame if it is due; ``last``: in any case."""
        if self._frames and frame.step <= self._frames[-1].step:
            return
        if len(self._frames) >= self.most:
            self.every *= 2
            self._frames = [old for old in self._frames if self.due(old.step)]
        if last or self.due(frame.step):
            self._frames.append(frame)

    def at(self, step: int) -> Frame:
        """The frame of that iteration, or the last one before it."""
        if not self._frames:
            raise UsageError("the film is empty: nothing was thought about")
        before = [frame for frame in self._frames if frame.step <= step]
        return before[-1] if before else self._frames[0]

    def changes(self) -> tuple[Frame, ...]:
        """The first frame, and every one whose answer differs from the one before."""
        return tuple(
            frame
            for place, frame in enumerate(self._frames)
            if place == 0
            or not np.array_equal(frame.prediction, self._frames[place - 1].prediction)
        )


def least_confidence(thought: Thought) -> Tensor:
    """(B,): the least probability of the predicted class over the positions that count."""
    classes = thought.prediction.unsqueeze(1)
    probability = thought.logits.float().softmax(dim=1).gather(1, classes).squeeze(1)
    counted = readout_of(thought.net).counted(thought.inputs)
    if counted is not None:
        probability = torch.where(counted, probability, 1.0)
    return probability.flatten(1).amin(dim=1)


def frames_of(thought: Thought) -> list[Frame]:
    """The frame of every sample of the batch."""
    predictions = thought.prediction.to(torch.uint8).cpu().numpy()
    return [
        Frame(thought.step, prediction, sure)
        for prediction, sure in zip(predictions, least_confidence(thought).tolist(), strict=True)
    ]
