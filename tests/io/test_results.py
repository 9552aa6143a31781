"""Result files carry their provenance and no paths of the machine."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from iterant.errors import RunError, UsageError
from iterant.io import results as module
from iterant.io.results import (
    check_result_path,
    code_version,
    command_line,
    read_result,
    write_result,
)


def test_result_has_provenance(tmp_path: Path) -> None:
    figures = {"x": {"mean": 0.5}, "loss": math.nan, "rates": [math.inf, 1.0]}
    path = write_result("a-1", figures, seed=3, command="iterant bench", folder=tmp_path)
    assert path == tmp_path / "a-1.json"
    result = read_result(path)
    assert list(result) == ["name", "command", "commit", "dirty", "date", "seed", "hardware",
                            "versions", "figures"]  # fmt: skip
    assert (result["seed"], result["command"]) == (3, "iterant bench")
    assert result["figures"] == {"x": {"mean": 0.5}, "loss": None, "rates": [None, 1.0]}
    assert set(result["hardware"]) == {"cpu", "cores", "threads", "memory_gib", "gpu"}
    assert set(result["versions"]) == {"iterant", "python", "torch", "numpy"}
    assert result["date"].endswith("+00:00")


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".a", "a b"])
def test_invalid_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a result"):
        write_result(name, {}, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_other_files_are_refused(tmp_path: Path) -> None:
    for content in ('{"name": "c"}', "[]"):
        (tmp_path / "c.json").write_text(content)
        with pytest.raises(RunError, match=r"c\.json' is not a result .*command.*missing"):
            read_result(tmp_path / "c.json")


def test_result_path_is_checked_before_writing(tmp_path: Path) -> None:
    good = tmp_path / "new" / "curve-1.json"
    assert check_result_path(good) == good
    assert write_result(good.stem, {}, folder=good.parent) == good
    (tmp_path / "taken.json").mkdir()
    (tmp_path / "file").touch()
    for place in ("curve.txt", "my curve.json", "taken.json", "file/a.json"):
        with pytest.raises(UsageError):
            check_result_path(tmp_path / place)


# Provenance


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(
        ["/usr/bin/env", "git", *identity, *words],
        cwd=folder, check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip


def test_commit_and_changes_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "code.py").write_text("1")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.json").write_text("1")
    for words in ("init -q", "add .", "commit -q -m One"):
        git(tmp_path, *words.split())
    commit = git(tmp_path, "rev-parse", "HEAD")
    monkeypatch.setattr(module, "_ROOT", tmp_path)
    monkeypatch.setenv("ITERANT_COMMIT", "other")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert code_version() == (commit, False)
    (tmp_path / "results" / "a.json").write_text("2")
    (tmp_path / "untracked.txt").touch()
    assert code_version() == (commit, False)
    (tmp_path / "code.py").write_text("2")
    assert code_version() == (commit, True)
    monkeypatch.setattr(module, "_ROOT", tmp_path / "results")  # no checkout
    versions = {"": (None, None), "abc": ("abc", False), "abc-dirty": ("abc", True)}
    for variable, version in versions.items():
        monkeypatch.setenv("ITERANT_COMMIT", variable)
        assert code_version() == version


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["/home/me/bin/iterant", "train", "--out=/mnt/disk/m0"], "iterant train --out=m0"),
        (["/home/me/iterant/__main__.py", "runs"], "iterant runs"),
        (["iterant", "solve", "chess", "8/8/k w - - 0 1"], "iterant solve chess '8/8/k w - - 0 1'"),
        ([], "''"),
    ],
)
def test_command_line(words: list[str], line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", words)
    assert command_line() == line


@pytest.mark.parametrize(
    ("text", "shortened"),
    [
        ("/data", "data"),
        ("saved to '/home/me/x.png'", "saved to 'x.png'"),
        ("HERE/runs/m0", "runs/m0"),
        ("12 mazes / s, and 3 /s", "12 mazes / s, and 3 /s"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("runs/m0", "runs/m0"),
    ],
)
def test_paths_of_the_machine_are_shortened(
    text: str, shortened: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = text.replace("HERE", str(tmp_path))
    result = read_result(write_result("a", {text: [text]}, command=text))
    assert result["figures"] == {shortened: [shortened]}
    assert result["command"] == shortened
