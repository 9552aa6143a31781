"""Chess puzzles: find the move, given as the square it leaves and the square it reaches.

    >>> task = Chess(data="puzzles/")                              # or Chess(): see `find_puzzles`
    >>> batch = task.sample(300, size=(600_000, 700_000), seed=1)
    >>> task.solved(batch.targets, batch).all()
    tensor(True)
    >>> print(task.describe(task.encode("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1")).text)

A size is an index range ``(first, stop)`` into the puzzles sorted by rating, 1.5 million drawn by
the rule of `iterant.tasks.chess.puzzles.subset`. Planes, rows and targets are described in
`iterant.tasks.chess.boards`; they do not hold the colour, so ``extras["black"]`` does.

What is to be seen and said of an answer to a chess puzzle: a board, a move, whether it is legal.

Shapes: N positions, grids (N, 8, 8) as in `iterant.tasks.chess.boards`.
"""

from __future__ import annotations

import operator
import os
import sys
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import DataError, MissingExtra, TaskError
from iterant.tasks.chess.boards import PackedPositions, boards_from_planes, mirrored, square_at
from iterant.tasks.chess.diagram import as_move, diagram, move_text, move_words
from iterant.tasks.chess.fen import Position, parse_fen
from iterant.tasks.chess.formats import chess_batch, chess_parts, chess_problem
from iterant.tasks.chess.puzzles import FLAGS, SUBSET, Puzzles, holds_puzzles, load_puzzles, subset
from iterant.tasks.chess.rules import Move, assumed, best_legal, is_legal, notation, squares_of
from iterant.tasks.datasets import Stored, holds_sets
from iterant.tasks.inputs import Material, Problem
from iterant.tasks.protocol import (
    Batch,
    Description,
    Kind,
    Size,
    TaskSpec,
    Verdict,
    check_count,
    every_position_right,
    ranges,
)
from iterant.tasks.rng import Stream

_PROMOTIONS = ("", "", "n", "b", "r", "q", "")
_UNSEEN = "whether it is legal was not looked at: that needs pip install 'iterant[chess]'"


def describe_position(batch: Batch, index: int, prediction: Tensor | None) -> Description:
    """One position seen by the side to move, with the answer and the move found."""
    if not 0 <= index < len(batch):
        raise TaskError(f"position {index} was asked for of {len(batch)}; count from 0")
    if prediction is not None and prediction.shape != batch.targets.shape:
        raise TaskError(
            f"the prediction has shape {tuple(prediction.shape)}, "
            f"the targets {tuple(batch.targets.shape)}; give those of the whole batch"
        )
    extras = {name: column[index] for name, column in batch.extras.items()}
    position = position_at(batch, index)
    black = position.black_to_move
    # A position that somebody gave is named by whoever shows it.
    puzzle = "id" in extras and "fen" not in extras
    title = f"Chess puzzle {extras['id']}" if puzzle else "Chess position"
    answer = _marked(batch.targets[index], black)
    found = None if prediction is None else _marked(prediction[index], black)
    if answer and found and any(set(found) == set(move) for move in _told(batch, index, "best")):
        answer = found  # of several best moves, the one that was found
    drawn = diagram(
        position.board,
        black,
        title=f"{title}, rating {extras['rating']}" if "rating" in extras else title,
        answer=answer,
        found=found,
        promotion=_PROMOTIONS[int(extras.get("promotion", 0))],
    )
    avoid = str(extras.get("avoid", ""))
    return replace(drawn, caption=f"{drawn.caption}; to avoid: {avoid}") if avoid else drawn


def position_at(batch: Batch, index: int) -> Position:
    """The position behind the planes; what only a FEN holds is None where there was none."""
    if "fen" in batch.extras:
        return parse_fen(str(batch.extras["fen"][index]))
    black = "black" in batch.extras and bool(batch.extras["black"][index])
    board = boards_from_planes(batch.inputs[index : index + 1], np.array([black]))[0]
    return Position(board, black, castling=None, en_passant=None)


def tell_move(batch: Batch, index: int, prediction: Tensor) -> str:
    """The move in the notation of engines, or what the marked squares are instead."""
    position = position_at(batch, index)
    black = position.black_to_move
    return move_text(_marked(prediction[index], black), position.board, black)


