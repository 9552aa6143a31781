"""Chess files: EPD (a position with its best moves) and games in PGN.

    >>> parse_epd('6k1/5ppp/8/8/8/8/8/K2R4 w - - bm Rd8#; id "mate";')
    Entry(fen='6k1/5ppp/8/8/8/8/8/K2R4 w - -', label='mate', best=('Rd8#',), avoid=())
    >>> [part.name for part in split_games(material)]
    ['games.pgn game 1', 'games.pgn game 2']

Of an EPD, ``bm`` (best moves), ``am`` (moves to avoid) and ``id`` are read. Games are read by
python-chess, from the extra ``chess``.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iterant.errors import TaskError
from iterant.tasks.chess.rules import Move, python_chess
from iterant.tasks.inputs import Material

if TYPE_CHECKING:
    import chess.pgn

_OPCODES = ("bm", "am", "id")
_LINE = re.compile(r"(\S+(?:\s+\S+){3}(?:\s+[0-9]+){0,2})\s+([A-Za-z].*)", re.DOTALL)
"""The four fields of a FEN, perhaps its counters, and the operations."""
_OPERATION = re.compile(r'\s*([A-Za-z]\w*)((?:\s+(?:"[^"]*"|[^\s;"]+))*)\s*(?:;|$)')
_OPERAND = re.compile(r'"([^"]*)"|([^\s"]+)')


@dataclass(frozen=True)
class Entry:
    """One line of a test suite."""

    fen: str
    label: str = ""
    best: tuple[str, ...] = ()
    """Any of these moves is right"""
    avoid: tuple[str, ...] = ()
    """None of these is"""


def parse_epd(text: str) -> Entry | None:
    """The entry of an EPD, None for a text without operations, TaskError for malformed ones."""
    line = _LINE.fullmatch(text.strip())
    if line is None:
        return None
    fen, rest = line[1], line[2].strip()
    if ";" not in rest and rest.split()[0] not in _OPCODES:
        return None  # text after a FEN, which the reader of FENs refuses
    operations: dict[str, tuple[str, ...]] = {}
    start = 0
    while start < len(rest):
        match = _OPERATION.match(rest, start)
        if match is None:
            raise TaskError(
                f"an operation of the EPD cannot be read: {rest[start:].strip()[:40]!r}; "
                'write it like bm Nf3; or id "a name";'
            )
        opcode, operands = match[1], ["".join(pair) for pair in _OPERAND.findall(match[2])]
        if opcode in operations:
            raise TaskError(f"{opcode} stands twice in the EPD; write all of it once")
        operations[opcode] = tuple(filter(None, operands))
        if opcode in ("bm", "am"):
            if not operations[opcode]:
                raise TaskError(f"{opcode} of an EPD names a move or more, got none; write bm Nf3;")
            if swallowed := set(_OPCODES) & set(operands):
                raise TaskError(
                    f"a ; is missing before {min(swallowed)} in the EPD; write bm Nf3; id 1;"
                )
        start = match.end()
    best, avoid, label = (operations.get(opcode, ()) for opcode in _OPCODES)
    printable = "".join(sign for sign in " ".join(label) if sign.isprintable())
    return Entry(" ".join(fen.split()), printable, best, avoid)


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

    A game that starts from its own position (a puzzle, a study) asks for its first move. Any other
    asks for the next move after its end, or, if the game is over, for its last move.
    """
    game = _parse_game(material)
    moves = list(game.mainline_moves())
    board = game.board()
    if "FEN" not in game.headers:
        end = game.end().board()
        if not end.is_game_over():
            return end.fen(en_passant="fen"), None, f"the position after {len(moves)} half-moves"
        for move in moves[:-1]:
            board.push(move)
        moves = moves[-1:]
    if not moves:
        return board.fen(en_passant="fen"), None, "the game's own position, no move given"
    move = moves[0]
    origin, destination = move.from_square, move.to_square
    if board.is_castling(move):  # Chess960 writes the rook's square
        destination = (origin & 56) + (2 if board.is_queenside_castling(move) else 6)
    note = f"the answer is the move of the game, {board.san(move)}"
    return board.fen(en_passant="fen"), (origin, destination), note


def _quiet_builder() -> Any:
    """A game builder that collects errors instead of printing them."""
    builder = python_chess("reading games in PGN", "chess.pgn").GameBuilder()
    builder.handle_error = lambda error: builder.game.errors.append(error)
    return builder


def _parse_game(material: Material) -> chess.pgn.Game:
    pgn = python_chess("reading games in PGN", "chess.pgn")
    try:
        game: chess.pgn.Game | None = pgn.read_game(
            io.StringIO(material.text), Visitor=_quiet_builder
        )
    except (ValueError, IndexError, KeyError) as error:  # stray brackets in the library's parser
        raise TaskError(f"the game cannot be read: {error}; check its FEN tag") from error
    if game is None:
        raise TaskError("there is no game in it; give a PGN with tags and moves")
    try:
        standard = game.headers.variant() is python_chess("reading games in PGN").Board
    except ValueError:  # a variant that the library does not know
        standard = False
    if not standard:
        variant = game.headers["Variant"]
        raise TaskError(f"the game is of the variant {variant!r}; give games of plain chess")
    if game.errors:
        raise TaskError(f"the game cannot be played: {game.errors[0]}; correct its moves")
    if not game.headers.get("FEN") and not game.variations:
        raise TaskError("there is no game in it; give a PGN with tags and moves")
    return game
