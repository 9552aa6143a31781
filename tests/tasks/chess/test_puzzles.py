"""Packed puzzles on disk, the rule that selects the subset, and the packing of Lichess's CSV."""

from __future__ import annotations

import bz2
import hashlib
import json
import lzma
import pickle
import shutil
import struct
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import chess
import numpy as np
import pytest
import zstandard
from pickle_trap import Trap

from iterant.errors import DataError, IterantError, MissingExtra, UsageError
from iterant.tasks.chess.position import pack, parse_fen
from iterant.tasks.chess.puzzles import (
    BLOCK,
    FLAGS,
    LONGEST_LINE,
    Puzzles,
    load_puzzles,
    pack_csv,
    subset,
    write_puzzles,
)
from iterant.tasks.chess.task import SAMPLE

COLUMNS = ("boards", "moves", "rating", "rating_deviation", "flags", "ids")


@pytest.fixture(scope="module")
def sample() -> Puzzles:
    return load_puzzles(SAMPLE)


@pytest.fixture
def folder(sample: Puzzles, tmp_path: Path) -> Path:
    """A small set as plain files without meta.json, for tests to damage."""
    write_puzzles(sample.take(slice(0, 50)), tmp_path / "set", source="test")
    (tmp_path / "set" / "meta.json").unlink()
    return tmp_path / "set"


def same(one: Puzzles, other: Puzzles) -> bool:
    return all((getattr(one, name) == getattr(other, name)).all() for name in COLUMNS)


@pytest.mark.parametrize("compress", [False, True])
def test_write_and_load(sample: Puzzles, tmp_path: Path, compress: bool) -> None:
    part = sample.take(slice(10, 90))
    (tmp_path / "set").mkdir()
    write_puzzles(part, tmp_path / "set", source="a test", compress=compress)
    loaded = load_puzzles(tmp_path / "set")
    assert same(loaded, part)
    assert isinstance(loaded.boards, np.memmap) is not compress
    meta = json.loads((tmp_path / "set" / "meta.json").read_text())
    assert (meta["version"], meta["count"], meta["source"]) == (1, 80, "a test")
    assert [path.name for path in tmp_path.iterdir()] == ["set"], "nothing else is left behind"
    with pytest.raises(UsageError, match="is there already"):
        write_puzzles(sample, tmp_path / "set", source="test")


@pytest.mark.parametrize(
    ("name", "column", "reason"),
    [
        ("rating", np.zeros(49, np.uint16), "'rating': 49, .*'ids': 50"),
        ("flags", np.zeros(50, np.int64), r"flags.npy must hold uint8 .*int64"),
        ("boards", np.zeros((50, 31), np.uint8), r"boards.npy must hold .*\(50, 31\)"),
        ("ids", np.array(["a"] * 50), r"ids.npy must hold \|S5"),
        ("moves", np.uint16(3), r"moves.npy must hold uint16 in each row, got \(\)"),
    ],
)
def test_wrong_columns_are_refused(folder: Path, name: str, column: Any, reason: str) -> None:
    load_puzzles(folder)
    np.save(folder / f"{name}.npy", column)
    with pytest.raises(DataError, match=reason) as caught:
        load_puzzles(folder)
    assert "\n" not in str(caught.value)


def test_missing_and_empty_sets_are_refused(sample: Puzzles, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"not a folder of packed puzzles.* has no boards\.npy"):
        load_puzzles(tmp_path)
    write_puzzles(sample.take(slice(0, 0)), tmp_path / "set", source="test")
    with pytest.raises(DataError, match="'ids': 0"):
        load_puzzles(tmp_path / "set")


