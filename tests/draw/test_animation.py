"""Animations are read back equal, and are small."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from iterant.draw.animation import check_animation, save_animation
from iterant.draw.figure import check_png
from iterant.errors import RunError, UsageError


def bar(place: int, height: int = 40) -> NDArray[np.uint8]:
    """White, with a blue bar that moves to the right."""
    frame = np.full((height, 60, 3), 255, dtype=np.uint8)
    frame[:, place : place + 4] = (0, 114, 178)
    return frame


def read_back(path: Path) -> tuple[list[NDArray[np.uint8]], list[int]]:
    frames, lasts = [], []
    with Image.open(path) as image:
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            frames.append(np.asarray(image.convert("RGB")))
            lasts.append(int(image.info.get("duration", 0)))
    return frames, lasts


def test_gif_frames_colours_and_durations(tmp_path: Path) -> None:
    frames = [bar(place) for place in range(0, 50, 5)]
    path = save_animation(frames, tmp_path / "bar.gif", milliseconds=100, hold=1500)
    found, lasts = read_back(path)
    assert len(found) == len(frames)
    for one, other in zip(frames, found, strict=True):
        assert np.array_equal(one, other)
    assert lasts == [100] * 9 + [1500]
    assert path.stat().st_size < 4000


def test_frames_are_padded_to_one_size(tmp_path: Path) -> None:
    found, _ = read_back(save_animation([bar(0, 40), bar(5, 44)], tmp_path / "bar.gif"))
    assert found[0].shape == (44, 60, 3)
    assert (found[0][40:] == 255).all()


def test_commonest_colours_are_exact(tmp_path: Path) -> None:
    frame = np.zeros((300, 300, 3), dtype=np.uint8)
    frame[:, :100] = np.random.default_rng(1).integers(0, 255, (300, 100, 3), dtype=np.uint8)
    frame[:, 100:200] = (10, 200, 30)
    found, _ = read_back(save_animation([frame], tmp_path / "one.gif"))
    assert np.array_equal(found[0][:, 100:], frame[:, 100:])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("film.avi", "written as .gif or .mp4"),
        ("no/such/film.gif", "there is no folder"),
        ("here.gif", "it is a folder"),
        ("film.mp4", "needs the program ffmpeg"),
    ],
)
def test_invalid_path_is_refused_first(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here.gif").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError) as caught:
        check_animation(tmp_path / name)
    assert said in str(caught.value)


def test_unwritable_folder_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked as the system answers people; who runs the tests may be allowed everything."""
    monkeypatch.setattr(os, "access", lambda place, mode: place != tmp_path or not mode & os.W_OK)
    with pytest.raises(UsageError, match="cannot be written; choose another"):
        check_animation(tmp_path / "film.gif")
    with pytest.raises(UsageError, match="cannot be written; choose another"):
        check_png(tmp_path / "picture.png")


@pytest.mark.parametrize(("frames", "milliseconds"), [([], 100), ([bar(0)], 1)])
def test_invalid_arguments(
    frames: list[NDArray[np.uint8]], milliseconds: int, tmp_path: Path
) -> None:
    with pytest.raises(UsageError):
        save_animation(frames, tmp_path / "a.gif", milliseconds=milliseconds)


def fake(folder: Path, body: str) -> None:
    """A program called ffmpeg that a test can look into."""
    program = folder / "ffmpeg"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_ffmpeg_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, 'for last; do :; done; echo "$@" > "$0.words"; cat > "$last"')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    frames = [bar(0, 41), bar(5, 41)]
    path = save_animation(frames, tmp_path / "bar.mp4", milliseconds=100, hold=300)
    raw = np.frombuffer(path.read_bytes(), dtype=np.uint8).reshape(-1, 42, 60, 3)
    assert len(raw) == 1 + 3
    assert np.array_equal(raw[0, :41], frames[0])
    for last in raw[1:]:
        assert np.array_equal(last[:41], frames[1])
    assert "-s 60x42 -r 10 " in (tmp_path / "ffmpeg.words").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bar.mp4", "ffmpeg", "ffmpeg.words"]


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs ffmpeg: apt install ffmpeg")
def test_duration_of_mp4(tmp_path: Path) -> None:
    """Read back by ffmpeg: what it loses of the colours is less than an eye sees."""
    program = shutil.which("ffmpeg")
    assert program is not None
    frames = [bar(place, 41) for place in (0, 20, 40)]
    path = save_animation(frames, tmp_path / "a:b.mp4", milliseconds=200, hold=1000)
    words = [program, "-loglevel", "error", "-i", f"file:{path}", "-f", "rawvideo"]
    read = subprocess.run([*words, "-pix_fmt", "rgb24", "-"], capture_output=True, check=True)
    film = np.frombuffer(read.stdout, dtype=np.uint8).reshape(-1, 42, 60, 3).astype(int)
    assert len(film) == pytest.approx(1.4 * 25, abs=2)
    for seconds, frame in ((0.1, frames[0]), (0.3, frames[1]), (0.5, frames[2]), (1.3, frames[2])):
        assert np.abs(film[round(25 * seconds), :41] - frame).mean() < 4
    assert [found.name for found in tmp_path.iterdir()] == ["a:b.mp4"]


def test_ffmpeg_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "cat > /dev/null; echo one >&2; echo no such encoder >&2; exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(RunError, match="no such encoder"):
        save_animation([bar(0)], tmp_path / "bar.mp4")
    assert not (tmp_path / "bar.mp4").exists()
