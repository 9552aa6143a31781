"""Packed puzzles on disk, and the rule that selects the subset."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iterant.errors import DataError, UsageError
from iterant.tasks.chess.lichess import pack_csv
from iterant.tasks.chess.puzzles import Puzzles, holds_puzzles, load_puzzles, subset, write_puzzles
from iterant.tasks.chess.task import SAMPLE

COLUMNS = ("boards", "moves", "rating", "rating_deviation", "flags", "ids")


@pytest.fixture(scope="module")
def sample() -> Puzzles:
    return load_puzzles(SAMPLE)


@pytest.fixture
def folder(sample: Puzzles, tmp_path: Path) -> Path:
    """A small set as plain files without meta.json, to be spoilt."""
    write_puzzles(sample.take(slice(0, 50)), tmp_path / "set", source="test")
    (tmp_path / "set" / "meta.json").unlink()
    return tmp_path / "set"


def same(one: Puzzles, other: Puzzles) -> bool:
    return all((getattr(one, name) == getattr(other, name)).all() for name in COLUMNS)


def digest(puzzles: Puzzles) -> str:
    content = b"".join(np.ascontiguousarray(getattr(puzzles, name)).tobytes() for name in COLUMNS)
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("compress", [False, True])
def test_write_and_load(sample: Puzzles, tmp_path: Path, compress: bool) -> None:
    part = sample.take(slice(10, 90))
    order = np.arange(80)[::-1]
    write_puzzles(part, tmp_path / "set", source="a test", order=order, compress=compress)
    assert same(load_puzzles(tmp_path / "set"), part.take(order))
    meta = json.loads((tmp_path / "set" / "meta.json").read_text())
    assert (meta["version"], meta["count"], meta["source"]) == (1, 80, "a test")
    assert [path.name for path in tmp_path.iterdir()] == ["set"], "nothing else is left behind"
    assert holds_puzzles(tmp_path / "set")
    assert not holds_puzzles(tmp_path)


def test_plain_files_are_memory_mapped(folder: Path) -> None:
    assert isinstance(load_puzzles(folder).boards, np.memmap)


def test_a_set_is_not_written_over_another(sample: Puzzles, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is there already"):
        write_puzzles(sample, folder, source="test")
    (tmp_path / "empty").mkdir()
    write_puzzles(sample.take(slice(0, 5)), tmp_path / "empty", source="test")
    assert len(load_puzzles(tmp_path / "empty")) == 5
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file' is no folder"):
        write_puzzles(sample, tmp_path / "file" / "set", source="test")


def replace_column(folder: Path, name: str, column: object) -> None:
    np.save(folder / f"{name}.npy", np.asarray(column))


def test_wrong_columns_are_refused(folder: Path) -> None:
    whole = load_puzzles(folder)
    for name, column, reason in (
        ("rating", np.array(whole.rating[:-1]), r"rating.npy holds 49 rows, ids.npy 50"),
        ("flags", np.array(whole.flags, np.int64), r"flags.npy must hold \(N\) uint8, got .*int64"),
        ("boards", np.array(whole.boards[:, :31]), r"boards.npy must hold \(N, 32\) uint8, got"),
        ("ids", np.array(["a"] * 50), r"ids.npy must hold \(N\) \|S5"),
        ("moves", np.uint16(3), r"moves.npy must hold \(N\) uint16, got \(\)"),
    ):
        before = (folder / f"{name}.npy").read_bytes()
        replace_column(folder, name, column)
        with pytest.raises(DataError, match=reason) as caught:
            load_puzzles(folder)
        assert "\n" not in str(caught.value)
        (folder / f"{name}.npy").write_bytes(before)
    load_puzzles(folder)


def test_nonsense_in_the_rows_is_refused(folder: Path) -> None:
    whole = load_puzzles(folder)
    moves, boards = np.array(whole.moves), np.array(whole.boards)
    spoilt = moves.copy()
    spoilt[7] ^= 1 << 15
    replace_column(folder, "moves", spoilt)
    with pytest.raises(DataError, match=r"boards.npy, row 7: the board has unknown pieces, or"):
        load_puzzles(folder)
    replace_column(folder, "moves", moves)
    boards[9, 0] = 13 << 4
    replace_column(folder, "boards", boards)
    with pytest.raises(DataError, match="row 9"):
        load_puzzles(folder)


def test_missing_and_empty_sets_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a folder of packed puzzles"):
        load_puzzles(tmp_path / "nowhere")
    with pytest.raises(DataError, match="pack it first: iterant data chess"):
        load_puzzles(folder / "boards.npy")
    for name in COLUMNS:
        replace_column(folder, name, np.array(getattr(load_puzzles(SAMPLE), name)[:0]))
    with pytest.raises(DataError, match="holds no puzzles"):
        load_puzzles(folder)
    (folder / "ids.npy").unlink()
    with pytest.raises(DataError, match=r"has no ids.npy or ids.npy.xz"):
        load_puzzles(folder)


class Trap:
    """Shows by a file that it was unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("ending", [".npy", ".npy.xz"])
