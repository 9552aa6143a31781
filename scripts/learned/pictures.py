"""Pictures for docs/what-they-learned.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from learned.mazes import END, START, WALL, filling
from learned.messages import SIDES, Edges, images, squares_of, think
from matplotlib.figure import Figure

from iterant.draw import save_png
from iterant.tasks.mazes.generate import to_pixels
from iterant.tasks.protocol import Batch

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#b0b0b0"


def save(figure, name):
    """Write a figure, with nothing of this machine in it."""
    figure.savefig(PICTURES / f"{name}.png", metadata={"Software": "iterant"})


def plain_axes(axes, across, up):
    """Names of the axes, and a faint grid."""
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(color="0.92")
    axes.set_axisbelow(True)


def draw_messages(net, maze, book, moments, name):
    """One maze at several iterations: an arrow for everything that is told, by what it says."""
    edges, thoughts = Edges(maze[None]), list(think(net, maze[None], 250))
    final = thoughts[-1].features
    rest = sum(bool((t.features != final).any()) for t in thoughts) + 1
    figure = Figure(figsize=(9, 9.5), dpi=100, layout="constrained")
    for axes, moment in zip(figure.subplots(2, 2).flat, (*moments, rest), strict=True):
        thought = thoughts[moment - 1]
        marked = squares_of(thought.prediction)[0]
        colours = np.full((*maze.shape, 3), 1.0)
        colours[marked] = (0.72, 0.86, 0.96)
        colours[maze == WALL], colours[maze == START], colours[maze == END] = (
            0.25,
            (0.3, 0.75, 0.3),
            (0.9, 0.3, 0.3),
        )
        axes.imshow(
            np.pad(colours, ((1, 1), (1, 1), (0, 0)), constant_values=0.25),
            extent=(-1.5, maze.shape[1] + 0.5, maze.shape[0] + 0.5, -1.5),
        )
        says = book.says(edges.read(net, thought.features))
        down, right = np.array(SIDES)[edges.side].T
        # Those who come keep to one side of the corridor, those who go to the other.
        x = edges.at[2] + 0.12 * right - 0.2 * down
        y = edges.at[1] + 0.12 * down + 0.2 * right
        axes.quiver(
            x,
            y,
            0.76 * right,
            0.76 * down,
            color=np.where(says, ORANGE, GREY),
            angles="xy",
            scale_units="xy",
            scale=1,
            width=0.005,
            headwidth=3.4,
            headlength=3.6,
            headaxislength=3.4,
        )
        axes.set_title(f"iteration {moment}" + (" (at rest)" if moment == rest else ""))
        axes.set_axis_off()
    save(figure, name)
    return rest


def draw_film(task, lattice, film, name, moments):
    """One maze at several iterations, marked squares in the task's own colours."""
    one = lattice[:1]
    # Compared with what filling keeps, which in a maze of training's kind is the way.
    kept = to_pixels(filling(one)[0].astype(np.uint8))
    batch = Batch(images(one), torch.from_numpy(kept).long())
    shown = []
    for moment in moments:
        marks = torch.from_numpy(to_pixels(film[moment - 1][:1].astype(np.uint8))).long()
        described = task.describe(batch, 0, prediction=marks)
        shown.append(type(described)(f"iteration {moment}", described.text, described.cells))
    save_png(shown, PICTURES / f"{name}.png", scale=6)


def draw_speed(news, rests, name):
    """When messages change after the end is moved, and when mazes come to rest."""
    figure = Figure(figsize=(9, 3.9), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    for new, colour, label in (
        (1, ORANGE, "there is something now"),
        (0, BLUE, "there is nothing any more"),
    ):
        chosen = news[news[:, 2] == new]
        left.scatter(
            chosen[:, 0], chosen[:, 1], s=12 if new else 5, color=colour, label=label, linewidths=0
        )
    plain_axes(left, "squares from the end that moved", "iteration in which the message changes")
    left.legend(frameon=False)
    for size, colour in zip(np.unique(rests[:, 2]), (GREEN, BLUE, ORANGE), strict=True):
        chosen = rests[rests[:, 2] == size]
        right.scatter(chosen[:, 0], chosen[:, 1], s=14, color=colour, label=f"{size}×{size}")
    high = rests[:, 0].max()
    right.plot([0, high], [0, high], color="0.6", linewidth=1, zorder=0)
    plain_axes(right, "squares of the longest way in the maze", "iterations until nothing changes")
    right.legend(frameon=False)
    save(figure, name)


def draw_waves(waves, name):
    """The front of each network by iteration."""
    figure = Figure(figsize=(6, 3.8), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    for colour, (label, fronts) in zip((BLUE, ORANGE, GREEN), waves.items(), strict=False):
        steps = np.arange(1, len(fronts) + 1)
        axes.plot(steps, fronts.mean(1), label=label, color=colour)
        axes.fill_between(steps, fronts.min(1), fronts.max(1), color=colour, alpha=0.2, linewidth=0)
    plain_axes(
        axes, "iterations since the bit was flipped", "farthest changed bit, from the flipped one"
    )
    axes.legend(frameon=False)
    save(figure, name)
