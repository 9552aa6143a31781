"""Animations: GIF, or MP4 where ffmpeg is installed.

    >>> save_animation(frames, "maze.gif", milliseconds=120, hold=2000)
    PosixPath('maze.gif')

Drawings have few colours, so the palette of a GIF holds the commonest of them exactly.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from iterant.errors import RunError, UsageError
from iterant.io.files import PathLike, check_writable_file, quoted, write_atomic

Pixels = NDArray[np.uint8]
"""(height, width, 3) colours."""

ANIMATIONS = (".gif", ".mp4")
_COLOURS = 64
_SAMPLED = 5
"""The number of frames from which the palette is made."""
_FPS = 25
_TIMEOUT_SECONDS = 300


def check_animation(path: PathLike) -> Path:
    """Check, before long work, that an animation can be written to this path."""
    target = Path(path)
    if target.suffix.lower() not in ANIMATIONS:
        raise UsageError(f"animations are written as .gif or .mp4, got {quoted(path)}")
    check_writable_file(target)
    if target.suffix.lower() == ".mp4" and shutil.which("ffmpeg") is None:
        raise UsageError(
            f"writing {quoted(path)} needs the program ffmpeg, which is not on the PATH; install "
            "it (apt install ffmpeg, brew install ffmpeg, winget install ffmpeg), "
            f"or save {quoted(target.with_suffix('.gif'))} instead"
        )
    return target


def save_animation(
    frames: Sequence[Pixels], path: PathLike, *, milliseconds: int = 120, hold: int = 2000
) -> Path:
    """Write the frames atomically; the last one stays for ``hold`` milliseconds."""
    target = check_animation(path)
    if not frames:
        raise UsageError("there is nothing to animate: the list of frames is empty")
    if milliseconds < 20 or hold < 20:
        raise UsageError(f"frames last 20 milliseconds or more, got {milliseconds} and {hold}")
    is_gif = target.suffix.lower() == ".gif"
    height, width = (max(frame.shape[axis] for frame in frames) for axis in (0, 1))
    if not is_gif:  # most players need even sizes
        height, width = height + height % 2, width + width % 2
    same_size = [
        np.pad(
            frame,
            ((0, height - frame.shape[0]), (0, width - frame.shape[1]), (0, 0)),
            constant_values=255,
        )
        for frame in frames
    ]
    if is_gif:
        data = _gif(same_size, [milliseconds] * (len(frames) - 1) + [hold])
    else:
        data = _mp4(same_size, milliseconds, hold, target)
    write_atomic(target, data)
    return target


def _gif(frames: Sequence[Pixels], durations: list[int]) -> bytes:
    sample = sorted({round(place) for place in np.linspace(0, len(frames) - 1, _SAMPLED)})
    pixels = np.concatenate([frames[place].reshape(-1, 3) for place in sample]).astype(np.int64)
    colours, counts = np.unique(pixels @ np.array([65536, 256, 1]), return_counts=True)
    common = colours[np.argsort(-counts, kind="stable")[:_COLOURS]]
    parts = [
        part
        for colour in common.tolist()
        for part in (colour >> 16, colour >> 8 & 255, colour & 255)
    ]
    palette = Image.new("P", (1, 1))
    palette.putpalette(parts + parts[:3] * (256 - len(common)))
    images = [
        Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)
        for frame in frames
    ]
    file = io.BytesIO()
    # disposal=1 stores only what changed since the frame before; loop=0 repeats for ever.
    images[0].save(
        file, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0, disposal=1
    )
    return file.getvalue()


def _mp4(frames: Sequence[Pixels], milliseconds: int, hold: int, target: Path) -> bytes:
    program = shutil.which("ffmpeg")
    if program is None:
        raise UsageError("the program ffmpeg is not on the PATH; install it or save a .gif")
    height, width = frames[0].shape[:2]
    raw = b"".join([*(frame.tobytes() for frame in frames[:-1]),
                    frames[-1].tobytes() * max(1, round(hold / milliseconds))])  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder) / "film.mp4"
        command = [
            program, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24",
            "-s", f"{width}x{height}", "-r", f"{1000 / milliseconds:g}", "-i", "-", "-an",
            "-pix_fmt", "yuv420p", "-r", str(_FPS), "-movflags", "+faststart", str(film),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, input=raw, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise RunError(
                f"ffmpeg took over {_TIMEOUT_SECONDS} seconds; save a .gif instead"
            ) from None
        if done.returncode or not film.exists():
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise RunError(
                f"ffmpeg could not make {quoted(target)} ({lines[-1] if lines else 'no reason'}); "
                f"save {quoted(target.with_suffix('.gif'))} instead"
            )
        return film.read_bytes()
