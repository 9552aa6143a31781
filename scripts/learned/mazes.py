"""Mazes unlike those of training, and dead-end filling, which the maze network is compared with.

    kept, rounds = filling(lattice)

Filling gives up, again and again, every square with at most one open neighbour, unless it is the
start or an end. What it keeps is the way, and every loop.

Shapes: N mazes, h by w squares; lattices are (N, h, w) codes of squares.
"""

from __future__ import annotations

import numpy as np

WALL, FREE, START, END = range(4)


def neighbours(squares):
    """How many of a square's four neighbours are set; (N, h, w)."""
    edged = np.pad(squares, ((0, 0), (1, 1), (1, 1))).astype(int)
    return edged[:, 2:, 1:-1] + edged[:, :-2, 1:-1] + edged[:, 1:-1, 2:] + edged[:, 1:-1, :-2]


def filling(lattice):
    """Squares that dead-end filling keeps, and the round in which it gives up each other one."""
    left, rounds, number = lattice > WALL, np.zeros(lattice.shape, dtype=int), 0
    while True:
        number += 1
        dead = left & (lattice < START) & (neighbours(left) <= 1)
        if not dead.any():
            return left, rounds
        rounds[dead], left = number, left & ~dead


def distances(lattice, begin):
    """Steps from the nearest square of ``begin`` to every one that can be reached; others -1.

    ``begin`` is (N, h, w) bool.
    """
    reached, steps, number = begin, np.where(begin, 0, -1), 0
    while True:
        number += 1
        new = (lattice > WALL) & ~reached & (neighbours(reached) > 0)
        if not new.any():
            return steps
        steps[new], reached = number, reached | new


def longest_ways(lattice):
    """(N,) squares of the longest way in each maze without loops, dead ends and all."""
    far = distances(lattice, lattice == START)
    # In a tree, the square farthest from any other is one end of the longest way.
    tip = np.zeros(lattice.shape, dtype=bool)
    for maze, steps in enumerate(far):
        tip[maze][np.unravel_index(np.argmax(steps), steps.shape)] = True
    return distances(lattice, tip).max((1, 2)) + 1


def joined(marked, lattice):
    """(h, w) each: whether marked squares lead from the start to every end."""
    walked = np.where(marked | (lattice > FREE), lattice, WALL)[None]
    return bool((distances(walked, walked == START)[0][lattice == END] >= 0).all())


def with_loops(lattice, extra, random):
    """The mazes with so many inner walls opened, each joining two opposite squares."""
    made = lattice.copy()
    for maze in made:
        up, down, left, right = (
            (maze > WALL)[:-2, 1:-1],
            (maze > WALL)[2:, 1:-1],
            (maze > WALL)[1:-1, :-2],
            (maze > WALL)[1:-1, 2:],
        )
        walls = (maze[1:-1, 1:-1] == WALL) & (
            (up & down & ~left & ~right) | (left & right & ~up & ~down)
        )
        places = np.argwhere(walls) + 1
        for row, column in random.permutation(places)[:extra]:
            maze[row, column] = FREE
    return made


def without_way(lattice):
    """The mazes with a wall in the middle of the way."""
    made, (way, _), steps = lattice.copy(), filling(lattice), distances(lattice, lattice == START)
    for maze, squares, far in zip(made, way, steps, strict=True):
        middle = far[maze == END][0] // 2
        maze[squares & (far == middle)] = WALL
    return made


def two_ends(lattice, random):
    """The mazes with a second end, at the bottom of a dead end."""
    made, (way, _), degree = lattice.copy(), filling(lattice), neighbours(lattice > WALL)
    for maze, squares, open_sides in zip(made, way, degree, strict=True):
        place = random.permutation(np.argwhere((maze == FREE) & ~squares & (open_sides == 1)))[0]
        maze[tuple(place)] = END
    return made


def end_elsewhere(lattice, random):
    """The mazes with the end moved to the bottom of a dead end."""
    made = two_ends(lattice, random)
    made[lattice == END] = FREE
    return made


def start_in_corridor(lattice):
    """The mazes with the start moved along the way, to a square with two open sides."""
    made, (way, _), degree = lattice.copy(), filling(lattice), neighbours(lattice > WALL)
    steps = distances(lattice, lattice == START)
    for maze, squares, sides, far in zip(made, way, degree, steps, strict=True):
        fitting = np.argwhere(squares & (maze == FREE) & (sides == 2))
        middle = fitting[np.argsort([far[tuple(p)] for p in fitting])[len(fitting) // 2]]
        maze[maze == START] = FREE
        maze[tuple(middle)] = START
    return made


def star(centre, arms, length):
    """(h, w): a square with up to four arms, each ``length`` squares long.

    ``arms`` are the codes of their outermost squares, up, down, left, right; WALL: there is none.
    """
    maze = np.zeros((2 * length + 1,) * 2, dtype=np.uint8)
    for quarters, tip in zip((0, 2, 1, 3), arms, strict=True):
        turned = np.rot90(maze, -quarters)  # a view: what was on this side is on top
        if tip != WALL:
            turned[:length, length] = FREE
            turned[0, length] = tip
    maze[length, length] = centre
    return maze
