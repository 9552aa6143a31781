"""Pictures in a row as a file that moves: GIF anywhere, MP4 where ffmpeg is installed.

    >>> save_animation(frames, "maze.gif", milliseconds=120, hold=2000)
    PosixPath('maze.gif')

Drawings have few colours, so a GIF keeps the commonest of them exactly; what did not change since
the frame before is not stored again.
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

MOVING = (".gif", ".mp4")
_COLOURS = 64
_LOOKED_AT = 5
"""Frames whose colours make the palette."""
_PER_SECOND = 25
_SECONDS = 300
"""That ffmpeg may take."""


def check_animation(path: PathLike) -> Path:
    """The path itself if an animation can be written there: asked before long work, not after."""
    target = Path(path)
    if target.suffix.lower() not in MOVING:
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
    """Write the frames, whole or not at all; the last one stays for ``hold`` milliseconds."""
    target = check_animation(path)
    if not frames:
        raise UsageError("there is nothing to animate: the list of frames is empty")
    if milliseconds < 20 or hold < 20:
        raise UsageError(f"frames last 20 milliseconds or more, got {milliseconds} and {hold}")
    even = _one_size(frames, even=target.suffix.lower() == ".mp4")
    if target.suffix.lower() == ".gif":
        made = _gif(even, [milliseconds] * (len(frames) - 1) + [hold])
    else:
        made = _mp4(even, milliseconds, hold, target)
    write_atomic(target, made)
    return target


def _one_size(frames: Sequence[Pixels], *, even: bool) -> list[Pixels]:
    """Frames with white added below and on the right, so that all are as large as the largest."""
    tall, wide = (max(frame.shape[axis] for frame in frames) for axis in (0, 1))
    if even:  # most players want that
        tall, wide = tall + tall % 2, wide + wide % 2
    return [
        np.pad(
            frame,
            ((0, tall - frame.shape[0]), (0, wide - frame.shape[1]), (0, 0)),
            constant_values=255,
        )
        for frame in frames
    ]


def _gif(frames: Sequence[Pixels], lasts: list[int]) -> bytes:
    palette = _palette(frames)
    images = [
        Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)
        for frame in frames
    ]
    file = io.BytesIO()
    # A file of one frame says nothing of time; loop=0 is for ever.
    images[0].save(
        file, "GIF", save_all=True, append_images=images[1:], duration=lasts, loop=0, disposal=1
    )
    return file.getvalue()


def _palette(frames: Sequence[Pixels]) -> Image.Image:
    """The commonest colours of some of the frames, as they are."""
    chosen = sorted({round(place) for place in np.linspace(0, len(frames) - 1, _LOOKED_AT)})
    seen = np.concatenate([frames[place].reshape(-1, 3) for place in chosen]).astype(np.int64)
    colours, counts = np.unique(seen @ np.array([65536, 256, 1]), return_counts=True)
    common = colours[np.argsort(-counts, kind="stable")[:_COLOURS]]
    parts = [
        part
        for colour in common.tolist()
        for part in (colour >> 16, colour >> 8 & 255, colour & 255)
    ]
    image = Image.new("P", (1, 1))
    image.putpalette(parts + parts[:3] * (256 - len(common)))
    return image


def _mp4(frames: Sequence[Pixels], milliseconds: int, hold: int, target: Path) -> bytes:
    """The frames through ffmpeg, the last one repeated for as long as it lasts."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise UsageError("the program ffmpeg is not on the PATH; install it or save a .gif")
    tall, wide = frames[0].shape[:2]
    raw = b"".join([*(frame.tobytes() for frame in frames[:-1]),
                    frames[-1].tobytes() * max(1, round(hold / milliseconds))])  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        film = Path(scratch) / "film.mp4"
        words = [
            program, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24",
            "-s", f"{wide}x{tall}", "-r", f"{1000 / milliseconds:g}", "-i", "-", "-an",
            "-pix_fmt", "yuv420p", "-r", str(_PER_SECOND), "-movflags", "+faststart", str(film),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                words, input=raw, capture_output=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise RunError(f"ffmpeg took over {_SECONDS} seconds; save a .gif instead") from None
        if done.returncode or not film.exists():
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise RunError(
                f"ffmpeg could not make {quoted(target)} ({lines[-1] if lines else 'no reason'}); "
                f"save {quoted(target.with_suffix('.gif'))} instead"
            )
        return film.read_bytes()
