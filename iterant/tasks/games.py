"""Positions out of chess games in PGN, each with the move that was played, where one was.

    >>> [part.name for part in game_parts(material)]
    ['games.pgn game 1', 'games.pgn game 2']
    >>> position_of(part)
    ('6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1', (3, 59), 'the answer is the move of the game, Rd8#')

A game that starts from a position of its own (a puzzle, a study) asks for its first move. Any
other asks for the next move where it breaks off, or, if it is over, for its last one.
Needs the extra ``chess``.
"""

from __future__ import annotations

import importlib
import io
import re
from typing import TYPE_CHECKING, Any

from iterant.errors import MissingExtra, TaskError
from iterant.tasks.reading import Material

if TYPE_CHECKING:
    import chess
    import chess.pgn

Move = tuple[int, int]

_TAG = re.compile(r'\[\s*\w+\s+"')
_FIRST_TAG = '[Event "'
_ASIDE = re.compile(r";.*|\{[^}]*\}")
"""Comments that end on their line."""


def game_parts(material: Material) -> list[Material]:
    """A part a game, whether or not it has tags or moves; comments may hold anything."""
    games = _games(material.text.split("\n"))
    if len(games) == 1:
        return [material]
    return [material.part(text, f"game {number}") for number, text in enumerate(games, start=1)]


def _games(lines: list[str]) -> list[str]:
    """The games of a file: a new one begins with tags, or with moves after an empty line."""
    games: list[list[str]] = [[]]
    tagged = moved = gap = aside = False
    for line in lines:
        text = line.strip()
        if text.startswith(_FIRST_TAG):
            aside = False  # Somebody forgot to close a comment; the next game is none of it.
        if text and not aside and not text.startswith(("%", ";")):
            tag = _TAG.match(text) is not None
            if (moved and (tag or gap)) or (tagged and tag and gap):
                games.append([])
                tagged = moved = False
            tagged, moved, gap = tagged or tag, moved or not tag, False
        gap = gap or not (text or aside)
        if aside or not _TAG.match(text):
            rest = _ASIDE.sub("", ("{" if aside else "") + text)
            aside = "{" in rest
        games[-1].append(line)
    return ["\n".join(game) for game in games if any(line.strip() for line in game)]


def position_of(material: Material) -> tuple[str, Move | None, str]:
    """The FEN of the position that a game asks about, the move played, and what was taken."""
    game = _game(material)
    moves = list(game.mainline_moves())
    board = game.board()
    if "FEN" not in game.headers:
        ahead = board.copy()
        for move in moves:
            ahead.push(move)
        if not ahead.is_game_over():
            return ahead.fen(en_passant="fen"), None, f"the position after {len(moves)} half-moves"
        for move in moves[:-1]:
            board.push(move)
        moves = moves[-1:]
    if not moves:
        return board.fen(en_passant="fen"), None, "the game's own position, no move given"
    played = moves[0]
    said = f"the answer is the move of the game, {board.san(played)}"
    return board.fen(en_passant="fen"), _squares(board, played), said


def _squares(board: chess.Board, move: chess.Move) -> Move:
    """What a move leaves and reaches; castling is the king's, in Chess960 too."""
    if not board.is_castling(move):
        return move.from_square, move.to_square
    return move.from_square, (move.from_square & 56) + (
        2 if board.is_queenside_castling(move) else 6
    )


def _strange(game: chess.pgn.Game) -> bool:
    """Whether other rules hold: a position of Chess960 without castling is like any other."""
    plain = importlib.import_module("chess").Board
    try:
        return game.headers.variant() is not plain
    except ValueError:  # one that the library has not heard of
        return True


def _game(material: Material) -> chess.pgn.Game:
    library: Any
    try:
        library = importlib.import_module("chess.pgn")
    except ImportError as error:
        raise MissingExtra("chess", "chess", "reading games in PGN") from error

    def quiet() -> Any:
        """A builder that keeps what is wrong to be told below, once; the library's prints it."""
        builder = library.GameBuilder()
        builder.handle_error = lambda error: builder.game.errors.append(error)
        return builder

    try:
        game: chess.pgn.Game | None = library.read_game(io.StringIO(material.text), Visitor=quiet)
    except (ValueError, IndexError, KeyError) as error:  # it stumbles over stray brackets
        raise TaskError(f"the game cannot be read: {error}; check its FEN tag") from error
    if game is not None and _strange(game):
        variant = game.headers["Variant"]
        raise TaskError(f"the game is of the variant {variant!r}; give games of plain chess")
    if game is not None and game.errors:
        raise TaskError(f"the game cannot be played: {game.errors[0]}; correct its moves")
    if game is None or (not game.headers.get("FEN") and not game.variations):
        raise TaskError("there is no game in it; give a PGN with tags and moves")
    return game
