"""Corrupt files, texts and command lines: an error of one line, or the original content.

No reader shows a traceback, hangs, returns other numbers or executes content of a file. `make test`
tries a hundred random inputs for each reader, ``scripts/fuzz`` ten thousand. Inputs that failed
before are in `corpus/`, a folder per reader.
"""

from __future__ import annotations

import contextlib
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


def digest(value: Any) -> str:
    """What a reader returned as text, with hashes of tensors."""
    if hasattr(value, "numpy"):
        return hashlib.sha256(value.detach().contiguous().numpy().tobytes()).hexdigest()
    if isinstance(value, dict):
        return repr([(str(key), digest(value[key])) for key in sorted(value, key=str)])
    return repr([digest(one) for one in value]) if isinstance(value, list | tuple) else repr(value)


@pytest.mark.parametrize("how", FOREIGN)
def test_foreign_content(all_readers: dict[str, Reader], how: str, tmp_path: Path) -> None:
    for name, reader in all_readers.items():
        if reader.share == 1:
            assert tried(reader, FOREIGN[how], tmp_path) is None, name
    Path("model.pth").write_bytes(FOREIGN[how])
    with pytest.raises(IterantError):
        import_checkpoint("model.pth", task=registry.task("mazes").spec, out="out")
    assert not Path("out").exists(), "no partial output is left"


def test_random_files(all_readers: dict[str, Reader], tmp_path: Path) -> None:
    for name, reader in all_readers.items():
        assert crashes_of(reader, 100, seed=1, folder=tmp_path) == [], name


def test_checksums_notice_a_flipped_bit(all_readers: dict[str, Reader], tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for name, reader in all_readers.items():
        if reader.checksummed:
            content = reader.seeds[0]
            original = digest(reader.read(content, tmp_path))
            for place in rng.integers(len(content), size=20):
                flipped = bytearray(content)
                flipped[place] ^= 1 << int(rng.integers(8))
                with contextlib.suppress(IterantError):
                    assert digest(reader.read(bytes(flipped), tmp_path)) == original, name


def test_random_arguments(tmp_path: Path) -> None:
    assert fuzzed_commands(400, seed=1) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*/*")), ids=lambda path: path.name)
def test_earlier_failures(all_readers: dict[str, Reader], file: Path, tmp_path: Path) -> None:
    name = next(name for name in all_readers if re.sub(r"\W+", "-", name) == file.parent.name)
    assert tried(all_readers[name], file.read_bytes(), tmp_path) is None
