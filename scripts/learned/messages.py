"""What the squares of a maze tell each other, decoded: `codebook`, `truth_table`, `news`, `rests`.

    edges = Edges(lattice)
    book = codebook(net, lattice)            # two centres: "nothing beyond me", "something is"
    book.says(edges.read(net, features))     # (E,) whether each message says "something"

An edge is a square that tells and the open neighbour it tells to. In a maze without loops the truth
is known without any network: the start lies beyond the teller if the teller is nearer to it.

Shapes: E edges, N mazes, h by w squares, M numbers a message.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from learned.mazes import END, FREE, START, WALL, distances, filling, neighbours, star

import iterant
from iterant.engine import State
from iterant.nets.local_rule import OWN_WIDTH, Shares
from iterant.tasks.mazes.generate import BORDER, to_image

SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))
RIM = 2
"""Squares of wall around a maze, as the network sees it."""


def images(lattice):
    """What the network reads."""
    return torch.from_numpy(to_image(lattice)).float()


@torch.no_grad()
def think(net, lattice, steps, **begin):
    """Thoughts about mazes; ``features=`` to begin with, ``intervene=`` on the way."""
    features = begin.pop("features", None)
    state = None if features is None else State(features)
    yield from iterant.think(net, images(lattice), steps=steps, state=state, **begin)


def squares_of(prediction):
    """One value a square of the lattice."""
    return prediction[..., BORDER:-BORDER:2, BORDER:-BORDER:2].numpy().astype(bool)


class Edges:
    """All pairs of a square that tells and an open neighbour that it tells to."""

    def __init__(self, lattice):
        """Find them; ``at`` and ``to`` index (N, h, w)."""
        is_open = np.pad(lattice > WALL, ((0, 0), (1, 1), (1, 1)))
        found = []
        for side, (down, right) in enumerate(SIDES):
            both = is_open & np.roll(is_open, (-down, -right), (1, 2))
            found += [(side, maze, row - 1, column - 1) for maze, row, column in np.argwhere(both)]
        self.side, maze, row, column = np.array(found).T
        down, right = np.array(SIDES)[self.side].T
        self.at, self.to = (maze, row, column), (maze, row + down, column + right)
        self.lattice = lattice

    def beyond(self, code):
        """(E,) whether a square of that code lies beyond the teller, in mazes without loops."""
        steps = distances(self.lattice, self.lattice == code)
        return (steps[self.at] >= 0) & (steps[self.at] < steps[self.to])

    def straight(self):
        """(E,) whether a start or an end lies beyond, in the same corridor: no junction between."""
        junction = (self.lattice == FREE) & (neighbours(self.lattice > WALL) > 2)
        corridors = np.where(junction, WALL, self.lattice)
        reached = [
            distances(corridors, self.lattice == code)[self.at] >= 0 for code in (START, END)
        ]
        return (reached[0] & self.beyond(START)) | (reached[1] & self.beyond(END))

    def read(self, net, features):
        """(E, M): the messages in a state."""
        shares = Shares.of(net.config.width, len(SIDES), OWN_WIDTH)
        maze, row, column = self.at
        numbers = shares.own + self.side[:, None] * shares.each + np.arange(shares.each)
        return features.numpy()[maze[:, None], numbers, row[:, None] + RIM, column[:, None] + RIM]


@dataclass(frozen=True)
class Codebook:
    """The two things that a message says, each as the mean of many."""

    nothing: np.ndarray
    something: np.ndarray

    def says(self, messages):
        """(…,) bool: nearer to "something"."""
        far = [np.linalg.norm(messages - one, axis=-1) for one in (self.nothing, self.something)]
        return far[1] < far[0]


def codebook(net, lattice, steps=250):
    """Means of messages at rest, and how far they can be told apart in mazes not seen here."""
    edges = Edges(lattice)
    beyond = np.stack([edges.beyond(START), edges.beyond(END)], axis=1)
    messages = edges.read(net, iterant.last(think(net, lattice, steps)).features)
    some, learn = beyond.any(1), edges.at[0] < len(lattice) // 2
    book = Codebook(messages[learn & ~some].mean(0), messages[learn & some].mean(0))
    apart = np.linalg.norm(messages[some, None] - book.nothing, axis=-1).min()
    spread = np.linalg.norm(messages[~some] - book.nothing, axis=-1).max()
    which, told = beyond @ (1, 2), some & learn
    alone = some & (which < 3)
    return book, {
        "edges": len(messages),
        "numbers a message": messages.shape[1],
        "edges of other mazes, to test on": int((~learn).sum()),
        "right about a start or an end beyond": float((book.says(messages) == some)[~learn].mean()),
        "centre of nothing": book.nothing.tolist(),
        "centre of something": book.something.tolist(),
        "distance of the centres": float(np.linalg.norm(book.nothing - book.something)),
        "largest distance of a nothing from its centre": float(spread),
        "smallest distance of a something from that centre": float(apart),
        "distinct messages, to two decimals": {
            "nothing": len(np.unique(messages[~some].round(2), axis=0)),
            "something": len(np.unique(messages[some].round(2), axis=0)),
        },
        "whether start, end or both lie beyond": guessed(messages, which, told, some & ~learn),
        "no junction between": guessed(
            messages, edges.straight().astype(int), alone & learn, alone & ~learn
        ),
    }


def guessed(messages, truth, learn, test):
    """How often the commonest truth of a message, to one decimal, is right in other mazes."""
    seen = {}
    for message, true in zip(messages[learn].round(1), truth[learn], strict=True):
        seen.setdefault(tuple(message), []).append(true)
    common = {message: np.bincount(values).argmax() for message, values in seen.items()}
    usual = np.bincount(truth[learn]).argmax()
    said = np.array([common.get(tuple(message), usual) for message in messages[test].round(1)])
    return {
        "messages": int(test.sum()),
        "right": float((said == truth[test]).mean()),
        "right without looking": float((truth[test] == usual).mean()),
    }


def in_two_words(net, lattice, book, steps=250):
    """Does the network still answer if each message is replaced by the nearer of two centres?"""
    shares = Shares.of(net.config.width, len(SIDES), OWN_WIDTH)

    def round_off(state, inputs):
        if state.step == 0:
            return state, inputs
        features = state.features.clone()
        is_open = features.abs().sum(1, keepdim=True) > 0
        for side in range(len(SIDES)):
            share = list(shares.of_side(side))
            said = book.says(features[:, share].movedim(1, -1).numpy())
            words = np.where(said[..., None], book.something, book.nothing).astype(np.float32)
            features[:, share] = torch.from_numpy(words).movedim(-1, 1) * is_open
        return State(features, state.step), inputs

    final = iterant.last(think(net, lattice, steps, intervene=[round_off]))
    right = (squares_of(final.prediction) == filling(lattice)[0]).all((1, 2))
    return {"mazes": len(lattice), "solved": int(right.sum())}


def truth_table(net, book, length, steps=40):
    """Is the middle of a star marked, and what does it tell, by what its arms tell?

    Stars of up to four arms with a blind end, a start or an end at each tip, all 256 of them, and
    the middle free, a start or an end. A word tells how many sides tell "something".
    """
    made = [(c, arms) for c in (FREE, START, END) for arms in itertools.product(range(4), repeat=4)]
    lattice = np.stack([star(centre, arms, length) for centre, arms in made])
    final, edges = iterant.last(think(net, lattice, steps)), Edges(lattice)
    says = book.says(edges.read(net, final.features))
    marked = squares_of(final.prediction)[:, length, length]
    middle = (edges.at[1] == length) & (edges.at[2] == length)
    rows, words = {}, {}
    for number, (centre, arms) in enumerate(made):
        name = {FREE: "free", START: "start", END: "end"}[centre]
        # Right beside a start, the start itself is what a square sees.
        if length == 1 and centre == FREE and START in arms:
            name = "free, beside a start"
        told = sum(tip > FREE for tip in arms)
        row = rows.setdefault(f"{name}, told by {told}", {"stars": 0, "marked": 0})
        row["stars"] += 1
        row["marked"] += int(marked[number])
        for edge in np.flatnonzero(middle & (edges.at[0] == number)):
            others = told - (arms[edges.side[edge]] > FREE)
            word = words.setdefault(f"{name}, told by {others} others", {"edges": 0, "tells": 0})
            word["edges"] += 1
            word["tells"] += int(says[edge])
    return {"the middle": rows, "what it tells": words}
