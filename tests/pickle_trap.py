"""A pickle that shows by a file that it was loaded, for tests that nothing unpickles it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Trap:
    """Unpickled, it creates ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))
