"""Test suites for chess players and engines: EPD, a position with what is best in it.

    >>> entry = parse_epd('6k1/5ppp/8/8/8/8/8/K2R4 w - - bm Rd8#; id "back rank";')
    >>> entry.fen, entry.best, entry.label
    ('6k1/5ppp/8/8/8/8/8/K2R4 w - -', ('Rd8#',), 'back rank')
    >>> parse_epd("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1") is None       # a plain FEN
    True

Read are ``bm`` (best moves), ``am`` (moves to avoid) and ``id``; other operations are left to the
engines that they are for. Moves are read by `iterant.tasks.algebraic`, without python-chess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from iterant.errors import TaskError

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