def judge_move(batch: Batch, index: int, prediction: Tensor) -> Verdict:
    """Whether the marked squares are a legal move, as far as that can be told here."""
    position = position_at(batch, index)
    black = position.black_to_move
    move = as_move(_marked(prediction[index], black), position.board, black)
    if move is None:
        return Verdict(False, _no_move(_marked(prediction[index], black), position))
    words = move_words(position.board, move, position.en_passant)
    try:
        written = notation(position, *move)
    except MissingExtra:
        return Verdict(None, f"{words}; {_UNSEEN}", lacking=_UNSEEN)
    said = f" ({assumed(position)})" if assumed(position) else ""
    if not written:
        return Verdict(False, f"{words}, not legal{said}")
    return Verdict(True, f"{words} ({written}), legal{said}")


def wanted_moves(batch: Batch, index: int) -> str:
    """What an EPD calls best, or to be avoided, as it writes the moves."""
    best, avoid = (
        " or ".join(str(batch.extras[name][index]).split()) if name in batch.extras else ""
        for name in ("best", "avoid")
    )
    return ", ".join(words for words in (best, f"not {avoid}" if avoid else "") if words)


def accepts_move(batch: Batch, index: int, prediction: Tensor) -> bool:
    """Whether it is one of the best moves; where none is told, a legal one that none forbids."""
    position = position_at(batch, index)
    black = position.black_to_move
    move = as_move(_marked(prediction[index], black), position.board, black)
    if move is None or move in _told(batch, index, "avoid"):
        return False
    best = _told(batch, index, "best")
    return move in best if best else is_legal(position, move)


def _told(batch: Batch, index: int, name: str) -> list[Move]:
    """The moves that an EPD calls so: "best" or "avoid"."""
    if name not in batch.extras:
        return []
    position = position_at(batch, index)
    return [squares_of(position, word) for word in str(batch.extras[name][index]).split()]


def _no_move(squares: list[int], position: Position) -> str:
    """Why marked squares are no move of the side to move."""
    if len(squares) != 2:
        return f"no move: two squares make one, here are {len(squares)}"
    side = "Black" if position.black_to_move else "White"
    held = position.board[squares].astype(int)
    own = ((held > 0) & ((held > 6) == position.black_to_move)).all()
    return f"no move: {'both squares hold' if own else 'neither square holds'} a piece of {side}'s"


def restrict_move(batch: Batch, index: int, logits: Tensor) -> tuple[Tensor, str]:
    """(8, 8) int64: the legal move with the highest scores, by logits (2, 8, 8).

    Scores are those of class 1, by which the plain answer is read too: where that is legal, it
    stays, and masking changes nothing else.
    """
    position = position_at(batch, index)
    black = position.black_to_move
    cells = [(row, column) for row in range(8) for column in range(8)]
    square_of = {square_at(row, column, black): (row, column) for row, column in cells}
    scores = logits[1].detach().cpu()
    move = best_legal(position, [float(scores[square_of[square]]) for square in range(64)])
    grid = torch.zeros(8, 8, dtype=torch.int64)
    for square in move:
        grid[square_of[square]] = 1
    return grid, assumed(position)


def _marked(grid: Tensor, black: bool) -> list[int]:
    """The squares of the cells that hold 1."""
    return [square_at(row, column, black) for row, column in (grid == 1).nonzero().tolist()]


SAMPLE = Path(__file__).parent / "data" / "chess-sample"
"""Some thousand puzzles that come with the package, spread evenly over the 1.5 million."""

SHIPPED = "the sample that comes with the package"

TRAIN = 600_000
"""How many of the easiest puzzles the paper trains on."""

SPEC = TaskSpec(
    name="chess",
    title="Chess puzzles",
    dims=2,
    channels=12,
    readout="two-best",
    train_size=(0, TRAIN),
    train_count=TRAIN,
    watch_sizes=((600_000, 700_000),),
    tests=(
        ((600_000, 700_000), 100_000),
        ((700_000, 800_000), 100_000),
        ((1_000_000, 1_100_000), 100_000),
    ),
    size_means="a range first:stop of the puzzles sorted by rating, such as 600000:700000",
)


