"""A folder for matplotlib's list of fonts where there is no home to keep it in.

    >>> give_matplotlib_room()      # before matplotlib is imported

With a home that cannot be written, as in containers and on clusters, matplotlib warns on every
start and looks for fonts anew. It then gets a folder of its own, gone when the program ends.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from iterant.errors import UsageError
from iterant.io.files import check_writable_folder

_SETTING = "MPLCONFIGDIR"


def give_matplotlib_room() -> None:
    """Name a temporary folder if nobody named one and the usual ones cannot be written."""
    if os.environ.get(_SETTING) or all(map(_writable, _usual())):
        return
    folder = tempfile.mkdtemp(prefix="iterant-matplotlib-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[_SETTING] = folder


def _usual() -> list[Path]:
    """Where matplotlib keeps settings and lists of fonts, as it says itself."""
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home
        home = Path(os.devnull)
    if not sys.platform.startswith(("linux", "freebsd")):
        return [home / ".matplotlib"]
    return [
        Path(os.environ.get(word) or home / usual) / "matplotlib"
        for word, usual in (("XDG_CONFIG_HOME", ".config"), ("XDG_CACHE_HOME", ".cache"))
    ]


def _writable(folder: Path) -> bool:
    try:
        check_writable_folder(folder)
    except UsageError:
        return False
    return True
