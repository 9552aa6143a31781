"""All readers of files and text, each with valid inputs."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from PIL import Image

from iterant import registry
from iterant.cli.main import app
from iterant.errors import IterantError
from iterant.formatting import seconds
from iterant.io import (
    RunFolder,
    list_runs,
    read_result,
    read_weights,
    save_weights,
    write_result,
)
from iterant.io.files import read_lines, read_toml
from iterant.runner import SweepFolder, planned, read_plan, status
from iterant.runner.plan import parse_seeds
from iterant.tasks.chess.puzzles import read_puzzles
from iterant.tasks.inputs import GAMES, PICTURE, Material
from iterant.training.recipe import Recipe

Read = Callable[[bytes, Path], object]

TINY: dict[str, Any] = {
    "width": 4, "head": (4,), "size": 8, "count": 20, "batch_size": 4, "epochs": 1, "iterations": 2,
    "pool_slots": 8, "pool_shortest": 1, "monitor_every": 0, "device": "cpu",
}  # fmt: skip
"""Arguments of `train` for a run of a second."""


@dataclass(frozen=True)
class Reader:
    """A reader of bytes, which may use a folder, and valid inputs for it."""

    seeds: tuple[bytes, ...]
    read: Read
    checksummed: bool = False
    """Whether any change of its input is noticed"""
    share: float = 1.0
    """Share of the inputs with which it is tried; less for commands, which take longer"""

    @property
    def is_json(self) -> bool:
        """Whether its inputs are JSON objects"""
        try:
            return isinstance(json.loads(self.seeds[0]), dict)
        except ValueError:
            return False


def _text(content: bytes) -> str:
    return content.decode("utf-8", errors="replace")


def _encoded(word: str) -> Read:
    task = registry.task(word)
    return lambda content, _: task.encode(_text(content))


def _material(word: str, kind: str = "text") -> Read:
    task = registry.task(word)

    def read(content: bytes, _: Path) -> object:
        parts = task.split(Material("input", content, kind))  # type: ignore[attr-defined]
        return [task.read(part) for part in islice(parts, 20)]  # type: ignore[attr-defined]

    return read


def _filed(name: str, read: Callable[[Path], object]) -> Read:
    def through(content: bytes, folder: Path) -> object:
        (folder / name).write_bytes(content)
        return read(folder / name)

    return through


def _picture() -> bytes:
    task = registry.task("mazes")
    file = io.BytesIO()
    colours = task.describe(task.sample(1, size=9, seed=1)).cells
    Image.fromarray(colours.repeat(6, axis=0).repeat(6, axis=1)).save(file, "PNG")
    return file.getvalue()


def _within(home: Path, name: str, read: Callable[[Path], object]) -> Read:
    """Read a folder with one file replaced."""

    def through(content: bytes, folder: Path) -> object:
        copy = folder / home.name
        if not copy.exists():
            shutil.copytree(home, copy)
        target = copy / name
        before = target.read_bytes()
        target.write_bytes(content)
        try:
            return read(copy)
        finally:
            target.write_bytes(before)

    return through


FENS = (b"r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3",
        b"8/8/8/4k3/8/8/4K2R/8 w - - 0 1", b"8/8/8/4k3/8/8/4K2R/8 b")  # fmt: skip
MAZES = (b"#######\n#S    #\n# ### #\n#   #E#\n#######\n", b"#####\n#S.E#\n#####",
         b"###\r\n#S#\r\n#E#\r\n###\r\n\r\n###\n#S#\n#G#\n###")  # fmt: skip
GAMES_SEED = (b'[Event "x"]\n[FEN "8/8/8/4k3/8/8/4K2R/8 w - - 0 1"]\n\n1. Rh5+ Kd6 *\n',
              b"1. e4 e5 2. Nf3 Nc6 (2... d6) {words} 3. Bb5 $1 *\n")  # fmt: skip
PUZZLES = (b"PuzzleId,FEN,Moves,Rating,RatingDeviation,Popularity,NbPlays,Themes,GameUrl\n"
           b"00008,r6k/pp2r2p/4Rp1Q/3p4/8/1N1P2R1/PqP2bPP/7K b - - 0 24,f2g3 e6e7 b2b1 b3c1 b1c1 "
           b"h6c1,1798,77,95,8459,crushing hangingPiece,https://lichess.org/x#48\n")  # fmt: skip
SWEEPS = (b'task = "mazes"\nseeds = "0-2"\n[grid]\nwidth = [6, 12]\n[[tests]]\nsize = [9, 13]\n',
          b'task = ["mazes", "prefix-sums"]\nrecipe = "paper"\n[[list]]\nnet = "dt"\n')  # fmt: skip
RECIPES = (b"width = 8\nepochs = 3\nmilestones = [1, 2]\n", b'net = "dt"\nclip = 1.0\nsize = 9\n')


def readers(home: Path, run: Path) -> dict[str, Reader]:
    """All readers; ``home`` is a scratch folder, ``run`` a run folder."""
    write_result("figures", {"accuracy": [0.5, 1.0]}, seed=1, folder=home)
    result = (home / "figures.json").read_bytes()
    every = {
        "FEN": Reader(FENS, _encoded("chess")),
        "games": Reader(GAMES_SEED, _material("chess", GAMES)),
        "bit strings": Reader((b"1011001", b"1_0 1\n", b"0" * 64), _encoded("prefix-sums")),
        "text mazes": Reader(MAZES, _material("mazes")),
        "PNG mazes": Reader((_picture(),), _material("mazes", PICTURE)),
        "CSV puzzles": Reader(
            (PUZZLES,), lambda content, _: list(read_puzzles(io.BytesIO(content), "p.csv"))
        ),
        "recipe files": Reader(
            RECIPES, _filed("r.toml", lambda path: Recipe().changed(**read_toml(path)))
        ),
        "sweep files": Reader(SWEEPS, _filed("s.toml", read_plan)),
        "result files": Reader((result,), _filed("r.json", read_result)),
        "seeds": Reader(
            (b"0-7", b"0,2,5", b"0-3,8"), lambda content, _: parse_seeds(_text(content))
        ),
        "times": Reader((b"9m", b"1h30m", b"90"), lambda content, _: seconds(_text(content))),
        "sizes": Reader((b"13", b"0:600"), lambda content, _: [
            _tried(lambda word=word: registry.task(word).parse_size(_text(content)))  # type: ignore[misc]
            for word in registry.known("task")]),
        "metrics": Reader((b'{"step": 1}\n{"step": 2}\n',), _filed("m.jsonl", read_lines)),
    }  # fmt: skip
    weights = save_weights(home / "weights", *read_weights(run))
    sweep = SweepFolder.prepare(home / "sweep", planned("s", task="prefix-sums"))
    (name,) = sweep.planned
    sweep.work_path(name).mkdir()
    sweep.write_outcome(name, {"seconds": 1.0, "steps": 2, "tests": {}})
    for kind, folder, read, files in (
        ("run", run, _read_run, ("config.json", "status.json", "environment.json",
                                 "checkpoints/last.json", "checkpoints/last-*")),
        ("weights", weights, read_weights, ("config.json", "*.safetensors")),
        ("sweep", sweep.path, _read_sweep, ("sweep.json", "work/*/outcome.json")),
    ):  # fmt: skip
        for pattern in files:
            (file,) = folder.glob(pattern)
            seed = file.read_bytes()
            replaced = _within(folder, str(file.relative_to(folder)), read)
            # A run whose outcome is corrupt counts as not done.
            sealed = file.name != "outcome.json"
            every[f"{kind} folders: {pattern}"] = Reader((seed,), replaced, checksummed=sealed)
            for words in COMMANDS[kind] if file.suffix == ".json" else ():
                command = _within(folder, str(file.relative_to(folder)), _command(words))
                every[f"iterant {words}: {kind} {pattern}"] = Reader((seed,), command, share=0.1)
    return every


COMMANDS = {
    "run": ("runs FOLDER", "evaluate FOLDER --size 8 --count 2 --max-steps 2",
            "train --resume FOLDER --time-limit 2s", "export FOLDER --to hub --out exported"),
    "weights": ("solve prefix-sums 101 --max-steps 2 --net FOLDER",),
    "sweep": ("sweep status FOLDER", "sweep stop FOLDER"),
}  # fmt: skip
"""Command lines that read a folder"""


def _command(words: str) -> Callable[[Path], object]:
    """Run a command line on a folder, within this process."""

    def read(folder: Path) -> None:
        shutil.rmtree("exported", ignore_errors=True)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            app([str(folder) if word == "FOLDER" else word for word in words.split()])

    return read


def _read_run(path: Path) -> object:
    list_runs(path)  # raises no error
    run = RunFolder.open(path)
    return [run.config, run.status.step, run.metrics(), read_weights(path), run.load("last")]


def _read_sweep(path: Path) -> object:
    sweep = SweepFolder.open(path)
    return [list(sweep.planned), status(sweep).counts]


def _tried(read: Callable[[], object]) -> object:
    with contextlib.suppress(IterantError):
        return read()
    return None