def cache_folder() -> Path:
    """Where this system keeps a user's cached files, for all of iterant."""
    home = Path.home()
    places = {"darwin": home / "Library" / "Caches", "win32": home / "AppData" / "Local"}
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else places.get(sys.platform, home / ".cache")) / "iterant"


def find_puzzles(data: str | Path | None = None) -> Path:
    """The folder of packed puzzles: the one given, else the first that is there.

    Looked at in turn: ``ITERANT_DATA`` and its subfolder ``chess``, the subfolder ``chess`` of the
    user's cache folder, and the sample that comes with the package.
    """
    if data is not None:
        return Path(data)
    places = [cache_folder() / "chess"]
    given = os.environ.get("ITERANT_DATA")
    if given:
        if not Path(given).is_dir():
            raise DataError(
                f"ITERANT_DATA names {given!r}, which is no folder; correct or unset it"
            )
        places = [Path(given), Path(given) / "chess", *places]
    return next((place for place in places if holds_puzzles(place)), SAMPLE)


@lru_cache(maxsize=4)
def _order(seed: int, first: int, stop: int) -> NDArray[np.int64]:
    """The puzzles of a range, shuffled by a seed."""
    order = first + Stream(seed, "chess", first, stop).order(stop - first)
    order.flags.writeable = False
    return order


