"""Problems as PyTorch data sets, and the files of the original benchmark."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from pickle_trap import Trap
from test_contract import equal

import iterant
import iterant.registry
from iterant.errors import DataError, TaskError
from iterant.tasks.datasets import read_easy_to_hard, save_easy_to_hard
from iterant.tasks.mazes.task import Mazes
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Batch


def test_indexing_a_batch() -> None:
    batch = iterant.task("mazes").sample(3, size=5, seed=2)
    for place in (0, 2, -1):
        one = batch[place]
        assert len(one) == 1
        assert torch.equal(one.inputs[0], batch.inputs[place])
        assert torch.equal(one.targets[0], batch.targets[place])
        assert one.extras["path_length"].tolist() == [batch.extras["path_length"][place]]
    inputs, targets = batch  # not two problems, and not the three of this batch
    assert inputs is batch.inputs
    assert targets is batch.targets


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """A folder as the benchmark's own code leaves it."""
    for size in (9, 13):
        save_easy_to_hard(Mazes().sample(20, size=size), tmp_path / f"maze_data_test_{size}")
    for length in (16, 32):
        folder = tmp_path / "prefix_sums_data" / f"len_{length}"
        save_easy_to_hard(PrefixSums().sample(20, size=length), folder)
    return tmp_path


@pytest.mark.parametrize(
    ("inputs", "targets"),
    [
        (torch.zeros(2, 3, 8), torch.zeros(2, 8)),  # only one channel would be written
        (torch.zeros(2, 1, 8), torch.full((2, 8), 2)),
        (torch.zeros(2, 5, 8, 8), torch.zeros(2, 8, 8)),
        (torch.zeros(2, 3, 8, 8), torch.full((2, 8, 8), -1)),
    ],
)
def test_other_problems_are_not_saved(
    inputs: torch.Tensor, targets: torch.Tensor, tmp_path: Path
) -> None:
    with pytest.raises(TaskError, match="with answers of 0 and 1, got Batch"):
        save_easy_to_hard(Batch(inputs, targets.long()), tmp_path / "set")
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize("name", ["mazes", "prefix-sums", "chess"])
def test_save_and_read(name: str, tmp_path: Path) -> None:
    batch = iterant.task(name).sample(5)
    save_easy_to_hard(batch, tmp_path / "set")
    again = read_easy_to_hard(tmp_path / "set")
    assert torch.equal(again.inputs, batch.inputs)
    assert torch.equal(again.targets, batch.targets)
    assert again.inputs.dtype == torch.float32
    assert again.targets.dtype == torch.int64
    assert not list((tmp_path / "set").glob(".*"))
    if name == "mazes":  # the benchmark's own are stored as doubles
        np.save(tmp_path / "set" / "inputs.npy", batch.inputs.numpy().astype(np.float64))
        assert equal(read_easy_to_hard(tmp_path / "set"), again)


@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("channel", [True, False])
@pytest.mark.parametrize("zipped", [True, False])
def test_forms_of_bits(tmp_path: Path, shift: float, channel: bool, zipped: bool) -> None:
    batch = PrefixSums().sample(4, size=12)
    bits = batch.inputs[:, 0] + 0.5 - shift
    files = {"12_data": bits.unsqueeze(1) if channel else bits, "12_targets": batch.targets.float()}
    for name, values in files.items():  # torch wrote another format until 2020
        path = tmp_path / f"{name}.pth"
        torch.save(values, path, _use_new_zipfile_serialization=zipped)
    assert equal(read_easy_to_hard(tmp_path), batch)


@pytest.mark.parametrize(("word", "size", "other"), [("mazes", 13, 9), ("prefix-sums", 32, 16)])
def test_tasks_sample_from_stored_files(benchmark: Path, word: str, size: int, other: int) -> None:
    task, generated = iterant.registry.task(word, data=benchmark), iterant.registry.task(word)
    whole = generated.sample(20, size=size)
    sampled = task.sample(20, size=size, seed=4)
    assert not torch.equal(sampled.inputs, whole.inputs)
    # Without replacement: every stored problem once, and parts of the order are parts of it.
    assert sorted(x.tolist() for x in sampled.inputs.flatten(1)) == sorted(
        x.tolist() for x in whole.inputs.flatten(1)
    )
    assert equal(task.sample(5, size=size, seed=4, first=10), sampled[10:15])
    assert not equal(task.sample(20, size=size, seed=5), sampled)
    assert task.sample(3, size=other).inputs.shape[-1] != sampled.inputs.shape[-1]
    with pytest.raises(TaskError, match=r"20 problems.*ask for fewer"):
        task.sample(21, size=size)
    with pytest.raises(TaskError, match="fewer"):
        task.sample(1, size=size, first=20)
    with pytest.raises(TaskError, match="0 sets are of size 51"):
        task.sample(1, size=51)