def test_pickles_are_never_opened(folder: Path, tmp_path: Path, ending: str) -> None:
    (folder / "moves.npy").unlink()
    file = folder / f"moves{ending}"
    objects = tmp_path / "objects.npy"
    np.save(objects, np.array([Trap(tmp_path / "sprung")], dtype=object), allow_pickle=True)
    for content in (pickle.dumps(Trap(tmp_path / "sprung")), objects.read_bytes()):
        file.write_bytes(lzma.compress(content) if ending.endswith("xz") else content)
        with pytest.raises(DataError, match=r"moves.npy.* is no whole array") as caught:
            load_puzzles(folder)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("left", [0, 5, 0.5, -1])
def test_truncated_files_are_refused(
    sample: Puzzles, tmp_path: Path, compress: bool, left: float
) -> None:
    write_puzzles(sample.take(slice(0, 50)), tmp_path / "set", source="test", compress=compress)
    (tmp_path / "set" / "meta.json").unlink()
    file = tmp_path / "set" / ("boards.npy.xz" if compress else "boards.npy")
    content = file.read_bytes()
    file.write_bytes(content[: int(left * len(content)) if left == 0.5 else int(left)])
    with pytest.raises(DataError, match=r"boards.npy.* is no whole array"):
        load_puzzles(tmp_path / "set")


def test_trailing_bytes_are_refused(folder: Path) -> None:
    content = (folder / "flags.npy").read_bytes()
    (folder / "flags.npy").unlink()
    (folder / "flags.npy.xz").write_bytes(lzma.compress(content + b"more"))
    with pytest.raises(DataError, match="something follows the array"):
        load_puzzles(folder)


