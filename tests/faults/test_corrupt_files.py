"""Truncated, bit-flipped and foreign files in place of every file that iterant reads.

A reader either raises a one-line error or returns the original content. It never shows a
traceback, returns other numbers or executes content of a file.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from readers import TINY

from iterant import registry
from iterant.errors import IterantError
from iterant.export.authors import import_checkpoint
from iterant.io import (
    RunFolder,
    list_runs,
    read_result,
    read_weights,
    save_weights,
    write_result,
)
from iterant.runner import SweepFolder, planned, read_plan, status
from iterant.training import train
from iterant.training.recipe import Recipe, recipe_from_file


class Bomb:
    """An object whose pickle runs a command where it is loaded."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, ("EXPLODED",)


FOREIGN = {
    "empty": b"",
    "pickle": pickle.dumps(Bomb()),
    "zip": b"PK\x03\x04" + bytes(200),
    "png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xff\xff\xff\xff\xff\xff\xff" + bytes(50),
    "json list": b"[1, 2, 3]",
    "json of another kind": b'{"format": 1, "sha256": 3, "shards": [], "name": {}}',
    "deep json": b"[" * 100_000,
    "toml": b"a = [[[[[[1]]]]]]\n",
    "text": "ein Brief\n".encode("utf-16"),
    "a huge header": b"\xff\xff\xff\xff\xff\xff\xff\x7f" + b"{" * 64,
    "compressed": zlib.compress(bytes(1 << 20)),
}


def digest(value: Any) -> str:
    """What a reader returned as text, with hashes of tensors."""
    if hasattr(value, "numpy"):
        return hashlib.sha256(value.detach().contiguous().numpy().tobytes()).hexdigest()
    if isinstance(value, dict):
        return repr([(str(key), digest(value[key])) for key in sorted(value, key=str)])
    return repr([digest(one) for one in value]) if isinstance(value, list | tuple) else repr(value)


def read_run(path: Path) -> Any:
    run = RunFolder.open(path)
    return [run.config, run.status.state, run.status.step, run.metrics(),
            *(run.load(name) for name in run.checkpoints())]  # fmt: skip


def read_sweep(path: Path) -> Any:
    return [list(SweepFolder.open(path).planned), status(SweepFolder.open(path)).counts]


@pytest.fixture(scope="module", name="places")
def _places(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, tuple[Path, Callable[[Path], Any]]]:
    base = tmp_path_factory.mktemp("places")
    run = train("prefix-sums", recipe="quick", out=base / "run", **TINY)
    config, tensors = read_weights(run.path)
    save_weights(base / "weights", config, tensors)
    write_result("figures", {"accuracy": [0.5, 1.0]}, seed=1, folder=base / "results")
    plan = planned("s", task="prefix-sums", seeds=[0, 1], fields={"width": 4})
    sweep = SweepFolder.prepare(base / "sweep", plan)
    sweep.work_path(next(iter(sweep.planned))).mkdir()
    sweep.write_outcome(next(iter(sweep.planned)), {"seconds": 1.0, "steps": 2, "tests": {}})
    (base / "files").mkdir()
    (base / "files" / "sweep.toml").write_text('task = "mazes"\nseeds = [0, 1]\n')
    (base / "files" / "recipe.toml").write_text("width = 8\nepochs = 3\n")
    return {
        "run": (run.path, read_run),
        "weights": (base / "weights", read_weights),
        "results": (base / "results", lambda path: read_result(path / "figures.json")),
        "sweep": (base / "sweep", read_sweep),
        "sweep file": (base / "files", lambda path: read_plan(path / "sweep.toml").described()),
        "recipe file": (
            base / "files",
            lambda path: recipe_from_file(path / "recipe.toml", Recipe()).described(),
        ),
    }


def damaged(content: bytes, rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """The file cut, with flipped bits, doubled, and replaced by foreign content."""
    yield from FOREIGN.items()
    for length in sorted({0, 1, len(content) // 3, len(content) // 2, max(len(content) - 1, 0)}):
        yield f"cut at {length}", content[:length]
    yield "doubled", content + content
    for place in rng.integers(0, max(len(content), 1), size=12 if content else 0):
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        yield f"a bit of byte {place} flipped", bytes(flipped)


PLACES = ["run", "weights", "results", "sweep", "sweep file", "recipe file"]
WITHOUT_CHECKSUM = ("figures.json", "sweep.toml", "recipe.toml", "metrics.jsonl", "outcome.json")
"""A flipped bit may give another valid value; a run with a corrupt outcome is evaluated again."""


@pytest.mark.parametrize("place", PLACES)
def test_damage_is_reported_or_harmless(
    places: dict[str, Any], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    folder, read = places[place]
    whole, rng, errors, tries = digest(read(folder)), np.random.default_rng(3), 0, 0
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert files
    for file in files:
        copy = shutil.copytree(folder, tmp_path / "copy")
        for how, content in damaged(file.read_bytes(), rng):
            (copy / file.relative_to(folder)).write_bytes(content)
            where, tries = f"{file.name}, {how}", tries + 1
            text = ""
            try:
                assert digest(read(copy)) == whole or file.name in WITHOUT_CHECKSUM, where
            except IterantError as error:
                text, errors = str(error), errors + 1
            assert "\n" not in text, where
            assert len(text) < 2000, where
            list_runs(copy)
        shutil.rmtree(copy)
    assert errors > 10
    record_property("times", tries)
    assert not Path("EXPLODED").exists(), "content of a file was executed"


@pytest.mark.parametrize("how", FOREIGN)
def test_foreign_files_as_checkpoints(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.pth").write_bytes(FOREIGN[how])
    with pytest.raises(IterantError):
        import_checkpoint("model.pth", task=registry.task("mazes").spec, out="out")
    assert not Path("EXPLODED").exists()
    assert not Path("out").exists(), "no partial output is left"
