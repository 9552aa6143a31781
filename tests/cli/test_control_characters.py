"""Control characters in files, names and errors reach no terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.files import maze_run
from iterant.formatting import printable
from iterant.io import RunFolder, read_weights, save_weights
from iterant.runner import SweepFolder, planned
from iterant.runner.folder import Failures

ATTACK = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\u2066evil\r\u2028"
"""Sets the title, clears the screen, colours, reverses text and writes over the line."""
SHOWN = r"\x1b]0;title"
OBEYED = ("\x1b]0;", "\x07", "\x1b[2J", "\x9b", "\u202e", "\u2066", "\r", "\u2028")


def runs(folder: Path) -> list[str]:
    path = maze_run(folder / "runs" / f"m{ATTACK}")
    RunFolder.open(path).set_status("failed", reason=f"why{ATTACK}\nforged: finished")
    return ["runs", str(folder / "runs")]


def task_of_weights(folder: Path) -> list[str]:
    config, tensors = read_weights(maze_run(folder / "m0"))
    save_weights(folder / "weights", {**config, "task": f"mazes{ATTACK}"}, tensors)
    return ["evaluate", str(folder / "weights")]


def sweep_status(folder: Path) -> list[str]:
    sweep = SweepFolder.prepare(folder / "sweep", planned("s", task="prefix-sums"))
    (name,) = sweep.planned
    sweep.work_path(name).mkdir()
    sweep.write_failures(name, Failures(2, f"RuntimeError: {ATTACK}"))
    return ["sweep", "status", str(folder / "sweep")]


def game(folder: Path) -> list[str]:
    text = f'[Event "{ATTACK}"]\n[White "{ATTACK}"]\n\n1. e4 e5 2. Nf3 *\n' * 2
    (folder / "g.pgn").write_text(text, encoding="utf-8")
    return ["solve", "chess", str(folder / "g.pgn")]


def file_name(folder: Path) -> list[str]:
    (folder / f"p{ATTACK}.txt").write_text("101\n", encoding="utf-8")
    return ["solve", "prefix-sums", str(folder / f"p{ATTACK}.txt")]


def missing_file(folder: Path) -> list[str]:
    return ["solve", "mazes", str(folder / f"p{ATTACK}.png")]


def puzzles(folder: Path) -> list[str]:
    head = "PuzzleId,FEN,Moves,Rating,RatingDeviation,Popularity,NbPlays,Themes,GameUrl\n"
    good = ("00008,r6k/pp2r2p/4Rp1Q/3p4/8/1N1P2R1/PqP2bPP/7K b - - 0 24,f2g3 e6e7 b2b1 b3c1 b1c1 "
            "h6c1,1798,77,95,8459,crushing,https://lichess.org/x#48\n")  # fmt: skip
    attack = ATTACK.replace("\r", "").replace("\u2028", "")
    bad = f"9{attack},{attack},f2g3 {attack},1798,77,95,8459,x,y\n"
    (folder / "p.csv").write_text(head + good + bad, encoding="utf-8")
    return ["data", "chess", str(folder / "p.csv"), "--out", str(folder / f"o{attack}")]


def unknown_flag(_: Path) -> list[str]:
    return ["sample", "mazes", f"--{ATTACK}"]


CASES = [runs, task_of_weights, sweep_status, game, file_name, missing_file, puzzles, unknown_flag]


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_control_characters_are_escaped(
    make: Any, terminal: bool, tmp_path: Path, command: Any, terminal_command: Any, capsys: Any
) -> None:
    words = make(tmp_path)
    if terminal:
        text = terminal_command(*words) + capsys.readouterr().err
        # rich moves the cursor to the start of a line when it draws bars.
        text = text.replace("\r\x1b[2K", "").replace("\r\x1b[1A", "")
    else:
        text = "".join(command(*words)[1:])
    assert "Traceback" not in text
    assert [one for one in OBEYED if one in text] == []
    if make is not game:  # which shows the moves alone
        assert SHOWN in text.replace("\n", ""), "the rest of the text is shown"
    assert not any(line.startswith("forged") for line in text.splitlines())


def test_other_text_is_printed_as_it_is() -> None:
    text = "mazes 59×59\t„größer“ ‖Δφ‖ 日本語 🙂 é"
    assert printable(text) == text
    assert printable("a\nb") == "a\nb"
    assert printable("a\nb", one_line=True) == r"a\nb"


def test_styles_of_the_terminal_remain(terminal_command: Any) -> None:
    assert "\x1b[" in terminal_command("sample", "mazes", "--size", "5")