def test_meta_json_is_checked(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    shutil.copytree(SAMPLE, folder)
    ratings = lzma.decompress((folder / "rating.npy.xz").read_bytes())
    (folder / "rating.npy.xz").write_bytes(lzma.compress(ratings, preset=0))
    with pytest.raises(DataError, match=r"rating.npy.xz is not the file that meta.json names"):
        load_puzzles(folder)
    for text, reason in (
        ('{"version": 2, "sha256": {}}', "version 2, wanted 1"),
        ("[1", "is not what the packer writes"),
        ("[]", "is not what the packer writes"),
        ('{"version": 1}', "is not what the packer writes"),
    ):
        (folder / "meta.json").write_text(text)
        with pytest.raises(DataError, match=reason):
            load_puzzles(folder)
    (folder / "meta.json").unlink()
    assert len(load_puzzles(folder)) == 4000


def plain_subset(puzzles: Puzzles, count: int) -> list[bytes]:
    """The rule restated a puzzle at a time."""
    word = (1 << 64) - 1

    def number(name: bytes) -> int:
        value = int.from_bytes(name, "big")
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & word
        value = (value ^ value >> 27) * 0x94D049BB133111EB & word
        return value ^ value >> 31

    rows = sorted(range(len(puzzles)), key=lambda row: (puzzles.rating[row], puzzles.ids[row]))
    seen, kept = set(), []
    for row in rows:
        position = puzzles.boards[row].tobytes(), bool(puzzles.moves[row] >> 15)
        if position not in seen:
            seen.add(position)
            kept.append((int(puzzles.rating[row]), bytes(puzzles.ids[row])))
    chosen = sorted(kept, key=lambda pair: number(pair[1]))[:count]
    return [name for _, name in sorted(chosen)]


def with_repeats(sample: Puzzles) -> Puzzles:
    """Shuffled, a third of the positions repeated under other ids and ratings."""
    generator = np.random.default_rng(3)
    rows = generator.permutation(np.concatenate([np.arange(600), np.arange(200)]))
    ids = np.array([f"t{row:04d}".encode() for row in generator.permutation(800)])
    rating = generator.integers(500, 540, 800).astype(np.uint16)
    return replace(sample.take(rows), ids=ids, rating=rating)


@pytest.mark.parametrize("count", [1, 250, 600, 601, 5000])
def test_the_subset_follows_its_rule(sample: Puzzles, count: int) -> None:
    puzzles = with_repeats(sample)
    chosen = subset(puzzles, count)
    assert chosen.ids.tolist() == plain_subset(puzzles, count)
    assert "200 repeated positions dropped" in chosen.source
    assert ("fewer than" in chosen.source) == (count > 600)


def test_side_to_move_is_part_of_a_position(sample: Puzzles) -> None:
    one = sample.take(np.array([0, 0]))
    both = replace(one, moves=one.moves ^ np.array([0, 1 << 15], np.uint16), ids=sample.ids[:2])
    assert len(subset(both)) == 2
    assert len(subset(replace(one, ids=sample.ids[:2]))) == 1


def test_the_order_of_the_rows_does_not_matter(sample: Puzzles) -> None:
    shuffled = sample.take(np.random.default_rng(1).permutation(len(sample)))
    assert same(subset(shuffled, 1000), subset(sample, 1000))


def test_shipped_sample(sample: Puzzles) -> None:
    assert len(sample) == 4000
    assert same(subset(sample), sample)
    assert digest(sample) == "92d38831f75f089f8cc2513fa5478d7270a8e58c1c1ac2e460175a5826cf9575"
    assert (
        digest(subset(sample, 1500))
        == "895c31f2def3e51e459117dae54362ee6b720e57669b5c50ef8e68ca0562655b"
    )


@pytest.fixture(scope="module")
def shared_puzzles(shared_data: Path) -> Puzzles:
    return load_puzzles(shared_data / "lichess-puzzles")


def test_packing_gives_the_rows_of_the_shared_set(
    shared_data: Path, shared_puzzles: Puzzles, tmp_path: Path
) -> None:
    report = pack_csv(shared_data / "lichess-puzzles" / "sample_2000.csv", tmp_path / "set")
    assert (report.kept, report.broken) == (2000, 0)
    ours = load_puzzles(tmp_path / "set")
    theirs = np.flatnonzero(np.isin(shared_puzzles.ids, ours.ids))
    mine = np.flatnonzero(np.isin(ours.ids, shared_puzzles.ids[theirs]))
    assert len(mine) == len(theirs) == 1975, "25 rows of the sample are not in the shared set"
    assert same(ours.take(mine), shared_puzzles.take(theirs))


def test_sample_is_spread_over_the_subset_of_the_shared_set(
    sample: Puzzles, shared_puzzles: Puzzles
) -> None:
    chosen = subset(shared_puzzles)
    assert (len(shared_puzzles), len(chosen)) == (2_815_126, 1_500_000)
    assert "18,588 repeated positions dropped" in chosen.source
    assert same(chosen.take(375 * np.arange(4000) + 187), sample)
    edges = [0, 600_000, 700_000, 800_000, 1_000_000, 1_100_000]
    assert chosen.rating[edges].tolist() == [399, 1389, 1506, 1619, 1839, 1967]
