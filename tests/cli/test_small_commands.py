"""``iterant info``, ``iterant runs`` and ``iterant data``."""

from __future__ import annotations

from pathlib import Path

import pytest

from iterant.cli.main import run
from iterant.io import RunSummary
from iterant.nets.factory import catalogue
from iterant.zoo import card


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as leaving:
        run(words)
    output, errors = capsys.readouterr()
    return leaving.value.code, output, errors


def test_info_names_versions_devices_and_networks(capsys: pytest.CaptureFixture[str]) -> None:
    code, output, errors = command(capsys, "info")
    assert (code, errors) == (0, "")
    words = [line.split() for line in output.splitlines()]
    first = {line[0] for line in words if line}
    assert {"iterant", "python", "torch", "numpy", "cpu", "chess"} <= first
    for count in ("3,123,600", "783,504", "12,056,976"):
        assert any(line[-1] == count and "dt-recall" in line for line in words if line)
    for name in ("mazes", "prefix-sums-paper"):
        assert [name, f"{card(name).parameters:,}"] in words
    assert sum(line[-1].replace(",", "").isdigit() for line in words if line) >= len(catalogue())


def test_a_missing_package_is_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("iterant.cli.info.OPTIONAL", ("no-such-package",))
    _, output, _ = command(capsys, "info")
    assert "no-such-package" in output
    assert "not installed" in output


def test_runs_lists_runs_with_state_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [
        RunSummary(
            Path("runs/m0"), "finished", None, "mazes", "best", 7, 2400, 2400, {"accuracy": 0.99812}
        ),
        RunSummary(Path("runs/broken"), "unreadable", "it is damaged", age_seconds=7300.0),
    ]
    monkeypatch.setattr("iterant.io.list_runs", lambda folder: found)
    code, output, errors = command(capsys, "runs", str(tmp_path))
    assert (code, errors) == (0, "")
    good, broken = (
        next(line for line in output.splitlines() if str(run.path) in line) for run in found
    )
    for part in ("mazes", "best", " 7 ", "finished", "2,400 of 2,400", "accuracy 0.9981"):
        assert part in good
    assert "unreadable" in broken
    assert "2 h 2 min ago" in broken
    assert "runs/broken: it is damaged" in output


def test_an_empty_folder_has_no_runs_and_a_missing_one_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(capsys, "runs", str(tmp_path)) == (0, f"no runs under {tmp_path}\n", "")
    code, _, errors = command(capsys, "runs", str(tmp_path / "nowhere"))
    assert code == 1
    assert errors.startswith("iterant: error: there is no folder")
    assert errors.count("\n") == 1


ROWS = """PuzzleId,FEN,Moves,Rating,RatingDeviation,Popularity,NbPlays,Themes,GameUrl,OpeningTags
abcde,6k1/5ppp/8/8/8/8/5PPP/3R2K1 b - - 0 1,h7h6 d1d8,900,80,90,100,mateIn1 short,url,
wrong,not a board,a1a2 a2a3,900,80,90,100,short,url,
"""


def test_data_chess_packs_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "puzzles.csv", tmp_path / "packed"
    source.write_text(ROWS)
    code, output, errors = command(capsys, "data", "chess", str(source), "--out", str(out))
    assert (code, errors) == (0, "")
    assert f"1 puzzle written to {out}" in output
    assert "2 rows read, 1 broken" in output
    assert "  line 3: " in output
    assert out.is_dir()
    code, output, errors = command(capsys, "data", "chess", str(source), "--out", str(out))
    assert code == 2
    assert errors.count("\n") == 1


def test_data_chess_of_a_missing_file_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("data", "chess", str(tmp_path / "none.csv"), "--out", str(tmp_path / "out"))
    code, output, errors = command(capsys, *words)
    assert code == 1
    assert output == ""
    assert errors.startswith("iterant: error: ")
    assert errors.count("\n") == 1
