"""Descriptions of problems and answers as pictures, animations and terminal text.

    >>> from iterant import draw
    >>> problem = task.describe(batch, 0, prediction=batch.targets)
    >>> draw.show(problem)                       # in a notebook
    >>> draw.save_png(problem, "maze.png")
    >>> print(draw.terminal(problem).plain)

Nothing here knows a task. matplotlib is imported by the first picture, not by this package.
"""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from iterant.draw.figure import picture, pixels, png, save_picture, save_png, sheet, show
from iterant.draw.terminal import terminal
from iterant.errors import UsageError
from iterant.io.files import check_writable_folder

__all__ = ["picture", "pixels", "png", "save_picture", "save_png", "sheet", "show", "terminal"]


def set_matplotlib_cache() -> None:
    """Give matplotlib a temporary folder if its usual ones cannot be written.

    Otherwise it warns at every start, as in containers and on clusters.
    """
    if os.environ.get("MPLCONFIGDIR"):
        return
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home
        home = Path(os.devnull)
    folders = [home / ".matplotlib"]
    if sys.platform.startswith(("linux", "freebsd")):
        folders = [
            Path(os.environ.get(variable) or home / usual) / "matplotlib"
            for variable, usual in (("XDG_CONFIG_HOME", ".config"), ("XDG_CACHE_HOME", ".cache"))
        ]
    try:
        for folder in folders:
            check_writable_folder(folder)
    except UsageError:
        temporary = tempfile.mkdtemp(prefix="iterant-matplotlib-")
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        os.environ["MPLCONFIGDIR"] = temporary


set_matplotlib_cache()
