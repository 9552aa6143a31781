"""Numbers as people read them, in every message, table and page."""

from __future__ import annotations


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number of things in words: ``counted(1, "bit")`` is "1 bit", ``counted(1000, "bit")``
    "1,000 bits"; ``many`` where more than an s is added.
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
