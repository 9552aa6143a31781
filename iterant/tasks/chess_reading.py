"""Chess positions as people have them: FENs or EPDs, one a line, or games in PGN.

>>> chess_problem(Material("", b"6k1/5ppp/8/8/8/8/8/K2R4 w")).notes
('castling and en passant not given, taken as absent',)
>>> chess_problem(Material("", b'6k1/5ppp/8/8/8/8/8/K2R4 w - - bm Rd8#; id "mate";')).name
'mate'
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from iterant.tasks.algebraic import squares_of
from iterant.tasks.boards import pack, planes, targets
from iterant.tasks.games import game_parts, position_of
from iterant.tasks.legality import assumed
from iterant.tasks.positions import check_position, parse_fen
from iterant.tasks.protocol import Batch
from iterant.tasks.reading import GAMES, TEXT, Material, Problem
from iterant.tasks.suites import Entry, parse_epd

_LABEL = 24
"""Signs of a position's own name beside its file and line."""


def chess_parts(material: Material) -> list[Material]:
    """A FEN or an EPD a line, or a game a part."""
    material.only(TEXT, GAMES, reader="chess puzzles")
    return game_parts(material) if material.kind == GAMES else material.lines()


def chess_problem(material: Material) -> Problem:
    """The position of a FEN, whose answer is not known, or of an EPD or a game, where it often is.

    A game's answer is the move that was played, an EPD's its best move.
    """
    if material.kind == GAMES:
        fen, played, said = position_of(material)
        batch = chess_batch(fen)
        return Problem(_answered(batch, played) if played else batch, material.name, (said,))
    batch = chess_batch(material.text)
    said = assumed(parse_fen(str(batch.extras["fen"][0])))
    return Problem(batch, _called(material.name, batch), (said,) if said else ())


def chess_batch(text: str) -> Batch:
    """One position as a FEN or an EPD; targets are the first of the best moves, or -1."""
    entry = parse_epd(text) or Entry(" ".join(text.split()))
    position = check_position(parse_fen(entry.fen))
    moves = [squares_of(position, word) for word in (*entry.best, *entry.avoid)]
    black = np.array([position.black_to_move])
    inputs = planes(torch.from_numpy(pack(position.board[None])), torch.from_numpy(black))
    told = {"id": entry.label, "best": " ".join(entry.best), "avoid": " ".join(entry.avoid)}
    extras = {"black": black, "fen": np.array([entry.fen])}
    extras |= {name: np.array([words]) for name, words in told.items() if words}
    batch = Batch(inputs, torch.full((1, 8, 8), -1), extras)
    return _answered(batch, moves[0]) if entry.best else batch


def _answered(batch: Batch, move: tuple[int, int]) -> Batch:
    """The position with that move for its answer."""
    origin, goal = move
    black = torch.from_numpy(batch.extras["black"])
    return replace(batch, targets=targets(torch.tensor([origin | goal << 6]), black))


def _called(name: str, batch: Batch) -> str:
    """What the position is called: where it stands, and its own name if it has one."""
    if "id" not in batch.extras:
        return name
    label = str(batch.extras["id"][0])
    short = label if len(label) <= _LABEL else f"{label[: _LABEL - 1]}…"
    return f"{name} ({short})" if name else short
