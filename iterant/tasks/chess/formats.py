"""Chess files: EPD (a position with its best moves) and games in PGN.

    >>> parse_epd('6k1/5ppp/8/8/8/8/8/K2R4 w - - bm Rd8#; id "mate";')
    ('6k1/5ppp/8/8/8/8/8/K2R4 w - -', {'bm': ('Rd8#',), 'id': ('mate',)})
    >>> [part.name for part in split_games(material)]
    ['games.pgn game 1', 'games.pgn game 2']

Of an EPD, ``bm`` (best moves, any of which is right), ``am`` (moves to avoid) and ``id`` are used.
Games are read by python-chess, from the extra ``chess``.
"""

from __future__ import annotations

import io
import logging
import re
from typing import TYPE_CHECKING

from iterant.errors import TaskError
from iterant.tasks.chess.position import Move, python_chess
from iterant.tasks.inputs import Material

if TYPE_CHECKING:
    import chess.pgn

_OPCODES = ("bm", "am", "id")
_LINE = re.compile(r"(\S+(?:\s+\S+){3}(?:\s+[0-9]+){0,2})\s+([A-Za-z].*)", re.DOTALL)
"""The four fields of a FEN, perhaps its counters, and the operations."""
# An unpaired quotation mark begins a separate operation, which then has no valid opcode.
_OPERATION = re.compile(r'(?:"[^"]*"|[^;"])+|".*')
_WORD = re.compile(r'"[^"]*"|[^\s"]+|"')


def parse_epd(text: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The FEN of an EPD and its operations; a FEN alone has none."""
    line = _LINE.fullmatch(text.strip())
    if line is None or (";" not in line[2] and line[2].split()[0] not in _OPCODES):
        return " ".join(text.split()), {}
    operations: dict[str, tuple[str, ...]] = {}
    for operation in filter(str.strip, _OPERATION.findall(line[2])):
        opcode, *words = (word.strip('"') for word in _WORD.findall(operation))
        # An opcode among the moves means that a ; is missing before it.
        no_moves = opcode in ("bm", "am") and (not words or set(_OPCODES) & set(words))
        if not opcode.isidentifier() or opcode in operations or no_moves:
            raise TaskError(
                f"the EPD cannot be read at {operation.strip()[:40]!r}; "
                'write each operation once and with a ; after it, like bm Nf3; id "a name";'
            )
        operations[opcode] = tuple(filter(None, words))
    return " ".join(line[1].split()), operations


def split_games(material: Material) -> list[Material]:
    """One part per game of a PGN file."""
    pgn = python_chess("reading games in PGN", "chess.pgn")
    games = []
    # Splitting at the Event tags first keeps a comment left open from swallowing the next game.
    for chunk in re.split(r'^(?=\[Event ")', material.text, flags=re.MULTILINE):
        stream, start = io.StringIO(chunk), 0
        while pgn.skip_game(stream):
            games.append(chunk[start : stream.tell()])
            start = stream.tell()
    if len(games) < 2:
        return [material]
    return [material.part(text, f"game {number}") for number, text in enumerate(games, start=1)]


def read_game(material: Material) -> tuple[str, Move | None, str]:
    """The FEN of the position to solve, the move played there, and a note.

    The move to find is the first one of a game that starts from a given position (a puzzle, a
    study). Otherwise it is the next move after those played, or the last one if the game is over.
    """
    game = _parse_game(material.text)
    moves, board = list(game.mainline_moves()), game.board()
    if "FEN" not in game.headers:
        end = game.end().board()
        if not end.is_game_over():
            return end.fen(en_passant="fen"), None, f"the position after {len(moves)} half-moves"
        for move in moves[:-1]:
            board.push(move)
        moves = moves[-1:]
    fen = board.fen(en_passant="fen")
    if not moves:
        return fen, None, "the game's own position, no move given"
    origin, destination = moves[0].from_square, moves[0].to_square
    if board.is_castling(moves[0]):  # Chess960 writes the rook's square
        destination = (origin & 56) + (2 if board.is_queenside_castling(moves[0]) else 6)
    return fen, (origin, destination), f"the answer is the move of the game, {board.san(moves[0])}"


def _parse_game(text: str) -> chess.pgn.Game:
    pgn = python_chess("reading games in PGN", "chess.pgn")
    logging.getLogger("chess.pgn").disabled = True  # errors are raised here, not logged
    try:
        game: chess.pgn.Game | None = pgn.read_game(io.StringIO(text))
        variant = game.headers.variant() if game else None
    except (ValueError, IndexError, KeyError) as error:  # stray brackets, unknown variants
        raise TaskError(f"the game cannot be read: {error}; check its tags") from error
    if game and variant is not python_chess("reading games in PGN").Board:
        raise TaskError(f"{game.headers['Variant']} is another game; give games of plain chess")
    if game and game.errors:
        raise TaskError(f"the game cannot be played: {game.errors[0]}; correct its moves")
    if not game or not (game.headers.get("FEN") or game.variations):
        raise TaskError("there is no game in it; give a PGN with tags and moves")
    return game
