"""What cannot be written is known before anything is done, and asking leaves no trace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iterant.errors import RunError, UsageError
from iterant.io import RunFolder
from iterant.io.files import check_new_folder, check_writable_file, check_writable_folder
from iterant.io.results import check_result_path, write_result


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("")
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_a_folder_is_one_that_is_there_or_can_be_made(inside: Path) -> None:
    before = sorted(inside.rglob("*"))
    for place in ("empty", "full", "new", "new/newer/newest"):
        assert check_writable_folder(inside / place) == inside / place
    for place in ("file", "file/below", "file/far/below"):
        with pytest.raises(UsageError, match=r"file' is no folder; choose another"):
            check_writable_folder(inside / place)
    assert sorted(inside.rglob("*")) == before


def test_paths_are_taken_from_where_we_are(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(inside)
    assert check_writable_folder("new/er") == Path("new/er")
    assert check_writable_file("here.png") == Path("here.png")
    with pytest.raises(UsageError, match="is no folder"):
        check_writable_folder("file/er")


def test_a_new_folder_has_nothing_in_it(inside: Path) -> None:
    assert check_new_folder(inside / "empty") == inside / "empty"
    assert check_new_folder(inside / "new") == inside / "new"
    with pytest.raises(UsageError, match="full is there already"):
        check_new_folder(inside / "full")


def test_a_file_needs_its_folder(inside: Path) -> None:
    assert check_writable_file(inside / "file") == inside / "file"
    with pytest.raises(UsageError, match="there is no folder"):
        check_writable_file(inside / "new" / "a.png")
    with pytest.raises(UsageError, match="it is a folder"):
        check_writable_file(inside / "full")


def test_where_nothing_may_be_written_is_asked_of_the_system(
    inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs this may be root, who may write anywhere: so the system's answer is made up."""
    asked: list[str] = []

    def access(path: str, mode: int) -> bool:
        asked.append(str(path))
        return not mode & os.W_OK

    monkeypatch.setattr(os, "access", access)
    for place, check in (
        ("new/a", check_writable_folder),
        ("empty", check_new_folder),
        ("b", check_writable_file),
    ):
        with pytest.raises(UsageError, match="nothing may be written into the folder"):
            check(inside / place)
    assert asked == [str(inside), str(inside / "empty"), str(inside)]


def test_what_a_result_cannot_be_written_as_is_refused(inside: Path) -> None:
    good = inside / "new" / "curve-1.json"
    assert check_result_path(good) == good
    assert write_result(good.stem, {}, folder=good.parent) == good
    (inside / "taken.json").mkdir()
    for place, said in (
        ("curve.txt", "try curve.json"),
        ("my curve.json", "'my curve' cannot name a result"),
        ("taken.json", "it is a folder"),
        ("file/a.json", "is no folder"),
    ):
        with pytest.raises(UsageError, match=said):
            check_result_path(inside / place)


def test_a_run_can_begin_in_a_new_folder_alone(inside: Path) -> None:
    RunFolder.check_new(inside / "new")
    RunFolder.check_new(inside / "empty")
    RunFolder.create(inside / "run", {})
    for place, error, said in (
        ("run", RunError, "holds a run already"),
        ("full", RunError, "is not empty"),
        ("file/run", UsageError, "is no folder"),
    ):
        with pytest.raises(error, match=said):
            RunFolder.check_new(inside / place)
