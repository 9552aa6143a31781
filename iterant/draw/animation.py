"""The iterations of a network on problems as pictures and animated GIFs.

    >>> [solution] = solutions(net, task, problems)
    >>> save_animation(animation_frames(task, [solution]), "maze.gif")
    >>> save_png(describe_solution(task, solution), "maze.png")

Before the last frame the true answer is hidden, so that it is not taken for one of the network.
Several problems are shown side by side, each from its own first iteration.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from iterant.draw.figure import pixels
from iterant.errors import UsageError
from iterant.formatting import counted
from iterant.io.files import PathLike, check_writable_file, quoted, write_atomic
from iterant.solving import Frame, Solution
from iterant.tasks.protocol import Batch, Description, Problem, Task

Pixels = NDArray[np.uint8]
"""(height, width, 3) colours."""

FRAMES = 48
"""The most frames of an animation."""
SIDE_BY_SIDE = 16
"""The most problems in an animation."""
_SHORTEST, _LONGEST, _TOTAL, _HOLD = 120, 700, 5000, 2000
"""Milliseconds of a frame, at least and at most, of all frames, and of the last one."""
_COLOURS = 64
"""Colours of a GIF."""


def describe_solution(task: Task, solution: Solution) -> Description:
    """The final answer, compared with the true one where it is known."""
    problem = solution.problem
    if solution.prediction is None:
        description = task.describe(_without_targets(problem.batch), 0)
        notes = [problem.unsolvable]
    else:
        # With ``restrict`` show the answer that the rules allow.
        answer = solution.prediction if solution.allowed is None else solution.allowed
        description = task.describe(problem.batch, 0, prediction=answer)
        notes = [solution.verdict.words if solution.right is None else ""]
        if solution.allowed is not None:
            notes = ["the best that the rules allow"]
        settled = "settled" if solution.settled else "not settled"
        notes.append(f"{settled} after {counted(solution.steps, 'iteration')}")
    caption = "; ".join(note for note in (description.caption, *notes) if note)
    return replace(description, title=_title(problem, description), caption=caption)


def describe_iteration(task: Task, problem: Problem, frame: Frame) -> Description:
    """The answer after one iteration."""
    prediction = torch.from_numpy(frame.prediction)[None].long()
    description = task.describe(_without_targets(problem.batch), 0, prediction=prediction)
    return replace(
        description, title=_title(problem, description), caption=f"iteration {frame.step}"
    )


def _title(problem: Problem, description: Description) -> str:
    """The title, with the name of the problem's file to tell many problems apart."""
    has_name = problem.name and not problem.generated
    return f"{description.title}: {problem.name}" if has_name else description.title


def _without_targets(batch: Batch) -> Batch:
    return Batch(batch.inputs, torch.full_like(batch.targets, -1), batch.extras)


def animation_frames(task: Task, results: Sequence[Solution]) -> list[Pixels]:
    """A frame for every change of an answer, or `FRAMES` evenly spread ones if there are more."""
    films = [solution.film for solution in results if solution.prediction is not None]
    steps = sorted({frame.step for film in films for frame in film.changes()})
    if len(steps) >= FRAMES:
        steps = np.linspace(1, steps[-1], FRAMES - 1).round().astype(int).tolist()
    last = [describe_solution(task, solution) for solution in results]

    def at(step: int) -> list[Description]:
        return [
            end
            if solution.prediction is None
            else describe_iteration(task, solution.problem, solution.film.at(step))
            for solution, end in zip(results, last, strict=True)
        ]

    return [*(pixels(at(step)) for step in steps), pixels(last)]


def check_animation(path: PathLike) -> Path:
    """Check, before long work, that an animation can be written to this path."""
    target = Path(path)
    if target.suffix.lower() != ".gif":
        gif = target.with_suffix(".gif").name
        raise UsageError(
            f"animations are written as .gif, got {quoted(path)}; ffmpeg -i {gif} {target.name} "
            "converts one"
        )
    return check_writable_file(target)


def save_animation(frames: Sequence[Pixels], path: PathLike) -> Path:
    """Write frames as a .gif, longer ones if they are few; the last is shown two seconds."""
    target = check_animation(path)
    write_atomic(target, gif(frames))
    return target


def solution_gif(solution: Solution) -> bytes:
    """The iterations on one problem, as a notebook plays them."""
    if solution.task is None:
        raise UsageError("this solution does not name its task, which draws it")
    return gif(animation_frames(solution.task, [solution]))


def gif(frames: Sequence[Pixels]) -> bytes:
    """Frames as the bytes of a GIF file."""
    height, width = np.max([frame.shape[:2] for frame in frames], axis=0)
    same_size = []
    for frame in frames:
        padding = ((0, height - frame.shape[0]), (0, width - frame.shape[1]), (0, 0))
        same_size.append(np.pad(frame, padding, constant_values=255))
    # Drawings have few colours, so the palette holds the commonest of some frames exactly.
    sample = np.concatenate([*same_size[:: max(1, len(frames) // 4)], same_size[-1]])
    counts = Image.fromarray(sample).getcolors(sample.size) or []
    common = [colour for _, colour in sorted(counts, reverse=True)[:_COLOURS]]
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.array(common, dtype=np.uint8).tobytes())
    first, *rest = (
        Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)
        for frame in same_size
    )
    milliseconds = min(_LONGEST, max(_SHORTEST, _TOTAL // len(frames)))
    content = io.BytesIO()
    # disposal=1 stores only what changed since the frame before; loop=0 repeats forever.
    first.save(content, "GIF", save_all=True, append_images=rest, loop=0, disposal=1,
               duration=[*[milliseconds] * len(rest), _HOLD])  # fmt: skip
    return content.getvalue()
