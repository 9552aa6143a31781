"""Prefix sums modulo two: after each bit, the parity of the ones so far.

    >>> task = PrefixSums()
    >>> batch = task.encode("1011001")
    >>> batch.targets
    tensor([[1, 1, 0, 1, 1, 1, 0]])

Shapes: N strings, L bits. Inputs (N, 1, L) are the bits minus one half; targets are (N, L). The
size is the number of bits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.formatting import counted
from iterant.tasks.datasets import Stored
from iterant.tasks.inputs import TEXT, Material, Problem
from iterant.tasks.protocol import (
    Batch,
    Description,
    Glyph,
    Size,
    TaskSpec,
    check_prediction,
    every_position_right,
    whole_number,
)
from iterant.tasks.rng import Stream, problem_numbers

_LARGEST = 10_000_000
_STRIP = 64
"""Bits per row of a drawing; longer strings continue below."""
_COLOURS = np.array([[240, 240, 240], [64, 64, 64], [213, 94, 0], [255, 255, 255]], dtype=np.uint8)
"""Of a 0, a 1, a wrong bit (vermilion, which colour-blind readers tell from both), none."""
_WRONG, _NONE = 2, 3


class PrefixSums:
    """The task: ``PrefixSums().sample(100, size=512, seed=1)``.

    With ``data=PATH`` the strings come from files of the Easy-to-Hard benchmark instead.
    """

    spec = TaskSpec(
        name="prefix-sums",
        title="prefix sums modulo two",
        dims=1,
        channels=1,
        readout="argmax",
        train_size=32,
        train_count=10_000,
        watch_sizes=(48, 64),
        tests=((24, 10_000), (32, 10_000), (48, 10_000), (512, 10_000)),
        size_means="the number of bits, at least 1",
    )

    def __init__(self, data: str | Path | None = None) -> None:
        """Generate strings, or draw them from the files under `data`."""
        self.data = data
        self._stored = None if data is None else Stored(data, channels=self.spec.channels)

    def check_size(self, size: Size | None) -> int:
        """The number of bits if it is valid; 32, or the stored size, for None."""
        if size is None:
            size = (self._stored and self._stored.only_size()) or self.spec.train_size
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise TaskError(
                f"the number of bits must be a whole number of at least 1, got {size!r}; try 32"
            )
        if size > _LARGEST:
            raise TaskError(
                f"strings have at most {_LARGEST:,} bits, got {size:,}: "
                f"longer ones take gigabytes each; try {_LARGEST}"
            )
        return int(size)

    def parse_size(self, text: str) -> int:
        """A number of bits as text: ``"512"``."""
        return self.check_size(whole_number(text, self.spec))

    def sample(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> Batch:
        """Strings ``first … first + count - 1``, every bit a fair coin."""
        length = self.check_size(size)
        if self._stored:
            return self._stored.sample(count, size=length, seed=seed, first=first)
        numbers = problem_numbers(count, first)
        words = Stream(seed, self.spec.name, length).bits(
            numbers[:, None], np.arange(-(-length // 64))[None]
        )
        # Little-endian on every machine, so that the strings are the same everywhere.
        octets = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
        return _batch(np.unpackbits(octets, axis=1, count=length, bitorder="little"))

    def encode(self, problem: str) -> Batch:
        """A string of bits; spaces and underscores between them are ignored."""
        bits = []
        for position, character in enumerate(problem, start=1):
            if character in "01":
                bits.append(int(character))
            elif not (character.isspace() or character == "_"):
                raise TaskError(
                    f"bits are written 0 and 1, got {character!r} at position {position}; "
                    "try 1011001"
                )
        if not bits:
            raise TaskError(f"a string needs at least one bit, got {problem!r}; try 1011001")
        self.check_size(len(bits))
        return _batch(np.array([bits], dtype=np.uint8))

    def split(self, material: Material) -> list[Material]:
        """One string per line."""
        material.only(TEXT, reader="prefix sums")
        return material.lines()

    def read(self, material: Material) -> Problem:
        """One string of bits."""
        return Problem(self.encode(material.text), material.name)

    def solved(self, prediction: Tensor, batch: Batch) -> Tensor:
        """(N,) bool: every bit of the answer right."""
        return every_position_right(prediction, batch)

    def tell(self, batch: Batch, index: int, prediction: Tensor) -> str:
        """The bits of the answer."""
        return "".join(map(str, prediction[index].tolist()))

    def flip(self, batch: Batch, index: int | Tensor) -> Batch:
        """The strings with the bit at ``index`` (one for all, or one each) flipped."""
        length = batch.inputs.shape[-1]
        positions = torch.as_tensor(index, device=batch.inputs.device).expand(len(batch))
        if bool(((positions < 0) | (positions >= length)).any()):
            raise TaskError(f"a bit to flip lies from 0 to {length - 1}, got {index}")
        flipped = torch.nn.functional.one_hot(positions.long(), length).bool()
        inputs = torch.where(flipped.unsqueeze(1), -batch.inputs, batch.inputs)
        # Every answer from the flipped bit on flips too; an unknown one stays -1.
        after = flipped.long().cumsum(dim=1).bool() & (batch.targets >= 0)
        return Batch(inputs, torch.where(after, 1 - batch.targets, batch.targets), batch.extras)

    def describe(
        self, batch: Batch, index: int = 0, prediction: Tensor | None = None
    ) -> Description:
        """The input, the target and the prediction as strips of bits, errors marked."""
        bits = (batch.inputs[index, 0] > 0).cpu().numpy().astype(np.int64)
        truth = batch.targets[index].cpu().numpy()
        strips = [("bits", bits)]
        if prediction is None or bool((truth >= 0).any()):
            strips.append(("answer", truth))
        wrong = np.zeros(len(bits), dtype=np.bool_)
        caption = counted(len(bits), "bit")
        if prediction is not None:
            check_prediction(prediction, batch)
            answer = prediction[index].cpu().numpy().astype(np.int64)
            wrong = (answer != truth) & (truth >= 0)
            strips.append(("predicted", answer))
            caption += f", {int(wrong.sum())} wrong"
        return _strips(strips, wrong, caption)


def _batch(bits: NDArray[np.uint8]) -> Batch:
    """Strings (N, L) with their answers, a running exclusive or."""
    inputs = torch.from_numpy(bits).to(torch.float32).unsqueeze(1) - 0.5
    answers = np.bitwise_xor.accumulate(bits, axis=1)
    return Batch(inputs, torch.from_numpy(answers).to(torch.int64))


def _strips(
    strips: list[tuple[str, NDArray[np.int64]]], wrong: NDArray[np.bool_], caption: str
) -> Description:
    """Strips of bits below each other, wrapped to `_STRIP` columns."""
    width = min(len(wrong), _STRIP)
    title_width = max(len(title) for title, _ in strips)
    lines: list[str] = []
    rows: list[NDArray[np.int64]] = []
    labels: list[str] = []
    glyphs: list[Glyph] = []
    for first in range(0, len(wrong), width):
        part = slice(first, first + width)
        if rows:  # an empty row keeps the continuation apart
            rows.append(np.full(width, _NONE))
            labels.append("")
            lines.append("")
        for title, strip in strips:
            bits = strip[part]
            signs = ["?" if bit < 0 else str(bit) for bit in bits.tolist()]
            for column, sign in enumerate(signs):
                colour = "#ffffff" if sign == "1" else "#000000"
                glyphs.append(Glyph(len(rows), column, sign, colour))
            codes = np.where(bits < 0, _NONE, bits)
            if title == strips[-1][0]:
                codes[wrong[part]] = _WRONG
            rows.append(np.pad(codes, (0, width - len(codes)), constant_values=_NONE))
            labels.append(title)
            lines.append(f"{title:>{title_width}} {''.join(signs)}")
        if wrong[part].any():
            marks = "".join("^" if bad else " " for bad in wrong[part])
            lines.append(f"{'wrong':>{title_width}} {marks}")
    return Description(
        title=PrefixSums.spec.title,
        text="\n".join(line.ljust(title_width + 1 + width) for line in lines),
        cells=_COLOURS[np.stack(rows)],
        glyphs=tuple(glyphs),
        row_labels=tuple(labels),
        caption=caption,
    )
