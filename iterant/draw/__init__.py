"""What a task describes, as pictures and in the terminal; knows no task.

    >>> from iterant import draw
    >>> problem = task.describe(batch, 0, prediction=batch.targets)
    >>> draw.show(problem)                       # in a notebook
    >>> draw.save_png(problem, "maze.png")
    >>> print(draw.terminal(problem).plain)

matplotlib is loaded by the first picture, not by this import.
"""

from iterant.draw.figure import picture, pixels, png, save_picture, save_png, sheet, show
from iterant.draw.font_cache import give_matplotlib_room
from iterant.draw.terminal import terminal

__all__ = ["picture", "pixels", "png", "save_picture", "save_png", "sheet", "show", "terminal"]

give_matplotlib_room()
