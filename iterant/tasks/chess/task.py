"""Chess puzzles: find the move, given as the square it leaves and the square it reaches.

    >>> task = Chess(data="puzzles/")                # without data: the sample in the package
    >>> batch = task.sample(300, size=(600_000, 700_000), seed=1)
    >>> task.solved(batch.targets, batch).all()
    tensor(True)
    >>> print(task.describe(task.encode("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1")).text)

A size is an index range ``(first, stop)`` into the puzzles sorted by rating: the 1.5 million that
`iterant.tasks.chess.puzzles.subset` selects. Inputs (N, 12, 8, 8) and targets (N, 8, 8) are as in
`iterant.tasks.chess.position`; they do not hold the colour, so ``extras["black"]`` does.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from iterant.errors import MissingExtra, TaskError, argument
from iterant.rng import Stream
from iterant.tasks.chess.position import (
    LETTERS,
    SIDES,
    PackedPositions,
    Position,
    as_move,
    boards_from_planes,
    check_position,
    legal_moves,
    marked_squares,
    move_text,
    move_words,
    pack,
    parse_fen,
    planes,
    read_game,
    split_games,
    targets,
)
from iterant.tasks.chess.puzzles import FLAGS, SUBSET, Puzzles, load_puzzles, subset
from iterant.tasks.datasets import StoredProblems, holds_sets
from iterant.tasks.inputs import GAMES, TEXT, Material
from iterant.tasks.protocol import (
    Arrow,
    BaseTask,
    Batch,
    Description,
    Glyph,
    Kind,
    Problem,
    RulesCheck,
    Size,
    TaskSpec,
    check_described,
    kinds_by_range,
    problem_numbers,
)

SAMPLE = Path(__file__).parent / "data" / "chess-sample"
"""4,000 puzzles shipped with the package, spread evenly over the 1.5 million."""
TRAIN = 600_000
"""The paper trains on this many of the easiest puzzles."""

ANSWER, RIGHT, WRONG = "#00695c", "#0072b2", "#e6550d"
"""Colours of arrows that colour-blind readers can distinguish."""
_SIGNS = " ♔♕♗♘♖♙♚♛♝♞♜♟"
_LIGHT, _DARK, _MARK = (240, 217, 181), (181, 136, 99), (246, 226, 80)
_PROMOTIONS = ("", "", "n", "b", "r", "q", "")
_NO_RULES = "legality is not checked without pip install 'iterant[chess]'"


@lru_cache(maxsize=4)
def _order(seed: int, first: int, stop: int) -> NDArray[np.int64]:
    """The puzzles of a range, shuffled by a seed."""
    return first + Stream(seed, "chess", first, stop).order(stop - first)


def position_at(batch: Batch, index: int) -> Position:
    """The position of one problem; castling and en passant are None unless it came as a FEN."""
    if "fen" in batch.extras:
        return parse_fen(str(batch.extras["fen"][index]))
    black = "black" in batch.extras and bool(batch.extras["black"][index])
    return Position(boards_from_planes(batch.inputs[[index]], np.array([black]))[0], black)


def _predicted(batch: Batch, index: int, prediction: Tensor) -> tuple[Position, list[int]]:
    """The position of one problem and the squares that a prediction (N, 8, 8) marks."""
    position = position_at(batch, index)
    return position, marked_squares(prediction[index], position.black)


class Chess(BaseTask):
    """Find the move; the puzzles are loaded when first needed.

    ``data`` is a folder of packed puzzles (`iterant data chess`) or of the original benchmark.
    """

    spec = TaskSpec(
        name="chess",
        title="Chess puzzles",
        dims=2,
        channels=12,
        readout="two-best",
        train_size=(0, TRAIN),
        train_count=TRAIN,
        watch_sizes=((600_000, 700_000),),
        tests=tuple(((first, first + 100_000), 100_000) for first in (600_000, 700_000, 1_000_000)),
        size_means="a range first:stop of the puzzles sorted by rating, such as 600000:700000",
    )

    def __init__(self, data: str | Path | None = None) -> None:
        self.data = data
        if data is not None and holds_sets(Path(data)):
            self.stored = StoredProblems(data, self.spec.channels)

    @cached_property
    def puzzles(self) -> Puzzles:
        """The set that sizes refer to."""
        folder = Path(self.data or SAMPLE)
        puzzles = load_puzzles(folder)
        if folder == SAMPLE:
            puzzles = replace(puzzles, source="the sample that comes with the package")
        return subset(puzzles)

    def source(self) -> str:
        if self.stored is not None:
            return f"{self.stored.count():,} of {self.data}"
        return self.puzzles.source

    def check_size(self, size: Size | None) -> tuple[int, int]:
        """The range if the set contains it.

        For None, the paper's training range; of a set too small for it, the same share (the easiest
        two fifths), which in the shipped sample are puzzles of the paper's training range too.
        """
        total = len(self.puzzles) if self.stored is None else self.stored.count()
        if size is None:
            return (0, TRAIN) if total >= TRAIN else (0, max(1, total * TRAIN // SUBSET))
        try:
            first, stop = map(operator.index, size)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise TaskError(f"a size must be {self.spec.size_means}, got {size!r}") from None
        if not 0 <= first < stop <= total:
            raise TaskError(
                f"the range {first}:{stop} is empty or goes beyond the set, which is "
                f"{self.source()}; choose one within 0:{total}, or give a larger set with "
                f"{argument('data')}"
            )
        return first, stop

    def parse_size(self, text: str) -> Size:
        """A range as text: ``parse_size("600000:700000")``."""
        ends = text.strip().replace("_", "").split(":")
        if len(ends) != 2 or not all(re.fullmatch("[0-9]{1,20}", end) for end in ends):
            raise TaskError(f"a size must be {self.spec.size_means}, got {text[:50]!r}")
        return int(ends[0]), int(ends[1])

    def _take(self, size: tuple[int, int], seed: int, numbers: NDArray[np.int64]) -> Puzzles:
        """Puzzles of a shuffled range, none of them twice."""
        start, stop = size
        if numbers[-1] >= stop - start:
            raise TaskError(
                f"the range {start}:{stop} holds {stop - start:,} puzzles, so problems "
                f"{numbers[0]} to {numbers[-1]} are not in it; ask for fewer or for a larger range"
            )
        return self.puzzles.take(_order(seed, start, stop)[numbers])

    def _generate(self, size: tuple[int, int], seed: int, numbers: NDArray[np.int64]) -> Batch:
        puzzles = self._take(size, seed, numbers)
        extras = {
            "rating": puzzles.rating,
            "id": puzzles.ids.astype(np.str_),
            "flags": puzzles.flags,
            "black": puzzles.black,
            "promotion": ((puzzles.moves >> 12) & 7).astype(np.uint8),
        }
        return Batch(*_packed(puzzles)[:], extras)

    def packed(
        self, count: int, *, size: Size | None = None, seed: int = 0, first: int = 0
    ) -> PackedPositions | None:
        """The puzzles of `sample` in 36 bytes each, expanded to batches on the device.

        None for files of the original benchmark.
        """
        if self.stored is not None:
            return None
        return _packed(self._take(self.check_size(size), seed, problem_numbers(count, first)))

    def mirrored(self, inputs: Tensor, targets: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """The chosen positions with left and right exchanged, where castling is impossible.

        Castling has no mirror image, and the planes do not hold castling rights: a position where
        a side has its king and a rook on their home squares stays as it is.
        """
        flip = chosen.to(inputs.device)
        for king, rook, home in ((0, 4, 7), (6, 10, 0)):  # planes and back rank of either side
            rooks = (inputs[:, rook, home, 0] > 0) | (inputs[:, rook, home, 7] > 0)
            flip = flip & ~((inputs[:, king, home, 4] > 0) & rooks)
        return (
            torch.where(flip.view(-1, 1, 1, 1), inputs.flip(-1), inputs),
            torch.where(flip.view(-1, 1, 1), targets.flip(-1), targets),
        )

    def kinds(self, batch: Batch) -> list[Kind]:
        """Puzzles by rating, in hundreds, and by theme; other positions have neither."""
        if not {"rating", "flags"} <= batch.extras.keys():
            return []
        flags = torch.from_numpy(batch.extras["flags"].astype(np.int64))
        themes = [Kind(name, (flags >> bit & 1).bool()) for bit, name in enumerate(FLAGS)]
        return [*kinds_by_range(batch.extras["rating"], 100, "rating"), *themes]

    def encode(self, problem: str) -> Batch:
        """One position as a FEN; its answer is not known."""
        fen = " ".join(problem.split())
        position = parse_fen(fen)
        check_position(fen)
        black = np.array([position.black])
        inputs = planes(torch.from_numpy(pack(position.board[None])), torch.from_numpy(black))
        return Batch(inputs, torch.full((1, 8, 8), -1), {"black": black, "fen": np.array([fen])})

    def split(self, material: Material) -> Iterable[Material]:
        """One part per line (FEN) or per game (PGN)."""
        material.only(TEXT, GAMES, reader="chess puzzles")
        return split_games(material) if material.kind == GAMES else material.lines()

    def read(self, material: Material) -> Problem:
        """The position of a FEN, or the one that a game asks about."""
        if material.kind == GAMES:
            fen, move, note = read_game(material)
            batch = self.encode(fen)
            if move:
                code = torch.tensor([move[0] | move[1] << 6])
                answer = targets(code, torch.from_numpy(batch.extras["black"]))
                batch = replace(batch, targets=answer)
            return Problem(batch, material.name, (note,))
        batch = self.encode(material.text)
        note = position_at(batch, 0).assumption
        return Problem(batch, material.name, (note,) if note else ())

    def describe(
        self, batch: Batch, index: int = 0, prediction: Tensor | None = None
    ) -> Description:
        """One position seen from the side to move, with the answer and the predicted move.

        For black, rank 8 is at the bottom and file h on the left. (The planes of a network flip
        ranks only.) In the text, [ ] are around squares of the answer and ( ) around other
        predicted ones.
        """
        check_described(batch, index, prediction)
        extras = {name: column[index] for name, column in batch.extras.items()}
        position, answer = _predicted(batch, index, batch.targets)
        predicted = [] if prediction is None else _predicted(batch, index, prediction)[1]
        is_right = not answer or set(predicted) == set(answer)
        title = f"Chess puzzle {extras['id']}" if "id" in extras else "Chess position"
        if "rating" in extras:
            title += f", rating {extras['rating']}"
        caption = f"{SIDES[position.black]} to move"
        if answer:
            promotion = _PROMOTIONS[int(extras.get("promotion", 0))]
            caption += f"; answer {move_text(position, answer)}{promotion}"
        if prediction is not None:
            caption += f"; found {move_text(position, predicted)}"
            if answer:
                caption += ", right" if is_right else ", wrong"

        flip = (0, 7) if position.black else (7, 0)

        def cell(square: int) -> tuple[int, int]:
            return square >> 3 ^ flip[0], square & 7 ^ flip[1]

        cells = np.zeros((8, 8, 3), np.uint8)
        text = np.full((8, 8), "   ")
        glyphs = []
        for square, code in enumerate(position.board.tolist()):
            colour = _LIGHT if (square + (square >> 3)) % 2 else _DARK
            cells[cell(square)] = _MARK if square in predicted else colour
            if code:
                glyphs.append(Glyph(*cell(square), _SIGNS[code]))
            left, right = "[]" if square in answer else "()" if square in predicted else "  "
            text[cell(square)] = left + LETTERS[code] + right
        files, ranks = ("hgfedcba", "12345678") if position.black else ("abcdefgh", "87654321")
        lines = [f"{rank} {''.join(signs)}" for rank, signs in zip(ranks, text, strict=True)]
        arrows = [
            Arrow(cell(move[0]), cell(move[1]), colour)
            for squares, colour in ((answer, ANSWER), (predicted, RIGHT if is_right else WRONG))
            if (move := as_move(position, squares))
        ]
        return Description(
            title=title,
            text="\n".join([*lines, "  " + "".join(f" {file} " for file in files)]),
            cells=cells,
            glyphs=tuple(glyphs),
            arrows=tuple(arrows),
            row_labels=tuple(ranks),
            column_labels=tuple(files),
            caption=caption,
        )

    def answer_text(self, batch: Batch, index: int, prediction: Tensor) -> str:
        """The predicted move, such as ``d1d8``."""
        return move_text(*_predicted(batch, index, prediction))

    tell = answer_text  # its name before 0.2

    def verdict(self, batch: Batch, index: int, prediction: Tensor) -> RulesCheck:
        """Whether the prediction is a legal move; unknown without the extra ``chess``."""
        position, squares = _predicted(batch, index, prediction)
        move = as_move(position, squares)
        if move is None:
            side = SIDES[position.black]
            return RulesCheck(
                False, f"no move: two squares, one with a piece of {side}'s, make one"
            )
        words = move_words(position, move)
        try:
            notation = legal_moves(position).get(move)
        except MissingExtra:
            return RulesCheck(None, f"{words}; {_NO_RULES}", unchecked_because=_NO_RULES)
        note = f" ({position.assumption})" if position.assumption else ""
        if not notation:
            return RulesCheck(False, f"{words}, not legal{note}")
        return RulesCheck(True, f"{words} ({notation}), legal{note}")

    def restrict(self, batch: Batch, index: int, logits: Tensor) -> tuple[Tensor, str]:
        """The legal move with the highest logits of class 1, (8, 8) int64, by logits (2, 8, 8).

        The unrestricted answer is read from the same logits: if it is legal, it stays.
        """
        position = position_at(batch, index)
        scores = logits[1].detach().cpu()  # (8, 8)
        # Squares are numbered from rank 1, rows of white's planes from rank 8.
        score = (scores if position.black else scores.flip(0)).flatten().tolist()
        moves = sorted(legal_moves(position))  # of equal scores the first squares
        if not moves:
            raise TaskError("there is no legal move to choose from; give a position before the end")
        origin, destination = max(moves, key=lambda move: score[move[0]] + score[move[1]])
        code = torch.tensor([origin | destination << 6])
        return targets(code, torch.tensor([position.black]))[0], position.assumption


def _packed(puzzles: Puzzles) -> PackedPositions:
    moves = torch.from_numpy(puzzles.moves.astype(np.int32))
    return PackedPositions(torch.from_numpy(np.ascontiguousarray(puzzles.boards)), moves)
