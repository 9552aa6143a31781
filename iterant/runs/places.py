"""Whether something can be written somewhere: asked before long work, not after.

    >>> target = check_place("maze.png")              # a file
    >>> folder = check_folder("analysis/m0")          # a folder, there or still to be made
    >>> folder = check_new_folder("m0-onnx")          # a folder that is new or empty

Nothing is made here: a refusal, or work that fails later, leaves no empty folders behind.
"""

from __future__ import annotations

import os
from pathlib import Path

from iterant.errors import UsageError
from iterant.runs.files import PathLike, shown


def check_place(path: PathLike) -> Path:
    """The path itself if a file can be written there, into a folder that is there."""
    target = Path(path)
    if not target.parent.is_dir():
        raise UsageError(
            f"cannot write {shown(path)}: there is no folder {shown(target.parent)}; "
            "make it first or choose another"
        )
    if target.is_dir():
        raise UsageError(f"cannot write {shown(path)}: it is a folder; choose another name")
    _check_writable(target, target.parent)
    return target


def check_folder(path: PathLike) -> Path:
    """The path itself if files can be written into a folder there, which may be made for it."""
    folder = Path(path)
    there = next((place for place in (folder, *folder.absolute().parents) if _exists(place)), None)
    if there is None or not there.is_dir():
        what = "nothing is there" if there is None else f"{shown(there)} is no folder"
        raise UsageError(f"cannot write into {shown(path)}: {what}; choose another folder")
    _check_writable(folder, there)
    return folder


def check_new_folder(path: PathLike) -> Path:
    """The path itself if a folder there can be written and has nothing in it yet."""
    folder = check_folder(path)
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is there already; give a new or an empty folder as --out")
    return folder


def _exists(place: Path) -> bool:
    """Whether anything is there; below a file, nothing is."""
    return os.path.lexists(place)


def _check_writable(path: Path, folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            f"cannot write {shown(path)}: nothing may be written into the folder "
            f"{shown(folder)}; choose another"
        )
