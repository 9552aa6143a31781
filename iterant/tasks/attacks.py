"""Which squares a side attacks, and whether the side to move can move at all.

    >>> board = parse_fen("6k1/8/8/8/8/8/8/K5R1 b").board
    >>> in_check(board, black=True)
    True

Just enough of the rules to refuse a position that cannot occur or that holds nothing to find, and
to read written moves (`iterant.tasks.algebraic`), without python-chess. Castling is left out: a
king that may castle may also step aside, so castling is never the only move.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

KING, QUEEN, BISHOP, KNIGHT, ROOK, PAWN = 1, 2, 3, 4, 5, 6
"""White's codes on a packed board; black's are six higher, 0 is an empty square."""

_STRAIGHT = ((1, 0), (-1, 0), (0, 1), (0, -1))
_DIAGONAL = ((1, 1), (1, -1), (-1, 1), (-1, -1))
_JUMPS = ((1, 2), (2, 1), (-1, 2), (-2, 1), (1, -2), (2, -1), (-1, -2), (-2, -1))
_RAYS = {BISHOP: _DIAGONAL, ROOK: _STRAIGHT, QUEEN: _STRAIGHT + _DIAGONAL}
_STEPS = {KING: _STRAIGHT + _DIAGONAL, KNIGHT: _JUMPS}


def kind_of(code: int) -> int:
    """What stands there, whatever its colour: KING … PAWN, or 0."""
    return code - 6 if code > 6 else code


def is_black(code: int) -> bool:
    """Whether a code is one of black's pieces."""
    return code > 6


def in_check(board: Sequence[int], black: bool) -> bool:
    """Whether that side's king is attacked; the board must hold it."""
    return attacked(board, list(board).index(KING + 6 * black), by_black=not black)


def attacked(board: Sequence[int], square: int, by_black: bool) -> bool:
    """Whether any piece of that side attacks the square."""
    return any(
        code and is_black(code) == by_black and square in set(_reach(board, origin))
        for origin, code in enumerate(board)
    )


def has_legal_move(board: Sequence[int], black: bool, en_passant: int | None = None) -> bool:
    """Whether the side to move has a move that leaves its king safe."""
    squares = [int(code) for code in board]
    return any(is_safe(squares, move, en_passant) for move in moves(squares, black, en_passant))


def is_safe(board: Sequence[int], move: tuple[int, int], en_passant: int | None = None) -> bool:
    """Whether a move, of those that `moves` gives, leaves the king of its side unattacked."""
    origin, destination = move
    black = is_black(board[origin])
    after = list(board)
    after[destination], after[origin] = after[origin], 0
    if destination == en_passant and kind_of(board[origin]) == PAWN:
        after[destination + (8 if black else -8)] = 0
    return not in_check(after, black)


def _walk(square: int, step: tuple[int, int]) -> Iterator[int]:
    """The squares from one on, in one direction, to the edge."""
    rank, file = square >> 3, square & 7
    while 0 <= (rank := rank + step[0]) < 8 and 0 <= (file := file + step[1]) < 8:
        yield rank * 8 + file


def _reach(board: Sequence[int], origin: int) -> Iterator[int]:
    """The squares that the piece on one square attacks, whoever stands there."""
    kind = kind_of(board[origin])
    forward = -1 if is_black(board[origin]) else 1
    steps = ((forward, -1), (forward, 1)) if kind == PAWN else _STEPS.get(kind, ())
    for step in steps:
        yield from list(_walk(origin, step))[:1]
    for ray in _RAYS.get(kind, ()):
        for square in _walk(origin, ray):
            yield square
            if board[square]:
                break


def moves(board: Sequence[int], black: bool, en_passant: int | None) -> Iterator[tuple[int, int]]:
    """Origins and destinations by the way pieces move, kings perhaps left in check."""
    for origin, code in enumerate(board):
        if not code or is_black(code) != black:
            continue
        pawn = kind_of(code) == PAWN
        for square in _reach(board, origin):
            taken = board[square]
            if (taken and is_black(taken) != black) or (
                not taken and (not pawn or square == en_passant)
            ):
                yield origin, square
        if pawn:
            far = 2 if origin >> 3 == (6 if black else 1) else 1
            for square in list(_walk(origin, (-1 if black else 1, 0)))[:far]:
                if board[square]:
                    break
                yield origin, square
