"""Positions out of chess games in PGN, each with the move that was played, where one was.

    >>> [part.name for part in game_parts(material)]
    ['games.pgn game 1', 'games.pgn game 2']
    >>> position_of(part)
    ('6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1', (3, 59), 'the answer is the move of the game, Rd8#')

A game that starts from a position of its own (a puzzle, a study) asks for its first move. Any
other asks for the next move where it breaks off, or, if it is over, for its last one.
Needs the extra ``chess``.

Test suites for chess players and engines: EPD, a position with what is best in it.

Read are ``bm`` (best moves), ``am`` (moves to avoid) and ``id``; other operations are left to the
engines that they are for. Moves are read by `iterant.tasks.chess.rules`, without python-chess.

Chess positions as people have them: FENs or EPDs, one a line, or games in PGN.
"""

from __future__ import annotations

import importlib
import io
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from iterant.errors import MissingExtra, TaskError
from iterant.tasks.chess.boards import pack, planes, targets
from iterant.tasks.chess.fen import check_position, parse_fen
from iterant.tasks.chess.rules import assumed, squares_of
from iterant.tasks.inputs import GAMES, TEXT, Material, Problem
from iterant.tasks.protocol import Batch

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


_BEST, _AVOID, _LABEL = "bm", "am", "id"
_LINE = re.compile(r"(\S+(?:\s+\S+){3}(?:\s+[0-9]+){0,2})\s+([A-Za-z].*)", re.DOTALL)
"""The fields of a FEN, with its counters or without, and what follows."""
_OPERATION = re.compile(r'\s*([A-Za-z]\w*)((?:\s+(?:"[^"]*"|[^\s;"]+))*)\s*(?:;|$)')
_OPERAND = re.compile(r'"([^"]*)"|([^\s"]+)')


@dataclass(frozen=True)
class Entry:
    """A position of a suite, and what its maker says of it."""

    fen: str
    label: str = ""
    best: tuple[str, ...] = ()
    """Any of them is right"""
    avoid: tuple[str, ...] = ()
    """None of them is"""


def parse_epd(text: str) -> Entry | None:
    """What an EPD says, None for a text without operations, or TaskError for wrong ones."""
    line = _LINE.fullmatch(text.strip())
    if line is None:
        return None
    fen, rest = line.groups()
    if ";" not in rest and rest.split()[0] not in (_BEST, _AVOID, _LABEL):
        return None  # words after a FEN: its own reader says what is wrong with it
    told = _operations(rest)
    for opcode in (_BEST, _AVOID):
        moves = told.get(opcode)
        if moves == ():
            raise TaskError(f"{opcode} of an EPD names a move or more, got none; write bm Nf3;")
        if swallowed := {_BEST, _AVOID, _LABEL} & set(moves or ()):
            raise TaskError(
                f"a ; is missing before {min(swallowed)} in the EPD; write bm Nf3; id 1;"
            )
    label = "".join(sign for sign in " ".join(told.get(_LABEL, ())) if sign.isprintable())
    return Entry(" ".join(fen.split()), label, told.get(_BEST, ()), told.get(_AVOID, ()))


def _operations(text: str) -> dict[str, tuple[str, ...]]:
    """Operands by opcode."""
    told: dict[str, tuple[str, ...]] = {}
    text, place = text.strip(), 0
    while place < len(text):
        found = _OPERATION.match(text, place)
        if found is None:
            raise TaskError(
                f"an operation of the EPD cannot be read: {text[place:].strip()[:40]!r}; "
                'write it like bm Nf3; or id "a name";'
            )
        if found[1] in told:
            raise TaskError(f"{found[1]} stands twice in the EPD; write all of it once")
        told[found[1]] = tuple(
            quoted or plain for quoted, plain in _OPERAND.findall(found[2]) if quoted or plain
        )
        place = found.end()
    return told


_LABEL_CHESS_READING = 24
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
    short = label if len(label) <= _LABEL_CHESS_READING else f"{label[: _LABEL_CHESS_READING - 1]}…"
    return f"{name} ({short})" if name else short
