"""Random corrupt inputs give no traceback, no hang and no partial output.

`make test` tries a hundred for each reader, ``scripts/fuzz`` ten thousand. Inputs that failed
before are in `corpus/`, a folder per reader, and tried every time.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from fuzzing import build_readers, crashes_of, fuzzed_commands, tried
from readers import Reader

CORPUS = Path(__file__).with_name("corpus")


@pytest.fixture(scope="module", name="all_readers")
def _all_readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    return build_readers(tmp_path_factory.mktemp("readers"))


def test_random_files(
    all_readers: dict[str, Reader], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, reader in all_readers.items():
        reader.read(reader.seeds[0], tmp_path)
        assert crashes_of(reader, 100, seed=1, folder=tmp_path) == [], name
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    assert not Path("EXPLODED").exists()


def test_random_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert fuzzed_commands(400, seed=1) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*/*")), ids=lambda path: path.name)
def test_earlier_failures(all_readers: dict[str, Reader], file: Path, tmp_path: Path) -> None:
    name = next(name for name in all_readers if re.sub(r"\W+", "-", name) == file.parent.name)
    assert tried(all_readers[name], file.read_bytes(), tmp_path) is None
