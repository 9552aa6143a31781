"""Counts, percentages, durations, sizes and tables as text, in one form everywhere.

>>> counted(1000, "bit"), percent(0.9996), duration(75), byte_size(5 << 20)
('1,000 bits', '99.9 %', '1 min 15 s', '5 MiB')
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from iterant import bounds
from iterant.errors import UsageError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number and its noun: "1 bit", "1,000 bits"; ``many``: a plural other than with an s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def percent(fraction: float) -> str:
    """A fraction in per cent, rounded down, so that only 1 is shown as "100.0 %"."""
    return f"{math.floor(fraction * 1000 + 1e-6) / 10:.1f} %" if abs(fraction) < 1e9 else "?"


def duration(seconds: float) -> str:
    """Seconds in the two largest units: "9.5 s", "40 s", "1 min 15 s", "2 h 30 min", "3 d"."""
    if not math.isfinite(seconds) or seconds > 1e9:
        return "?"
    if seconds < 9.95:
        return f"{max(0.0, seconds):.2g} s"
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    for (unit, length), (smaller, part) in pairwise(units):
        if seconds >= length - part / 2:
            count, rest = divmod(round(seconds / part), length // part)
            return f"{count} {unit} {rest} {smaller}" if rest else f"{count} {unit}"
    return f"{seconds:.0f} s"


def seconds(text: str | float) -> float:
    """A duration in seconds, from text: ``9m``, ``90s``, ``1h30m``, or a number of seconds."""
    if isinstance(text, int | float):
        value = text
    else:
        parts = re.findall(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
        if not parts or "".join(a + b for a, b in parts) != text.strip().replace(" ", ""):
            raise UsageError(f"a time is written like 9m, 90s or 1h30m, got {text[:50]!r}")
        value = sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)
    if not bounds.TIME_SECONDS.holds(value):
        raise UsageError(f"a time limit must be above 0 and at most 10 years, got {str(text)[:50]}")
    return float(value)


def byte_size(count: float) -> str:
    """Bytes in binary units and three digits: "5 MiB", "139 GiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count * 1024:,.0f} GiB"


def quantity(value: float) -> str:
    """A large number in three digits: "3.93 M"."""
    for unit, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {letter}"
    return f"{value:.3g}"


def size_text(size: int | Sequence[int]) -> str:
    """A problem size as flags and results write it: "59", "600000:700000"."""
    return str(size) if isinstance(size, int) else ":".join(map(str, size))


def markdown(rows: Sequence[Mapping[str, str]]) -> str:
    """A Markdown table without columns that have no values; "None." without rows."""
    if not rows:
        return "None."
    head = [name for name in rows[0] if any(row[name] for row in rows)]
    cells = [[row[name].replace("|", "\\|") for name in head] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *cells))


_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and newline
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"  # line separators, direction of text
)


def printable(text: str, *, one_line: bool = False) -> str:
    r"""Text from files and users as it is printed, with control characters as escapes.

    A terminal would obey them: change its title, clear the screen, reverse the text.

    >>> printable("\x1b[2Jmazes", one_line=True)
    '\\x1b[2Jmazes'
    """
    if one_line:
        text = text.replace("\n", "\\n")
    return _UNPRINTABLE.sub(lambda match: repr(match[0])[1:-1], text)
