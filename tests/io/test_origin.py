"""Where numbers come from is found without torch and told without the machine's paths."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from iterant.io import results as module
from iterant.io.results import code_version, command_line, hardware, without_machine_paths


def git_repository(folder: Path) -> str:
    """A checkout of one commit, made by git itself."""
    subprocess.run(["/usr/bin/env", "git", "init", "-q"], cwd=folder, check=True)
    (folder / "code.py").write_text("1")
    (folder / "results").mkdir()
    (folder / "results" / "a.json").write_text("1")
    subprocess.run(["/usr/bin/env", "git", "add", "."], cwd=folder, check=True)
    subprocess.run(
        ["/usr/bin/env", "git", "-c", "user.name=a", "-c", "user.email=a@example.org",
         "commit", "-q", "-m", "One"],
        cwd=folder,
        check=True,
    )  # fmt: skip
    said = subprocess.run(
        ["/usr/bin/env", "git", "rev-parse", "HEAD"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return said.stdout.strip()


def test_a_checkout_names_its_commit_and_whether_code_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    commit = git_repository(tmp_path)
    monkeypatch.setattr(module, "_ROOT", tmp_path)
    monkeypatch.setenv("ITERANT_COMMIT", "told")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert code_version() == (commit, False)
    (tmp_path / "results" / "a.json").write_text("2")
    (tmp_path / "untracked.txt").touch()
    assert code_version() == (commit, False)
    (tmp_path / "code.py").write_text("2")
    assert code_version() == (commit, True)


def test_a_copy_without_history_is_told_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ROOT", tmp_path)
    monkeypatch.delenv("ITERANT_COMMIT", raising=False)
    assert code_version() == (None, None)
    monkeypatch.setenv("ITERANT_COMMIT", "abc")
    assert code_version() == ("abc", False)
    monkeypatch.setenv("ITERANT_COMMIT", "abc-dirty")
    assert code_version() == ("abc", True)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["/home/me/bin/iterant", "train", "mazes"], "iterant train mazes"),
        (["/home/me/iterant/__main__.py", "runs"], "iterant runs"),
        (["scripts/bench.py", "--data=/mnt/disk/puzzles"], "bench.py --data=puzzles"),
        (["iterant", "solve", "chess", "8/8/k w - - 0 1"], "iterant solve chess '8/8/k w - - 0 1'"),
        ([], "''"),
    ],
)
def test_a_command_keeps_its_words_and_loses_its_folders(words: list[str], line: str) -> None:
    assert command_line(words) == line


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/data", "data"),
        ("/home/me/x.png", "x.png"),
        ("saved to '/home/me/x.png'", "saved to 'x.png'"),
        ("12 mazes / s, and 3 /s", "12 mazes / s, and 3 /s"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("runs/m0", "runs/m0"),
        ("/", "/"),
    ],
)
def test_only_paths_are_shortened(text: str, left: str) -> None:
    assert without_machine_paths(text) == left


def test_paths_below_the_current_folder_stay_useful(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert without_machine_paths(str(Path.cwd() / "runs" / "m0")) == "runs/m0"


def test_importing_the_room_does_not_import_torch() -> None:
    script = "import sys, iterant.io; print('torch' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert said.stdout == "False\n"


@pytest.mark.parametrize("known", [True, False])
def test_memory_is_told_where_the_system_tells_it(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(word: str) -> int:
        if not known:
            raise ValueError("unrecognized configuration name")
        return {"SC_PHYS_PAGES": 3 << 20, "SC_PAGE_SIZE": 4096}[word]

    monkeypatch.setattr(os, "sysconf", told)
    assert hardware()["memory_gib"] == (12.0 if known else None)
