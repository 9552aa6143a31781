"""Chess positions as people have them: FENs, one a line, or games in PGN.

>>> chess_problem(task.encode, Material("", b"6k1/5ppp/8/8/8/8/8/K2R4 w")).notes
('castling and en passant not given, taken as absent',)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from iterant.tasks.boards import targets
from iterant.tasks.games import game_parts, position_of
from iterant.tasks.legality import assumed
from iterant.tasks.positions import parse_fen
from iterant.tasks.protocol import Batch
from iterant.tasks.reading import GAMES, TEXT, Material, Problem


def chess_parts(material: Material) -> list[Material]:
    """A FEN a line, or a game a part."""
    material.only(TEXT, GAMES, reader="chess puzzles")
    return game_parts(material) if material.kind == GAMES else material.lines()


def chess_problem(encode: Callable[[str], Batch], material: Material) -> Problem:
    """The position of a FEN, whose answer is not known, or of a game, whose next move often is."""
    if material.kind != GAMES:
        batch = encode(material.text)
        said = assumed(parse_fen(material.text))
        return Problem(batch, material.name, (said,) if said else ())
    fen, played, said = position_of(material)
    batch = encode(fen)
    if played is not None:
        move = torch.tensor([played[0] | played[1] << 6])
        batch = replace(batch, targets=targets(move, torch.from_numpy(batch.extras["black"])))
    return Problem(batch, material.name, (said,))
