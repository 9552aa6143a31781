"""Lichess's CSV: packed as the shared set was, streamed, and refused where it breaks off."""

from __future__ import annotations

import bz2
import io
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import chess
import numpy as np
import pytest
import zstandard

from iterant.errors import DataError, MissingExtra, UsageError
from iterant.tasks.chess.boards import unpack
from iterant.tasks.chess.fen import write_fen
from iterant.tasks.chess.lichess import (
    BLOCK,
    LONGEST_LINE,
    RowError,
    blocks,
    lines,
    pack_csv,
    read_puzzles,
)
from iterant.tasks.chess.puzzles import FLAGS, load_puzzles

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
    found = [
        chess.Move(int(move) & 63, int(move) >> 6 & 63, (int(move) >> 12 & 7) or None).uci()
        for move in puzzles.moves
    ]
    assert found == ["a7a8n", "e5d6", "e1g1", "g8f8"]
    assert puzzles.black.tolist() == [False, False, False, True]
    assert [
        {theme for bit, theme in enumerate(FLAGS) if flags >> bit & 1} for flags in puzzles.flags
    ] == [{"mate", "mateIn1", "oneMove"}, {"long", "mateIn3"}, {"veryLong", "mateIn2"}, {"short"}]


def test_boards_are_after_the_first_move(tmp_path: Path) -> None:
    pack_csv(write(tmp_path, TEXT), tmp_path / "set")
    puzzles = load_puzzles(tmp_path / "set")
    by_id = {row.split(",")[0].encode(): row.split(",") for row in ROWS}
    for name, board, black in zip(
        puzzles.ids.tolist(), unpack(puzzles.boards), puzzles.black.tolist(), strict=True
    ):
        _, fen, moves, *_ = by_id[name]
        after = chess.Board(fen)
        after.push_uci(moves.split()[0])
        assert write_fen(board, black).split()[:2] == after.fen().split()[:2]


BROKEN = {
    "aaaaa,too,few\n": "3 fields where the first line has 10",
    ROWS[0].replace("aaaa1", "toolong"): "the id must be five letters",
    ROWS[0].replace("aaaa1", "aa\u00e4a1"): "the id must be five letters",
    ROWS[0].replace("a1a2 g8f8", "a1a2"): "at least two moves are wanted",
    ROWS[0].replace("a1a2 g8f8", "a1a3 g8f8"): "illegal uci: 'a1a3'",
    ROWS[0].replace("a1a2 g8f8", "a1a2 g8g6"): "illegal uci: 'g8g6'",
    ROWS[0].replace("a1a2 g8f8", "a1a2 ????"): "invalid uci",
    ROWS[0].replace("6k1/", ""): "expected 8 rows",
    ROWS[0].replace("6k1/", "8/"): "cannot occur",
    ROWS[0].replace(",900,", ",9.5,"): "the rating must be a whole number below 65536",
    ROWS[0].replace(",80,", ",65536,"): "the rating deviation must be a whole number",
    '"' + ROWS[0]: "1 fields where",
}


@pytest.mark.parametrize(("row", "reason"), BROKEN.items())
def test_a_broken_row_is_named_and_the_rest_kept(tmp_path: Path, row: str, reason: str) -> None:
    text = HEADER + ROWS[1] + row + "\n" + ROWS[2] + ROWS[3]
    report = pack_csv(write(tmp_path, text), tmp_path / "set")
    assert (report.rows, report.kept, report.broken) == (4, 3, 1)
    [(line, why)] = report.first_broken
    assert line == 3
    assert reason in why
    assert len(load_puzzles(tmp_path / "set")) == 3


def test_only_the_first_broken_rows_are_named(tmp_path: Path) -> None:
    report = pack_csv(write(tmp_path, HEADER + "x\n" * 500 + ROWS[0]), tmp_path / "set")
    assert report.broken == 500
    assert [line for line, _ in report.first_broken] == list(range(2, 12))


def test_a_repeated_id_is_kept_once(tmp_path: Path) -> None:
    harder = ROWS[0].replace(",900,", ",950,")
    report = pack_csv(write(tmp_path, HEADER + harder + ROWS[1] + ROWS[0]), tmp_path / "set")
    assert (report.rows, report.kept, report.repeated) == (3, 2, 1)
    assert load_puzzles(tmp_path / "set").rating.tolist() == [700, 900]


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    titles = HEADER.strip().split(",")[::-1]
    cells = [",".join(row.strip("\n").split(",")[::-1]) for row in ROWS]
    text = "\ufeff" + "\r\n".join([",".join(titles), *cells])
    pack_csv(write(tmp_path, text), tmp_path / "turned")
    pack_csv(write(tmp_path, TEXT), tmp_path / "set")
    one, other = load_puzzles(tmp_path / "turned"), load_puzzles(tmp_path / "set")
    assert (one.boards == other.boards).all()
    assert (one.ids == other.ids).all()


