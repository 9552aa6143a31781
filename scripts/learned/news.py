"""How fast news travels through a maze, and whether thinking always comes to the same rest.

Shapes: E edges, N mazes, h by w squares, T iterations.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import torch
from learned.mazes import END, FREE, START, distances, filling, longest_ways, with_loops
from learned.messages import Edges, squares_of, think

import iterant
from iterant.tasks.mazes.generate import to_lattice


def film_of(net, lattice, steps, book, **begin):
    """(T, E): what is told after every iteration, and the edges."""
    edges = Edges(lattice)
    thoughts = think(net, lattice, steps, **begin)
    return np.stack([book.says(edges.read(net, t.features)) for t in thoughts]), edges


def settling(film):
    """(E,): the iteration from which on a message stays what it is at the end."""
    away = film != film[-1]
    return np.where(away.any(0), len(film) - np.argmax(away[::-1], axis=0) + 1, 1)


def from_blank(net, lattice, book, steps=250):
    """When messages come true that say "nothing", beside the round of dead-end filling."""
    film, edges = film_of(net, lattice, steps, book)
    some = edges.beyond(START) | edges.beyond(END)
    rounds = filling(lattice)[1][edges.at]
    apart = settling(film)[~some] - rounds[~some]
    moments = (1, 3, 10, 30, 100)
    return {
        "edges that must say nothing": int((~some).sum()),
        "which do so from the very round on in which filling gives up the teller": int(
            (apart == 0).sum()
        ),
        "say something wrongly": {k: float(film[k - 1][~some].mean()) for k in moments},
        "say nothing wrongly": {k: float((~film[k - 1][some]).mean()) for k in moments},
    }


def moved_end(net, lattice, moved, book, steps=250):
    """(figures, points): at rest the end is put elsewhere; when does each message change?

    Points are (steps from the old or new end to the teller, iteration, whether it is new).
    """
    rest = iterant.last(think(net, lattice, steps)).features
    film, edges = film_of(net, moved, steps, book, features=rest)
    before = Edges(lattice)
    old = before.beyond(START) | before.beyond(END)
    new = edges.beyond(START) | edges.beyond(END)
    changes = (np.concatenate([old[None], film])[1:] != np.concatenate([old[None], film])[:-1]).sum(
        0
    )
    appear, vanish = new & ~old, old & ~new
    away = np.where(
        appear,
        distances(moved, moved == END)[edges.at],
        distances(moved, lattice == END)[edges.at],
    )
    moment, concerned = settling(film), appear | vanish
    points = np.stack([away, moment, appear], axis=1)[concerned]
    return {
        "messages that change": int(concerned.sum()),
        "at the iteration of their distance": int((moment == away + 1)[concerned].sum()),
        "squares an iteration": float(np.polyfit(moment[concerned], away[concerned], 1)[0]),
        "farthest (squares)": int(away[concerned].max()),
        "messages that change and need not": int((changes[~concerned] > 0).sum()),
        "right at the end": float((film[-1] == new).mean()),
    }, points


def rests(net, task, seed, sizes=((9, 20, 60), (21, 20, 250), (33, 10, 600))):
    """(figures, points): iterations until nothing changes at all, by the longest way of a maze."""
    points = []
    for size, count, steps in sizes:
        lattice = to_lattice(task.sample(count, size=size, seed=seed).inputs)
        last, before = np.zeros(count, dtype=int), None
        for thought in think(net, lattice, steps):
            if before is not None:
                last[(thought.features != before).flatten(1).any(1).numpy()] = thought.step
            before = thought.features
        points += list(zip(longest_ways(lattice), last, [size] * count, strict=True))
    points = np.array(points)
    return {
        "mazes": len(points),
        "at rest after at most as many iterations as the longest way has squares": int(
            (points[:, 1] <= points[:, 0]).sum()
        ),
        "iterations to rest, a square of the longest way": float(
            (points[:, 1] / points[:, 0]).mean()
        ),
        "longest way, rest, size": points.tolist(),
    }, points


@torch.no_grad()
def recovery(net, lattice, seed, steps=250):
    """How far from the undisturbed rest a disturbed state ends."""
    random = torch.Generator().manual_seed(seed)
    rest = iterant.last(think(net, lattice, steps)).features
    begins = {
        "noise of deviation 1": rest + torch.randn(rest.shape, generator=random),
        "noise of deviation 10": rest + 10 * torch.randn(rest.shape, generator=random),
        "zeros": torch.zeros_like(rest),
        "the opposite of every number": -rest,
        "the state of another maze": rest.roll(1, 0),
    }
    found = {"mazes": len(lattice)}
    for word, begin in begins.items():
        final = iterant.last(think(net, lattice, steps, features=begin))
        away = (final.features - rest).abs().amax((1, 2, 3))
        found[word] = {"largest difference": float(away.max()), "same": int((away == 0).sum())}
    return found


def loops_alone(net, lattice, random, seed, steps=300):
    """Mazes with one loop and neither start nor end: do messages run in circles?"""
    made = with_loops(lattice, 1, random)
    made[made > FREE] = FREE
    begins = {"blank": None}
    shape = iterant.last(think(net, made, 1)).features.shape
    begins["noise"] = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    found = {
        "mazes": len(made),
        "squares of the loop a mean maze": float(filling(made)[0].sum() / len(made)),
    }
    for word, begin in begins.items():
        final = deque(think(net, made, steps, features=begin), maxlen=2)
        moving = (final[1].features - final[0].features).abs().amax((1, 2, 3)) > 1e-3
        marks = squares_of(final[1].prediction)
        found[f"from {word}"] = {
            "never at rest": int(moving.sum()),
            "the loop marked, exactly": int((marks == filling(made)[0]).all((1, 2)).sum()),
            "nothing marked": int((~marks.any((1, 2))).sum()),
        }
    return found
