"""The answers to a problem by iteration, in bounded memory.

    >>> film.at(20).prediction, [frame.step for frame in film.changes()]

Shapes: *S space.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

import numpy as np
import torch
from numpy.typing import NDArray

from iterant.engine import Thought
from iterant.nets.protocol import readout_of

_FILM_BYTES, _MIN_FRAMES, _MAX_FRAMES = 16 << 20, 16, 4096


@dataclass(frozen=True)
class Frame:
    """The answer after one iteration."""

    step: int
    prediction: NDArray[np.uint8]
    """(*S)"""
    min_confidence: float
    """The probability of the predicted class at the least confident position"""
    sure = property(attrgetter("min_confidence"))  # its name before 0.2


class Film:
    """The answers to one problem by iteration, in bounded memory.

    The frames are spread evenly over the iterations: when the film is full, every other frame is
    dropped and frames are taken half as often from then on. Films of small problems hold every
    iteration.
    """

    def __init__(self, positions: int) -> None:
        """Keep as many frames of a problem with this many positions as fit in 16 MiB."""
        room = _FILM_BYTES // max(1, positions)
        self.max_frames = min(max(room, _MIN_FRAMES), _MAX_FRAMES)
        self.stride = 1
        """Iterations from one frame to the next"""
        self.frames: list[Frame] = []
        """In the order of iterations"""

    def due(self, step: int) -> bool:
        """Whether this iteration gets a frame; the first always does."""
        return (step - 1) % self.stride == 0

    def put(self, frame: Frame, *, last: bool = False) -> None:
        """Add a frame if it is due; ``last``: in any case."""
        if not (last or self.due(frame.step)):
            return
        if len(self.frames) >= self.max_frames:
            self.stride *= 2
            self.frames = [old for old in self.frames if self.due(old.step)]
        if last or self.due(frame.step):
            self.frames.append(frame)

    def at(self, step: int) -> Frame:
        """The frame of that iteration, or the last one before it."""
        following = bisect_right(self.frames, step, key=lambda frame: frame.step)
        return self.frames[max(0, following - 1)]

    def changes(self) -> list[Frame]:
        """The first frame, and every one whose answer differs from the one before."""
        return self.frames[:1] + [
            frame
            for before, frame in pairwise(self.frames)
            if not np.array_equal(frame.prediction, before.prediction)
        ]


def frames_of(thought: Thought) -> list[Frame]:
    """The frame of every sample of the batch."""
    classes = thought.prediction.unsqueeze(1)
    probability = thought.logits.float().softmax(dim=1).gather(1, classes).squeeze(1)
    counts = readout_of(thought.net).counted(thought.inputs)
    if counts is not None:
        probability = torch.where(counts, probability, 1.0)
    least = probability.flatten(1).amin(dim=1).tolist()
    predictions = thought.prediction.to(torch.uint8).cpu().numpy()
    return [Frame(thought.step, *each) for each in zip(predictions, least, strict=True)]
