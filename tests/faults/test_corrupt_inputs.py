"""Corrupt files, texts and command lines: an error of one line, or the original content.

No reader shows a traceback, hangs, returns other numbers or executes content of a file. `make test`
tries a hundred random inputs for each reader, ``scripts/fuzz`` ten thousand. Inputs that failed
before are in `corpus/`, a folder per reader.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import build_readers, crashes_of, fuzzed_commands, tried
from readers import Reader

from iterant import registry
from iterant.errors import IterantError
from iterant.export.authors import import_checkpoint

CORPUS = Path(__file__).with_name("corpus")


class Bomb:
    """An object whose pickle runs a command when it is loaded."""

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
    "a number of many digits": b"1" * 100_000,
    "toml": b"a = [[[[[[1]]]]]]\n",
    "text": "ein Brief\n".encode("utf-16"),
    "a huge header": b"\xff\xff\xff\xff\xff\xff\xff\x7f" + b"{" * 64,
    "compressed": zlib.compress(bytes(1 << 20)),
}


@pytest.fixture(scope="module", name="all_readers")
def _all_readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    return build_readers(tmp_path_factory.mktemp("readers"))


@pytest.fixture(autouse=True)
def _nothing_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    assert not Path("EXPLODED").exists(), "content of a file was executed"


def damaged(content: bytes, rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """Foreign content, and the content cut, doubled and with flipped bits."""
    yield from FOREIGN.items()
    for length in sorted({0, 1, len(content) // 3, len(content) // 2, len(content) - 1}):
        yield f"cut at {length}", content[:length]
    yield "doubled", content + content
    for place in rng.integers(0, len(content), size=12):
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        yield f"a bit of byte {place} flipped", bytes(flipped)


def digest(value: Any) -> str:
    """What a reader returned as text, with hashes of tensors."""
    if hasattr(value, "numpy"):
        return hashlib.sha256(value.detach().contiguous().numpy().tobytes()).hexdigest()
    if isinstance(value, dict):
        return repr([(str(key), digest(value[key])) for key in sorted(value, key=str)])
    return repr([digest(one) for one in value]) if isinstance(value, list | tuple) else repr(value)


def test_damage_is_reported_or_harmless(all_readers: dict[str, Reader], tmp_path: Path) -> None:
    rng, errors, times = np.random.default_rng(3), 0, 0
    for name, reader in all_readers.items():
        if reader.share < 1:
            continue
        original = digest(reader.read(reader.seeds[0], tmp_path))
        for how, content in damaged(reader.seeds[0], rng):
            times += 1
            text = ""
            try:
                result = digest(reader.read(content, tmp_path))
                assert result == original or not reader.checksummed, (name, how)
            except IterantError as error:
                text, errors = str(error), errors + 1
            assert "\n" not in text, (name, how)
            assert len(text) < 2000, (name, how)
    assert errors > times / 2


@pytest.mark.parametrize("how", FOREIGN)
def test_foreign_files_as_checkpoints(how: str) -> None:
    Path("model.pth").write_bytes(FOREIGN[how])
    with pytest.raises(IterantError):
        import_checkpoint("model.pth", task=registry.task("mazes").spec, out="out")
    assert not Path("out").exists(), "no partial output is left"


def test_random_files(all_readers: dict[str, Reader], tmp_path: Path) -> None:
    for name, reader in all_readers.items():
        assert crashes_of(reader, 100, seed=1, folder=tmp_path) == [], name


def test_random_arguments(tmp_path: Path) -> None:
    assert fuzzed_commands(400, seed=1) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*/*")), ids=lambda path: path.name)
def test_earlier_failures(all_readers: dict[str, Reader], file: Path, tmp_path: Path) -> None:
    name = next(name for name in all_readers if re.sub(r"\W+", "-", name) == file.parent.name)
    assert tried(all_readers[name], file.read_bytes(), tmp_path) is None
