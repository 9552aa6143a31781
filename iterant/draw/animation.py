"""The iterations of a network on problems as pictures and animations (GIF, or MP4 with ffmpeg).

    >>> [solution] = solutions(net, task, problems)
    >>> save_animation(animation_frames(task, [solution]), "maze.gif")
    >>> save_png(describe_solution(task, solution), "maze.png")

Before the last frame the true answer is hidden, so that it is not taken for one of the network.
Several problems are shown side by side, each from its own first iteration.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from iterant.draw.figure import pixels
from iterant.errors import RunError, UsageError
from iterant.formatting import counted
from iterant.io.files import PathLike, check_writable_file, quoted, write_atomic
from iterant.solving import Frame, Solution
from iterant.tasks.protocol import Batch, Description, Problem, Task

Pixels = NDArray[np.uint8]
"""(height, width, 3) colours."""

ANIMATIONS = (".gif", ".mp4")
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
    if target.suffix.lower() not in ANIMATIONS:
        raise UsageError(f"animations are written as .gif or .mp4, got {quoted(path)}")
    check_writable_file(target)
    if target.suffix.lower() == ".mp4" and shutil.which("ffmpeg") is None:
        raise UsageError(
            f"writing {quoted(path)} needs the program ffmpeg, which is not on the PATH; install "
            f"it, or save {quoted(target.with_suffix('.gif'))} instead"
        )
    return target


def save_animation(frames: Sequence[Pixels], path: PathLike) -> Path:
    """Write frames as .gif or .mp4, longer ones if they are few; the last is shown two seconds."""
    target = check_animation(path)
    if not frames:
        raise UsageError("there is nothing to animate: the list of frames is empty")
    milliseconds = min(_LONGEST, max(_SHORTEST, _TOTAL // len(frames)))
    is_gif = target.suffix.lower() == ".gif"
    height, width = np.max([frame.shape[:2] for frame in frames], axis=0)
    if not is_gif:  # most players need even sizes
        height, width = height + height % 2, width + width % 2
    same_size = []
    for frame in frames:
        below, beside = height - frame.shape[0], width - frame.shape[1]
        padding = ((0, below), (0, beside), (0, 0))
        same_size.append(np.pad(frame, padding, constant_values=255))
    write_atomic(target, (_gif if is_gif else _mp4)(same_size, milliseconds))
    return target


def _gif(frames: Sequence[Pixels], milliseconds: int) -> bytes:
    # Drawings have few colours, so the palette holds the commonest of some frames exactly.
    sample = np.concatenate([*frames[:: max(1, len(frames) // 4)], frames[-1]])
    counts = Image.fromarray(sample).getcolors(sample.size) or []
    common = [colour for _, colour in sorted(counts, reverse=True)[:_COLOURS]]
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.array(common, dtype=np.uint8).tobytes())
    first, *rest = (
        Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)
        for frame in frames
    )
    content = io.BytesIO()
    # disposal=1 stores only what changed since the frame before; loop=0 repeats forever.
    first.save(content, "GIF", save_all=True, append_images=rest, loop=0, disposal=1,
               duration=[*[milliseconds] * len(rest), _HOLD])  # fmt: skip
    return content.getvalue()


def _mp4(frames: Sequence[Pixels], milliseconds: int) -> bytes:
    height, width = frames[0].shape[:2]
    raw = b"".join(frame.tobytes() for frame in frames)
    raw += frames[-1].tobytes() * max(0, round(_HOLD / milliseconds) - 1)
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder) / "film.mp4"
        command = [
            "ffmpeg", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24",
            "-s", f"{width}x{height}", "-r", f"{1000 / milliseconds:g}", "-i", "-", "-an",
            "-pix_fmt", "yuv420p", "-r", "25", "-movflags", "+faststart", str(film),
        ]  # fmt: skip
        try:
            subprocess.run(command, input=raw, capture_output=True, check=True)
        except subprocess.CalledProcessError as error:
            lines = error.stderr.decode(errors="replace").strip().splitlines()
            raise RunError(
                f"ffmpeg failed ({lines[-1] if lines else 'no reason given'}); save a .gif instead"
            ) from error
        return film.read_bytes()