@pytest.mark.parametrize("ending", [".npy", ".npy.xz"])
def test_pickles_and_broken_files_are_refused(folder: Path, tmp_path: Path, ending: str) -> None:
    squeeze = lzma.compress if ending == ".npy.xz" else bytes
    content = (folder / "flags.npy").read_bytes()
    (folder / "flags.npy").unlink()
    trap, packed = Trap(tmp_path / "unpickled"), squeeze(content)
    np.save(tmp_path / "objects.npy", np.array([trap], dtype=object), allow_pickle=True)
    broken = [b"", packed[:5], packed[: len(packed) // 2], packed[:-1]]
    broken += [squeeze(pickle.dumps(trap)), squeeze((tmp_path / "objects.npy").read_bytes())]
    for content_now in (*broken, *([squeeze(content + b"more")] if ending == ".npy.xz" else [])):
        (folder / f"flags{ending}").write_bytes(content_now)
        with pytest.raises(DataError, match=r"flags.npy.* is not a complete array") as caught:
            load_puzzles(folder)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "unpickled").exists()


def test_meta_json_is_checked(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    shutil.copytree(SAMPLE, folder)
    meta = (folder / "meta.json").read_text()
    for text in (meta.replace('"version": 1', '"version": 2'), "[1", "[]", '{"version": 1}'):
        (folder / "meta.json").write_text(text)
        with pytest.raises(IterantError, match=r"meta\.json"):
            load_puzzles(folder)
    (folder / "meta.json").write_text(meta)
    (folder / "rating.npy.xz").write_bytes((folder / "moves.npy.xz").read_bytes())
    with pytest.raises(DataError, match="names other files"):
        load_puzzles(folder)


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


@pytest.mark.parametrize("count", [250, 604, 605])
def test_the_subset_follows_its_rule(sample: Puzzles, count: int) -> None:
    # Shuffled, a third of the positions repeated under other ids and ratings; of four repeats the
    # other side is to move, which makes them other positions.
    generator = np.random.default_rng(3)
    rows = generator.permutation(np.concatenate([np.arange(600), np.arange(200)]))
    ids = np.array([f"t{row:04d}".encode() for row in generator.permutation(800)])
    rating = generator.integers(500, 540, 800).astype(np.uint16)
    moves = sample.moves[rows].copy()
    moves[np.flatnonzero(np.isin(rows, range(190, 200)))[::2]] ^= 1 << 15
    puzzles = replace(sample.take(rows), ids=ids, rating=rating, moves=moves)
    chosen = subset(puzzles, count)
    assert chosen.ids.tolist() == plain_subset(puzzles, count)
    assert "196 repeated positions dropped" in chosen.source
    assert ("fewer than" in chosen.source) == (count > 604)


def test_shipped_sample(sample: Puzzles) -> None:
    assert len(sample) == 4000
    assert same(subset(sample), sample)
    shuffled = sample.take(np.random.default_rng(1).permutation(len(sample)))
    content = [
        np.ascontiguousarray(getattr(subset(shuffled, 1500), name)).tobytes() for name in COLUMNS
    ]
    assert hashlib.sha256(b"".join(content)).hexdigest().startswith("895c31f2def3e51e")


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


HEADER = "PuzzleId,FEN,Moves,Rating,RatingDeviation,Popularity,NbPlays,Themes,GameUrl,OpeningTags\n"
# White plays, black answers; promotion, castling, en passant, and a move of either colour.
ROWS = (
    "aaaa1,6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1,a1a2 g8f8,900,80,9,9,short,u,\n",
    "aaaa2,8/P6k/8/8/8/8/8/K7 b - - 0 1,h7h6 a7a8n,700,70,9,9,mate mateIn1 oneMove,u,\n",
    "aaaa3,4k3/8/8/8/8/8/p7/4K2R b K - 0 1,e8e7 e1g1,800,60,9,9,veryLong mateIn2,u,\n",
    "aaaa4,4k3/3p4/8/4P3/8/8/8/4K3 b - - 0 1,d7d5 e5d6,700,50,9,9,enPassant long mateIn3,u,\n",
)
TEXT = (HEADER + "".join(ROWS)).encode()
PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "bz2": lambda content: bz2.compress(content, 1),
    "zst": zstandard.ZstdCompressor().compress,
}


def write(folder: Path, content: bytes | str) -> Path:
    path = folder / "puzzles.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("packing", PACKINGS)
def test_packed_columns(tmp_path: Path, packing: str) -> None:
    report = pack_csv(write(tmp_path, PACKINGS[packing](TEXT)), tmp_path / "set")
    assert (report.rows, report.kept, report.broken, report.repeated) == (4, 4, 0, 0)
    puzzles = load_puzzles(tmp_path / "set")
    assert puzzles.ids.tolist() == [b"aaaa2", b"aaaa4", b"aaaa3", b"aaaa1"], "by (rating, id)"
    assert puzzles.rating.tolist() == [700, 700, 800, 900]
    assert puzzles.rating_deviation.tolist() == [70, 50, 60, 80]
    moves = [
        chess.Move(int(move) & 63, int(move) >> 6 & 63, (int(move) >> 12 & 7) or None).uci()
        for move in puzzles.moves
    ]
    assert moves == ["a7a8n", "e5d6", "e1g1", "g8f8"]
    assert puzzles.black.tolist() == [False, False, False, True]
    assert [
        {theme for bit, theme in enumerate(FLAGS) if flags >> bit & 1} for flags in puzzles.flags
    ] == [{"mate", "mateIn1", "oneMove"}, {"long", "mateIn3"}, {"veryLong", "mateIn2"}, {"short"}]
    boards = []
    for row in (ROWS[1], ROWS[3], ROWS[2], ROWS[0]):
        after = chess.Board(row.split(",")[1])
        after.push_uci(row.split(",")[2].split()[0])
        boards.append(parse_fen(after.fen()).board)
    assert (puzzles.boards == pack(np.stack(boards))).all()


BROKEN = {
    "aaaaa,too,few\n": "3 fields where the first line has 10",
    ROWS[0].replace("aaaa1", "toolong"): "the id must be five letters",
    ROWS[0].replace("a1a2 g8f8", "a1a2"): "at least two moves are wanted",
    ROWS[0].replace("a1a2 g8f8", "a1a3 g8f8"): "illegal uci: 'a1a3'",
    ROWS[0].replace("a1a2 g8f8", "a1a2 g8g6"): "illegal uci: 'g8g6'",
    ROWS[0].replace("a1a2 g8f8", "a1a2 ????"): "invalid uci",
    ROWS[0].replace("6k1/", ""): "expected 8 rows",
    ROWS[0].replace("6k1/", "8/"): "cannot occur",
    ROWS[0].replace(",900,", ",9.5,"): "a rating must be a whole number below 65536",
    ROWS[0].replace(",80,", ",65536,"): "a rating must be a whole number",
}


def test_broken_rows_are_named_and_the_rest_kept(tmp_path: Path) -> None:
    report = pack_csv(write(tmp_path, HEADER + "".join(BROKEN) + ROWS[1]), tmp_path / "set")
    assert (report.rows, report.kept, report.broken) == (len(BROKEN) + 1, 1, len(BROKEN))
    assert [line for line, _ in report.first_broken] == list(range(2, len(BROKEN) + 2))
    for (_, why), reason in zip(report.first_broken, BROKEN.values(), strict=True):
        assert reason in why


def test_many_broken_rows_and_progress(tmp_path: Path) -> None:
    calls: list[tuple[int, float]] = []
    path = write(tmp_path, HEADER + "x\n" * 3000 + ROWS[0])
    report = pack_csv(path, tmp_path / "set", lambda rows, share: calls.append((rows, share)))
    assert (report.broken, len(report.first_broken)) == (3000, 10)
    assert calls == sorted(calls)
    assert calls[-1] == (3001, 1.0)


def test_columns_by_name_and_repeated_ids(tmp_path: Path) -> None:
    harder = ROWS[0].replace(",900,", ",950,")
    turned = [",".join(row.strip("\n").split(",")[::-1]) for row in (HEADER, harder, *ROWS)]
    report = pack_csv(write(tmp_path, "\ufeff" + "\r\n".join(turned)), tmp_path / "turned")
    assert (report.rows, report.kept, report.repeated) == (5, 4, 1)
    pack_csv(write(tmp_path, TEXT), tmp_path / "set")
    assert same(load_puzzles(tmp_path / "turned"), load_puzzles(tmp_path / "set"))


BROKEN_OFF = "breaks off before its end"
UNREADABLE = {
    "empty": (b"", "has no column"),
    "header only": (HEADER.encode(), "it has no rows"),
    "all broken": (HEADER.encode() + b"x\ny\n", r"holds no puzzle .*line 2: 1 fields"),
    "missing columns": (TEXT.replace(b"Moves", b"Zuege"), "has no column Moves in its first line"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), "has no column PuzzleId, FEN"),
    "no lines": (b"x" * (LONGEST_LINE + 2 * BLOCK), "has a line without end"),
    "half a zst": (zstandard.compress(TEXT)[:-9], BROKEN_OFF),
    "half a bz2": (bz2.compress(TEXT)[:-9], BROKEN_OFF),
    "damaged zst": (zstandard.compress(TEXT)[:4] + b"\xff" * 40, "is damaged"),
    "damaged bz2": (bz2.compress(TEXT)[:20] + b"\xff" * 40, "is damaged"),
    "second zst": (zstandard.compress(TEXT) + zstandard.compress(TEXT)[:-9], BROKEN_OFF),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_bad_files_are_refused_and_leave_nothing(tmp_path: Path, case: str) -> None:
    content, reason = UNREADABLE[case]
    path = write(tmp_path, content)
    with pytest.raises(DataError, match=reason) as caught:
        pack_csv(path, tmp_path / "set")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == [path]


def test_files_of_several_streams_are_read_whole(tmp_path: Path) -> None:
    parts = TEXT[:200], TEXT[200:]
    skipped = struct.pack("<II", 0x184D2A50, 4) + b"size"
    for name, packed in (
        ("bz2", map(bz2.compress, parts)),
        ("zst", map(zstandard.compress, parts)),
        ("skipped", (skipped + zstandard.compress(part) for part in parts)),
    ):
        assert pack_csv(write(tmp_path, b"".join(packed)), tmp_path / name).kept == 4


def test_paths_are_checked(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(DataError, match="check the path"):
            pack_csv(path, tmp_path / "set")
    path = write(tmp_path, TEXT)
    with pytest.raises(UsageError, match="is there already"):
        pack_csv(path, tmp_path)


@pytest.mark.parametrize("package", ["chess", "zstandard"])
def test_missing_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    path = write(tmp_path, zstandard.compress(TEXT))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"'{package}'.*iterant\[chess\]"):
        pack_csv(path, tmp_path / "set")
    assert list(tmp_path.iterdir()) == [path]
