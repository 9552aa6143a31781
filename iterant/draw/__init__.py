"""Descriptions of problems and answers as pictures, animations and terminal text.

    >>> from iterant import draw
    >>> problem = task.describe(batch, 0, prediction=batch.targets)
    >>> draw.show(problem)                       # in a notebook
    >>> draw.save_png(problem, "maze.png")
    >>> print(draw.terminal(problem).plain)

Nothing here depends on a task. matplotlib is imported by the first picture, not by this package.
"""

import logging

from iterant.draw.figure import picture, pixels, png, save_picture, save_png, show
from iterant.draw.terminal import terminal

__all__ = ["picture", "pixels", "png", "save_picture", "save_png", "show", "terminal"]

# Without a writable home (containers, clusters) matplotlib takes a temporary folder, which is fine,
# and warns at every start.
logging.getLogger("matplotlib").addFilter(
    lambda record: record.funcName != "_get_config_or_cache_dir"
)
