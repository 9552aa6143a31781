"""Values as JSON can hold them, decided in one place.

    >>> plain({"loss": numpy.float32(0.5), "sizes": (13, 59)})
    {'loss': 0.5, 'sizes': [13, 59]}

JSON has no NaN and no infinity. What must be read back equal (configurations, the metadata of
checkpoints) refuses them; what is only shown (metrics, status, results) writes null in their
place, ``gaps=True``: a gap in a curve rather than a file that other programs cannot read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from iterant.errors import UsageError


def plain(value: Any, *, gaps: bool = False, where: str = "") -> Any:
    """The value built of dict, list, str, int, float, bool and None alone.

    Takes numpy and torch scalars and arrays as numbers and lists, tuples as lists, paths as text.
    """
    if value is None or isinstance(value, (str, bool)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _number(float(value), gaps, where)
    if isinstance(value, Mapping):
        return {
            _key(key, where): plain(item, gaps=gaps, where=f"{where}.{key}")
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [
            plain(item, gaps=gaps, where=f"{where}[{index}]") for index, item in enumerate(value)
        ]
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "tolist"):  # numpy and torch: arrays give lists, scalars give numbers
        return plain(value.tolist(), gaps=gaps, where=where)
    raise UsageError(
        f"cannot write a {type(value).__name__} as JSON{_place(where)}; "
        "give text, numbers, lists and dicts"
    )


def _number(value: float, gaps: bool, where: str) -> float | None:
    if math.isfinite(value):
        return value
    if gaps:
        return None
    raise UsageError(f"cannot write {value} as JSON{_place(where)}; give a finite number or None")


def _key(key: Any, where: str) -> str:
    if isinstance(key, str):
        return str(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key)
    raise UsageError(
        f"cannot write the key {key!r} as JSON{_place(where)}; give text or whole numbers as keys"
    )


def _place(where: str) -> str:
    return f" at {where.lstrip('.')!r}" if where else ""
