"""Prefix sums modulo two: after each bit, the parity of the ones so far.

    >>> task = PrefixSums()
    >>> batch = task.encode("1011001")
    >>> batch.targets
    tensor([[1, 1, 0, 1, 1, 1, 0]])

Shapes: N strings, L bits. Inputs (N, 1, L) are the bits minus one half; targets are (N, L). The
size is the number of bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import TaskError
from iterant.formatting import counted
from iterant.rng import Stream
from iterant.tasks.datasets import StoredProblems
from iterant.tasks.inputs import Material
from iterant.tasks.protocol import (
    Batch,
    Description,
    Glyph,
    SizedTask,
    TaskSpec,
    check_described,
)

_STRIP = 64
"""Bits per row of a drawing; longer strings continue below."""
_UNKNOWN, _NONE = 2, 3
_SIGNS = "01? "
"""Characters of a 0, a 1, an unknown bit and no bit."""
_COLOURS = np.array([[240] * 3, [64] * 3, [255] * 3, [255] * 3], dtype=np.uint8)
_WRONG = (213, 94, 0)
"""Vermilion, for colour-blind readers."""


class PrefixSums(SizedTask):
    """The task: ``PrefixSums().sample(100, size=512, seed=1)``.

    With ``data=PATH`` the strings come from files of the Easy-to-Hard benchmark instead.
    """

    spec = TaskSpec(
        name="prefix-sums",
        title="prefix sums modulo two",
        dims=1,
        channels=1,
        train_size=32,
        watch_sizes=(48, 64),
        tests=((24, 10_000), (32, 10_000), (48, 10_000), (512, 10_000)),
        size_means="the number of bits, at least 1",
    )

    def __init__(self, data: str | Path | None = None) -> None:
        self.data = data
        self.stored = None if data is None else StoredProblems(data, self.spec.channels)

    def _generate(self, size: int, seed: int, numbers: NDArray[np.int64]) -> Batch:
        """The strings of these numbers, every bit a fair coin."""
        words = Stream(seed, self.spec.name, size).bits(
            numbers[:, None], np.arange(-(-size // 64))[None]
        )
        # Little-endian on every machine, so that the strings are the same everywhere.
        octets = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
        return _batch(np.unpackbits(octets, axis=1, count=size, bitorder="little"))

    def encode(self, problem: str) -> Batch:
        """A string of bits; spaces and underscores between them are ignored."""
        bits = "".join(problem.replace("_", " ").split())
        if not bits or set(bits) - set("01"):
            strange = next((sign for sign in bits if sign not in "01"), "nothing")
            raise TaskError(f"bits are written 0 and 1, got {strange!r}; try 1011001")
        self.check_size(len(bits))
        return _batch(np.frombuffer(bits.encode(), np.uint8)[None] - ord("0"))

    def split(self, material: Material) -> Iterable[Material]:
        """One string per line."""
        return material.lines()

    def answer_text(self, batch: Batch, index: int, prediction: Tensor) -> str:
        return "".join(map(str, prediction[index].tolist()))

    tell = answer_text  # its name before 0.2

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
        check_described(batch, index, prediction)
        bits = (batch.inputs[index, 0] > 0).cpu().numpy().astype(np.int64)
        truth = batch.targets[index].cpu().numpy()
        strips = {"bits": bits}
        if prediction is None or bool((truth >= 0).any()):
            strips["answer"] = np.where(truth < 0, _UNKNOWN, truth)
        caption = counted(len(bits), "bit")
        if prediction is not None:
            strips["predicted"] = prediction[index].cpu().numpy().astype(np.int64)
        codes = np.stack(list(strips.values()))  # (strips, L)
        wrong = np.zeros(codes.shape, dtype=np.bool_)
        if prediction is not None:
            wrong[-1] = (codes[-1] != truth) & (truth >= 0)
            caption += f", {int(wrong.sum())} wrong"
        rows, is_wrong = _wrapped(codes, _NONE), _wrapped(wrong, False)
        labels = tuple([*strips, ""] * len(rows))[: len(rows)]
        margin = max(map(len, labels))
        lines: list[str] = []
        for label, codes, marks in zip(labels, rows.tolist(), is_wrong, strict=True):
            lines.append(f"{label:>{margin}} {''.join(_SIGNS[code] for code in codes)}")
            if marks.any():
                lines.append(f"{'wrong':>{margin}} {''.join(np.where(marks, '^', ' '))}")
        cells = _COLOURS[rows]
        cells[is_wrong] = _WRONG
        return Description(
            title=self.spec.title,
            text="\n".join(lines),
            cells=cells,
            glyphs=tuple(
                Glyph(row, column, _SIGNS[code], "#ffffff" if code == 1 else "#000000")
                for (row, column), code in np.ndenumerate(rows)
                if code != _NONE
            ),
            row_labels=labels,
            caption=caption,
        )


def _wrapped(strips: NDArray[Any], fill: int) -> NDArray[Any]:
    """(n, L) strips below each other, wrapped to `_STRIP` columns, with an empty row between."""
    width = min(strips.shape[1], _STRIP)
    padded = np.pad(strips, ((0, 1), (0, -strips.shape[1] % width)), constant_values=fill)
    return padded.reshape(len(padded), -1, width).swapaxes(0, 1).reshape(-1, width)[:-1]


def _batch(bits: NDArray[np.uint8]) -> Batch:
    """Strings (N, L) with their answers, a running exclusive or."""
    inputs = torch.from_numpy(bits).to(torch.float32).unsqueeze(1) - 0.5
    answers = np.bitwise_xor.accumulate(bits, axis=1)
    return Batch(inputs, torch.from_numpy(answers).to(torch.int64))