class Chess:
    """The task of finding the move; the puzzles are read when they are first needed."""

    spec = SPEC

    def __init__(self, data: str | Path | None = None) -> None:
        """Take the puzzles from a folder, or from the first place that has some."""
        self.data = data

    @cached_property
    def puzzles(self) -> Puzzles:
        """The set that sizes refer to; its `source` says where it came from and what was kept."""
        folder = find_puzzles(self.data)
        puzzles = load_puzzles(folder)
        return subset(replace(puzzles, source=SHIPPED) if folder == SAMPLE else puzzles)

    @cached_property
    def stored(self) -> Stored | None:
        """The original benchmark's files, where ``data`` names those instead of packed puzzles."""
        if self.data is None or holds_puzzles(Path(self.data)) or not holds_sets(Path(self.data)):
            return None
        return Stored(self.data, channels=self.spec.channels)

    def came_from(self) -> str:
        """Which puzzles sizes refer to: the whole set and a small one have the same indices."""
        if self.stored is not None:
            return f"{self.stored.count():,} of {self.data}"
        return self.puzzles.source

    def check_size(self, size: Size | None) -> tuple[int, int]:
        """The range itself if the set holds it.

        For None, the paper's training range; of a set too small for it, the same share (the easiest
        two fifths), which of the shipped sample are puzzles of the paper's training range too.
        """
        total = len(self.puzzles) if self.stored is None else self.stored.count()
        if size is None:
            return (0, TRAIN) if total >= TRAIN else (0, max(1, total * TRAIN // SUBSET))
        try:
            ends: tuple[int, ...] = (size,) if isinstance(size, int) else tuple(size)
            first, stop = map(operator.index, ends)
        except (TypeError, ValueError):
            raise TaskError(f"a size must be {self.spec.size_means}, got {size!r}") from None
        if first < 0 or stop <= first:
            raise TaskError(
                f"the range {first}:{stop} holds no puzzles; wanted 0 <= first < stop, "
                f"such as 600000:700000"
            )
        if stop > total:
            raise TaskError(
                f"the range {first}:{stop} goes beyond the set, which is {self.came_from()}; "
                f"choose one within 0:{total}, or give a larger set with --data or ITERANT_DATA"
            )
        return first, stop

    def parse_size(self, text: str) -> Size:
        """A range as people write it: ``parse_size("600000:700000")``."""
        ends = text.strip().replace("_", "").split(":")
        if len(ends) != 2 or not all(end.isascii() and end.isdigit() for end in ends):
            raise TaskError(f"a size must be {self.spec.size_means}, got {text!r}")
        return int(ends[0]), int(ends[1])

    def rows(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> NDArray[np.int64]:
        """Which puzzles of the set `sample` gives: a shuffled range, none of them twice."""
        start, stop = self.check_size(size)
        if first < 0 or first + check_count(count) > stop - start:
            raise TaskError(
                f"the range {start}:{stop} holds {stop - start:,} puzzles, so problems {first} to "
                f"{first + count - 1} are not in it; ask for fewer or for a larger range"
            )
        return _order(seed, start, stop)[first : first + count]

    def sample(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> Batch:
        """Puzzles ``first … first + count - 1`` of a range shuffled by the seed."""
        if self.stored is not None:
            return self.stored.sample(count, size=self.check_size(size), seed=seed, first=first)
        chosen = self.puzzles.take(self.rows(count, size=size, seed=seed, first=first))
        inputs, wanted = _packed(chosen)[:]
        return Batch(
            inputs,
            wanted,
            {
                "rating": chosen.rating,
                "id": chosen.ids.astype(np.str_),
                "flags": chosen.flags,
                "black": chosen.black,
                "promotion": ((chosen.moves >> 12) & 7).astype(np.uint8),
            },
        )

    @property
    def packs(self) -> bool:
        """Whether the set is packed puzzles and not the original benchmark's files."""
        return self.stored is None

    def packed(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> PackedPositions:
        """The same puzzles as `sample` as bytes, 36 a puzzle, for batches made on the device."""
        return _packed(self.puzzles.take(self.rows(count, size=size, seed=seed, first=first)))

    def mirrored(self, inputs: Tensor, targets: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """The chosen positions with left and right exchanged, where nobody could castle."""
        return mirrored(inputs, targets, chosen)

    def kinds(self, batch: Batch) -> list[Kind]:
        """Puzzles by rating, in hundreds, and by theme; positions of one's own have neither."""
        if not {"rating", "flags"} <= batch.extras.keys():
            return []
        flags = torch.from_numpy(batch.extras["flags"].astype(np.int64))
        themes = [Kind(name, (flags >> bit & 1).bool()) for bit, name in enumerate(FLAGS)]
        return [*ranges(batch.extras["rating"], 100, "rating"), *themes]

    def encode(self, problem: str) -> Batch:
        """One position as a FEN, or as an EPD with its best moves; else no answer is known."""
        return chess_batch(problem)

    def split(self, material: Material) -> list[Material]:
        """A FEN or an EPD a line, or a game a part."""
        return chess_parts(material)

    def read(self, material: Material) -> Problem:
        """The position of a FEN or an EPD, or the one that a game in PGN asks about."""
        return chess_problem(material)

    def solved(self, prediction: Tensor, batch: Batch) -> Tensor:
        """(N,) bool: exactly the squares of the move are marked."""
        return every_position_right(prediction, batch)

    def describe(
        self, batch: Batch, index: int = 0, prediction: Tensor | None = None
    ) -> Description:
        """One position seen by the side to move, with the answer and the move found."""
        return describe_position(batch, index, prediction)

    def tell(self, batch: Batch, index: int, prediction: Tensor) -> str:
        """The move found, such as ``d1d8``."""
        return tell_move(batch, index, prediction)

    def verdict(self, batch: Batch, index: int, prediction: Tensor) -> Verdict:
        """Whether it is legal; told with the extra ``chess`` only."""
        return judge_move(batch, index, prediction)

    def accepts(self, batch: Batch, index: int, prediction: Tensor) -> bool:
        """Whether it is a best move of an EPD, or at least none to avoid."""
        return accepts_move(batch, index, prediction)

    def wanted(self, batch: Batch, index: int) -> str:
        """The best moves of an EPD, or those to avoid: ``Rd8 or Qe8+``, ``not Nxe5``."""
        return wanted_moves(batch, index)

    def restrict(self, batch: Batch, index: int, logits: Tensor) -> tuple[Tensor, str]:
        """The best legal move; needs the extra ``chess``."""
        return restrict_move(batch, index, logits)


def _packed(puzzles: Puzzles) -> PackedPositions:
    """Puzzles as tensors."""
    moves = torch.from_numpy(puzzles.moves.astype(np.int32))
    return PackedPositions(torch.from_numpy(np.ascontiguousarray(puzzles.boards)), moves)
