"""Result files carry their provenance and no paths of the machine."""

import json
import math
import os
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
    hardware,
    read_result,
    read_results,
    without_machine_paths,
    write_result,
)


def test_result_has_provenance(tmp_path: Path) -> None:
    path = write_result(
        "a-1", {"x": {"mean": 0.5}}, seed=3, command="iterant bench", folder=tmp_path
    )
    assert path == tmp_path / "a-1.json"
    result = read_result(path)
    assert list(result) == [
        "name",
        "command",
        "commit",
        "dirty",
        "date",
        "seed",
        "hardware",
        "versions",
        "figures",
    ]
    assert (result["name"], result["seed"], result["command"]) == ("a-1", 3, "iterant bench")
    assert result["figures"] == {"x": {"mean": 0.5}}
    assert set(result["hardware"]) == {"cpu", "cores", "memory_gib", "gpu"}
    assert set(result["versions"]) == {"iterant", "python", "torch", "numpy"}
    assert result["date"].endswith("+00:00")


def test_machine_paths_are_not_written(tmp_path: Path) -> None:
    figures = {"run": str(tmp_path / "m0"), str(tmp_path): [f"see {tmp_path / 'x.png'} there"]}
    path = write_result(
        "a", figures, command=[f"{tmp_path}/bin/iterant", "train", f"--out={tmp_path / 'm0'}"],
        folder=tmp_path,
    )  # fmt: skip
    assert str(tmp_path) not in path.read_text()
    assert str(Path.cwd()) not in path.read_text()
    assert read_result(path)["command"] == "iterant train --out=m0"
    assert read_result(path)["figures"]["run"] == "m0"
    own = read_result(write_result("b", {}, folder=tmp_path))["command"]
    assert own
    assert not own.startswith("/")
    assert (
        "/bin/"
        not in write_result("c", {}, command="/usr/bin/x 'open", folder=tmp_path).read_text()
    )


def test_nan_becomes_null(tmp_path: Path) -> None:
    path = write_result("a", {"loss": math.nan, "rates": [math.inf, 1.0]}, folder=tmp_path)

    def refuse(word: str) -> None:
        raise AssertionError(word)

    result = json.loads(path.read_text(), parse_constant=refuse)
    assert result["figures"] == {"loss": None, "rates": [None, 1.0]}


def test_read_results(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_result(name, {"n": name}, folder=tmp_path / "results")
    (tmp_path / "results" / "README.md").touch()
    (tmp_path / "results" / ".a.json.0123456789ab.tmp").touch()
    assert [r["figures"]["n"] for r in read_results(tmp_path / "results")] == ["a", "b"]
    (tmp_path / "results" / "c.json").write_text('{"name": "c"}')
    with pytest.raises(RunError, match=r"c\.json' is no result .*command.*missing"):
        read_results(tmp_path / "results")
    with pytest.raises(RunError, match="no such file or folder"):
        read_results(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".a", "a b"])
def test_invalid_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a result"):
        write_result(name, {}, folder=tmp_path)


def test_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "results").touch()
    with pytest.raises(RunError, match="a file stands where a folder is wanted"):
        write_result("a", {}, folder=tmp_path / "results")


def test_result_path_is_checked_before_writing(tmp_path: Path) -> None:
    good = tmp_path / "new" / "curve-1.json"
    assert check_result_path(good) == good
    assert write_result(good.stem, {}, folder=good.parent) == good
    (tmp_path / "taken.json").mkdir()
    (tmp_path / "file").touch()
    for place, message in (
        ("curve.txt", "try curve.json"),
        ("my curve.json", "'my curve' cannot name a result"),
        ("taken.json", "it is a folder"),
        ("file/a.json", "is no folder"),
    ):
        with pytest.raises(UsageError, match=message):
            check_result_path(tmp_path / place)


# Provenance


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


def test_commit_and_changes_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_commit_from_the_environment_variable(
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
def test_command_line(words: list[str], line: str) -> None:
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


def test_paths_below_the_current_folder_are_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert without_machine_paths(str(Path.cwd() / "runs" / "m0")) == "runs/m0"


def test_importing_io_does_not_import_torch() -> None:
    script = "import sys, iterant.io; print('torch' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert said.stdout == "False\n"


@pytest.mark.parametrize("known", [True, False])
def test_memory_is_none_where_unknown(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def sysconf(word: str) -> int:
        if not known:
            raise ValueError("unrecognized configuration name")
        return {"SC_PHYS_PAGES": 3 << 20, "SC_PAGE_SIZE": 4096}[word]

    monkeypatch.setattr(os, "sysconf", sysconf)
    assert hardware()["memory_gib"] == (12.0 if known else None)
