"""Results that somebody damaged or edited are named in one line, whatever is missing in them.

>>> with as_written(file, "scripts/every-seed"):
...     figures = read_result(file)["figures"]["seeds"]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from iterant.errors import RunError
from iterant.runs.files import PathLike, shown

_FAULTS = (KeyError, TypeError, AttributeError, IndexError, ValueError, ZeroDivisionError)
"""What comes of reading something that is not there, or is something else."""


@contextmanager
def as_written(file: PathLike, writers: str) -> Iterator[None]:
    """Raise one line where what is read is not what ``writers`` write."""
    try:
        yield
    except _FAULTS as failure:
        raise RunError(
            f"{shown(file)} is not what {writers} write ({type(failure).__name__}: {failure}); "
            "restore it from a copy, or give it another name"
        ) from failure