def test_the_stored_size_is_the_default(benchmark: Path) -> None:
    assert Mazes(data=benchmark / "maze_data_test_13").sample(1).inputs.shape[-1] == 32
    # Several sizes: the training size, as without files; of which there may be one set only.
    batch = Mazes(data=benchmark).sample(1)
    assert batch.inputs.shape[-1] == 24
    assert "path_length" in batch.extras
    save_easy_to_hard(Mazes().sample(2, size=9), benchmark / "maze_data_train_9")
    with pytest.raises(TaskError, match="2 sets are of size 9"):
        Mazes(data=benchmark).sample(1, size=9)


def chess() -> tuple[Batch, torch.Tensor]:
    """Six puzzles of each colour in our orientation, enough for a majority; whether black moves."""
    boards = torch.zeros(12, 12, 8, 8)
    boards[:, 5, 6] = boards[:, 11, 1] = 1  # pawns of the mover and of the other side
    boards[:, 0, 7, 4] = boards[:, 6, 0, 4] = 1
    moves = torch.zeros(12, 8, 8, dtype=torch.int64)
    rows, columns = torch.arange(12), torch.arange(12) % 8
    moves[rows, 6, columns] = moves[rows, 4, columns] = 1
    return Batch(boards, moves), rows % 2


@pytest.mark.parametrize("moves_reversed", [True, False])
def test_chess_is_flipped_to_our_orientation(tmp_path: Path, moves_reversed: bool) -> None:
    """In the benchmark's files row 0 is rank 1, which is the back rank of white alone."""
    batch, black = chess()
    white = (black == 0)[:, None, None]
    moves = torch.where(white, batch.targets.flip(1), batch.targets)
    torch.save(torch.where(white[..., None], batch.inputs.flip(2), batch.inputs),
               tmp_path / "data.pth")  # fmt: skip
    torch.save(moves.flip(1) if moves_reversed else moves, tmp_path / "segment_targets.pth")
    torch.save(black[:, None].float(), tmp_path / "who_moves.pth")
    assert equal(read_easy_to_hard(tmp_path), batch)
    torch.save(black[:5, None].float(), tmp_path / "who_moves.pth")
    with pytest.raises(DataError, match="holds other than 12 values"):
        read_easy_to_hard(tmp_path)
    save_easy_to_hard(Batch(batch.inputs, batch.targets.roll(1, 1)), tmp_path / "mixed")
    with pytest.raises(DataError, match="different files"):
        read_easy_to_hard(tmp_path / "mixed")


@pytest.mark.parametrize(
    ("folder", "name"),
    [("maze_data_test_9", "solutions.npy"), ("prefix_sums_data/len_16", "16_data.pth")],
)
@pytest.mark.parametrize("damage", ["pickle", "truncated", "empty", "text", "missing", "short"])
def test_corrupt_files_are_refused_in_one_line(
    benchmark: Path, folder: str, name: str, damage: str
) -> None:
    path, loaded = benchmark / folder / name, benchmark / "unpickled"
    content = path.read_bytes()
    if damage == "short":
        shorter = read_easy_to_hard(path.parent)[:3]
        save_easy_to_hard(shorter, benchmark / "shorter")
        path.write_bytes((benchmark / "shorter" / name).read_bytes())
    elif damage == "missing":
        path.unlink()
    else:
        contents = {
            "pickle": pickle.dumps(Trap(loaded)),
            "truncated": content[: len(content) // 2],
            "empty": b"",
            "text": b"these are not the arrays",
        }
        path.write_bytes(contents[damage])
    with pytest.raises(DataError) as caught:
        read_easy_to_hard(path.parent)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert not loaded.exists()


def test_wrong_shapes_and_values(tmp_path: Path) -> None:
    np.save(tmp_path / "solutions.npy", np.zeros((4, 24, 24)))
    for shape, value in (
        ((4, 24, 24), 0), ((4, 1, 24, 24), 0), ((4, 3, 24, 24), 2), ((4, 3, 23, 24), 0)
    ):  # fmt: skip
        np.save(tmp_path / "inputs.npy", np.full(shape, value))
        with pytest.raises(DataError, match="holds other than"):
            read_easy_to_hard(tmp_path)
    (tmp_path / "inputs.npy").unlink()
    torch.save(torch.zeros(3, 8), tmp_path / "8_targets.pth")
    for values, message in (
        (torch.full((3, 8), 0.25), "other than 0 and 1"),
        ({"a": torch.zeros(3)}, "holds a dict"),
    ):
        torch.save(values, tmp_path / "8_data.pth")
        with pytest.raises(DataError, match=message):
            read_easy_to_hard(tmp_path)


def test_folders_that_hold_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "absent", tmp_path / "file"):
        with pytest.raises(DataError, match=r"inputs\.npy"):
            read_easy_to_hard(path)
        with pytest.raises(DataError, match="give the folder with the benchmark's files"):
            Mazes(data=path)