UNREADABLE = {
    "empty": (b"", "is empty"),
    "header only": (HEADER.encode(), "it has no rows"),
    "all broken": (HEADER.encode() + b"x\ny\n", r"holds no puzzle .*line 2: 1 fields"),
    "missing columns": (TEXT.replace(b"Moves", b"Zuege"), "has no column Moves in its first line"),
    "two missing": (TEXT.replace(b"Rating", b"Elo"), "has no column Rating, RatingDeviation in"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), "has no column PuzzleId, FEN"),
    "no lines": (b"x" * (LONGEST_LINE + 2 * BLOCK), "line 1 of .* does not end"),
    "half a zst": (zstandard.compress(TEXT)[:-9], "breaks off before its end"),
    "zst, last byte": (
        zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)[:-1],
        "breaks off before its end",
    ),
    "half a bz2": (bz2.compress(TEXT)[:-9], "breaks off before its end"),
    "start of a zst": (zstandard.compress(TEXT)[:4], "breaks off before its end"),
    "damaged zst": (zstandard.compress(TEXT)[:4] + b"\xff" * 40, "is damaged"),
    "damaged bz2": (bz2.compress(TEXT)[:20] + b"\xff" * 40, "is damaged"),
    "second zst broken off": (
        zstandard.compress(TEXT) + zstandard.compress(TEXT)[:-9],
        "breaks off before its end",
    ),
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
    half = len(TEXT) // 2
    skipped = struct.pack("<II", 0x184D2A50, 4) + b"size"
    parts = TEXT[:half], TEXT[half:]
    for number, content in enumerate(
        (
            b"".join(map(bz2.compress, parts)),
            b"".join(map(zstandard.compress, parts)),
            skipped + zstandard.compress(parts[0]) + skipped + zstandard.compress(parts[1]),
        )
    ):
        assert pack_csv(write(tmp_path, content), tmp_path / f"set{number}").kept == 4


def test_paths_are_checked_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        pack_csv(tmp_path / "nowhere.csv", tmp_path / "set")
    path = write(tmp_path, TEXT)
    with pytest.raises(DataError, match="Is a directory"):
        pack_csv(tmp_path, tmp_path / "set")
    with pytest.raises(UsageError, match="is there already"):
        pack_csv(path, tmp_path)


class Counted(io.BytesIO):
    """A file that knows the most it was ever asked for at once, and how much it gave."""

    given = 0
    most = 0

    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        self.given += len(content)
        self.most = max(self.most, sys.maxsize if size is None or size < 0 else size)
        return content


@pytest.mark.parametrize("packing", PACKINGS)
def test_reading_is_lazy(packing: str) -> None:
    # Random letters in an unused column keep the compressed file longer than a few blocks.
    generator = np.random.default_rng(0)
    urls = generator.integers(97, 123, (9000, 100)).astype(np.uint8)
    rows = b"".join(ROWS[0].encode().replace(b",u,", b"," + bytes(url) + b",") for url in urls)
    raw = Counted(PACKINGS[packing](HEADER.encode() + rows))
    puzzles = read_puzzles(raw, "many")
    for _ in range(20):
        line, packed = next(puzzles)
        assert not isinstance(packed, RowError), (line, packed)
    assert raw.most == BLOCK
    assert raw.given <= 3 * BLOCK < len(raw.getvalue()) / 2


def test_line_numbers() -> None:
    text = b"one\r\n\ntwo\nlast"
    expected = [(1, "one"), (2, ""), (3, "two"), (4, "last")]
    for size in range(1, len(text) + 1):
        pieces = [text[place : place + size] for place in range(0, len(text), size)]
        assert list(lines(pieces, "text")) == expected
    assert list(blocks(io.BytesIO(text), "text")) == [text]


def test_progress(tmp_path: Path) -> None:
    calls: list[tuple[int, float]] = []
    text = HEADER + "x\n" * 3000 + ROWS[0]
    pack_csv(
        write(tmp_path, text), tmp_path / "set", lambda rows, share: calls.append((rows, share))
    )
    assert [rows for rows, _ in calls] == [1024, 2048, 3001]
    assert all(0 < share <= 1 for _, share in calls)
    assert calls[-1][1] == 1.0


@pytest.mark.parametrize("package", ["chess", "zstandard"])
def test_missing_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    path = write(tmp_path, zstandard.compress(TEXT))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"'{package}'.*iterant\[chess\]"):
        pack_csv(path, tmp_path / "set")
    assert list(tmp_path.iterdir()) == [path]
