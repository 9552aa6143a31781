"""Prefix sums: the benchmark's contract, the oracle, and what is refused."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iterant.errors import TaskError
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch

TASK = PrefixSums()


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 512])
def test_answers_are_running_parities(size: int) -> None:
    batch = TASK.sample(20, size=size, seed=3)
    assert batch.inputs.shape == (20, 1, size)
    assert set(np.unique(batch.inputs.numpy()).tolist()) <= {-0.5, 0.5}
    for row, answer in zip(batch.inputs[:, 0], batch.targets, strict=True):
        bits = [int(value) for value in row + 0.5]
        assert answer.tolist() == list(itertools.accumulate(bits, operator.xor))


def test_encoding() -> None:
    batch = TASK.encode("10 11_001")
    assert batch.inputs.tolist() == [[[0.5, -0.5, 0.5, 0.5, -0.5, -0.5, 0.5]]]
    assert batch.targets.tolist() == [[1, 1, 0, 1, 1, 1, 0]]


@pytest.mark.parametrize(
    ("text", "sign"),
    [("", "nothing"), (" _ ", "nothing"), ("1021", "2"), ("11a0b", "a"), ("1\u0661", "\u0661")],
)
def test_wrong_strings_are_refused(text: str, sign: str) -> None:
    with pytest.raises(TaskError, match=f"bits are written 0 and 1, got '{sign}'") as caught:
        TASK.encode(text)
    assert "\n" not in str(caught.value)


def test_description_marks_what_is_wrong() -> None:
    batch = TASK.encode("1011001")
    answer = batch.targets.clone()
    answer[0, 2] ^= 1
    drawn = TASK.describe(batch, prediction=answer)
    assert drawn.text.splitlines() == [
        "     bits 1011001",
        "   answer 1101110",
        "predicted 1111110",
        "    wrong   ^    ",
    ]
    assert drawn.cells[2, 2].tolist() == [213, 94, 0]
    assert [glyph.text for glyph in drawn.glyphs if glyph.row == 0] == list("1011001")
    assert "1 wrong" in drawn.caption
    assert "wrong" not in TASK.describe(batch, prediction=batch.targets).text
    unknown = Batch(batch.inputs, torch.full_like(batch.targets, -1))
    assert TASK.describe(unknown).text.splitlines()[1] == "answer ???????"


def test_long_strings_are_drawn_in_rows_of_64_with_an_empty_row_between() -> None:
    text = TASK.describe(TASK.encode("10" * 65)).text
    lines = [line.split() for line in text.splitlines()]
    assert [line[0] if line else "" for line in lines] == [
        "bits", "answer", "", "bits", "answer", "", "bits", "answer"
    ]  # fmt: skip
    assert [len(line[1]) for line in lines if line] == [64, 64, 64, 64, 2, 2]


@given(st.text("01", min_size=1, max_size=200))
@settings(deadline=None, max_examples=40)
def test_text_reads_back(text: str) -> None:
    drawn = TASK.describe(TASK.encode(text))
    lines = drawn.text.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert "".join(line.split()[-1] for line in lines if "bits" in line) == text
    assert drawn.cells.shape[:2] == (len(lines), min(64, len(text)))
    assert len(drawn.row_labels) == len(lines)


def test_flip() -> None:
    """One bit for all strings, or one for each."""
    batch = TASK.sample(5, size=5, seed=1)
    texts = ["".join("01"[int(bit > 0)] for bit in row[0]) for row in batch.inputs]
    for index in (2, torch.arange(5)):
        flipped = TASK.flip(batch, index)
        places = index.tolist() if isinstance(index, torch.Tensor) else [index] * 5
        for row, (text, place) in enumerate(zip(texts, places, strict=True)):
            wanted = TASK.encode(f"{text[:place]}{1 - int(text[place])}{text[place + 1 :]}")
            assert torch.equal(flipped.inputs[row], wanted.inputs[0])
            assert torch.equal(flipped.targets[row], wanted.targets[0])
    for outside in (-1, 5):
        with pytest.raises(TaskError, match=f"from 0 to 4, got {outside}"):
            TASK.flip(batch, outside)
