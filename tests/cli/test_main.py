"""The command as a whole: light to start, and failures in one line with the right code."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import iterant
from iterant.cli.main import app, find_user_modules, run

COMMAND = [sys.executable, "-m", "iterant"]


def start(*words: str, **options: str) -> subprocess.CompletedProcess[str]:
    """A real process, as a shell would start it."""
    environment = {**os.environ, **options}
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, env=environment)


def code_of(words: Sequence[str]) -> object:
    with pytest.raises(SystemExit) as leaving:
        run(words)
    return leaving.value.code


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], [], ["sample", "--help"], ["data", "chess", "-h"], ["smaple"]],
    ids=" ".join,
)
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    script = (
        "import sys\nfrom iterant.cli.main import app, find_user_modules, run\n"
        f"try:\n    run({words!r})\n"
        "except SystemExit:\n    sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "cyclopts" in loaded
    assert loaded.isdisjoint({"torch", "numpy", "matplotlib", "chess"})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("solve prefix-sums --seed 1.5", "--seed takes a whole number, got 1.5 (see iterant solve"),
        ("train mazes --epochs 1.0 --show", "--epochs takes a whole number, got 1.0 (see iterant"),
        ("train mazes --milestones 1 1.5 --show", "--milestones takes a whole number, got 1.5"),
        ("bench train --rounds=.5", "--rounds takes a whole number, got .5 (see iterant bench"),
        ("sweep x.toml --at-once 2.5", "--at-once takes a whole number, got 2.5"),
    ],
)
def test_a_fraction_is_not_rounded(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(words.split()) == 2
    assert capsys.readouterr().err.startswith(f"iterant: error: {said}")


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(["--help"]) == 0
    shown = capsys.readouterr().out
    for command in ("sample", "runs", "info", "data"):
        assert f" {command} " in shown


@pytest.mark.parametrize("name", [word for word in app if not word.startswith("-")])
@pytest.mark.usefixtures("wide_screen")
def test_help_begins_with_examples_that_are_right(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of([name, "--help"]) == 0
    shown = capsys.readouterr().out
    before = shown.partition("╭")[0].splitlines()[1:]
    examples = [line for line in before if line.startswith("  ")]
    assert examples
    assert max(map(len, examples)) <= 80, "a terminal would break it in two"
    for example in examples:
        words = shlex.split(example[example.index("iterant") :])[1:]
        app.parse_args(words, print_error=False, exit_on_error=False)


def test_the_commands_stand_in_groups_the_first_ones_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert code_of(["--help"]) == 0
    shown = capsys.readouterr().out
    places = [shown.index(f"│ {word} ") for word in ("solve", "train", "reproduce", "info")]
    assert places == sorted(places)


def test_a_module_of_this_folder_is_found_after_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The installed command has no folder of its own on the Python path, as -m has."""
    task = "from iterant.tasks.prefix_sums import PrefixSums as Mine\n"
    (tmp_path / "of_this_folder.py").write_text(task)
    (tmp_path / "json.py").write_text("raise RuntimeError('not this one')\n")
    before = list(sys.path)
    monkeypatch.setattr(sys, "path", [place for place in before if place])
    monkeypatch.chdir(tmp_path)
    assert code_of(["sample", "of_this_folder:Mine", "--size", "4"]) == 0
    assert "4 bits" in capsys.readouterr().out
    assert sys.path == [*(place for place in before if place), str(tmp_path)]
    find_user_modules()
    assert sys.path.count(str(tmp_path)) == 1


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(["--version"]) == 0
    assert capsys.readouterr().out.strip() == iterant.__version__


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["smaple"], 'Did you mean "sample"?'),
        (["nonsense"], 'unknown command "nonsense" (see iterant --help)'),
        (["data", "ches"], 'Did you mean "chess"?'),
        (["smaple"], '"sample"? (see iterant --help)'),
        (["sample", "mazes", "--sise", "9"], "Did you mean --size?"),
        (["solve", "mazes", "--sise", "9"], "Did you mean --size? (see iterant solve --help)"),
        (["solve", "mazes", "--quick"], "unknown option: --quick (see iterant solve --help)"),
        (["sample", "maze"], "did you mean 'mazes'?"),
        (["sample", ""], "unknown task ''"),
        (["sample", "mazes", "--save", "m.gif"], "pictures are written as .png or .svg, got"),
        (["train", "mazes", "--recipe", "", "--show"], "unknown recipe ''"),
        (["train", "mazes", "--device", "meta", "--show"], "unknown device 'meta'; use auto, cpu"),
        (["sweep", "x.toml", "--nodes", "2"], "--nodes is for Slurm; give --on slurm too"),
        (["sweep", "x.toml", "--processes", "0"], "processes must be a whole number from 1 on"),
        (["sample"], "TASK requires an argument (see iterant sample --help)"),
        (["sample", "mazes", "--size"], "--size requires at least 1"),
        (["sample", "mazes", "and", "more"], "unexpected words: 'and', 'more'"),
        (["sample", "mazes", "--count", "few"], '--count: unable to convert "few" into int'),
        (["data", "chess", "FILE"], "--out"),
        (["sample", "json:JSONDecoder"], "is no task: it lacks spec"),
        (["sample", "os:path"], "task 'os:path' cannot be made"),
        (["sample", "nowhere:Task"], "cannot be imported"),
        (["sample", "own/nowhere.py:Task"], "wanted own.nowhere:Task"),
        (["sample", "iterant.tasks:PlianTask"], "did you mean 'PlainTask'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_word_is_one_line_and_code_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(words) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("iterant: error: ")
    assert errors.count("\n") == 1
    assert said in errors


@pytest.mark.parametrize("there", [True, False])
def test_an_apple_gpu_is_taken_where_there_is_one(
    there: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: there)
    assert code_of(["train", "mazes", "--device", "mps", "--show"]) == (0 if there else 2)
    assert ("no Apple GPU is there" in capsys.readouterr().err) != there


def test_a_real_process_ends_the_same_way() -> None:
    done = start("sample", "maze")
    assert done.returncode == 2
    assert done.stderr == "iterant: error: unknown task 'maze'; did you mean 'mazes'?\n"


def test_a_bug_shows_its_traceback_and_where_to_report_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("iterant.cli.sample.task_of", None)
    assert code_of(["sample", "mazes"]) == 1
    errors = capsys.readouterr().err
    assert "Traceback" in errors
    assert "'NoneType' object is not callable" in errors
    assert errors.rstrip().splitlines()[-1].startswith("iterant: this is a bug")


def test_a_run_in_the_place_of_a_task_is_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(["solve", str(tmp_path)]) == 2
    assert f"a run is given as --net {tmp_path}" in capsys.readouterr().err


def test_code_of_the_user_that_fails_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = """
    from iterant.tasks.prefix_sums import PrefixSums
    import torch

    class Mine(PrefixSums):
        def sample(self, *given, **more):
            return torch.zeros(2) @ torch.zeros(3)
    """
    (tmp_path / "failing_here.py").write_text(textwrap.dedent(task))
    monkeypatch.syspath_prepend(tmp_path)
    assert code_of(["sample", "failing_here:Mine"]) == 2
    errors = capsys.readouterr().err
    assert "Traceback" in errors
    last = errors.rstrip().splitlines()[-1]
    assert "failing_here.py, line 7, in sample: RuntimeError" in last
    assert "code of your own" in last


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "iterant: interrupted"),
        (BrokenPipeError(), 141, ""),
        (MemoryError(), 1, "iterant: error: out of memory"),
        (RuntimeError("alloc.cpp: can't allocate memory"), 1, "iterant: error: out of memory"),
        (PermissionError(13, "Permission denied", "a\nfile"), 1, "Permission denied"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_is_no_bug_shows_no_traceback(
    failure: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr("iterant.cli.sample.task_of", fail)
    monkeypatch.setattr("iterant.cli.errors._discard_output", lambda: None)
    assert code_of(["sample", "mazes"]) == code
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    assert len(errors.strip().splitlines()) == bool(said)
    assert said in errors


def test_a_reader_that_goes_away_is_no_failure_to_speak_of() -> None:
    process = subprocess.Popen(
        [*COMMAND, "sample", "prefix-sums", "--size", "4000", "--count", "8"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process, process.stdout, process.stderr:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def test_an_interrupted_command_leaves_with_130() -> None:
    script = (
        "import iterant.cli.sample as sample, signal, time, sys\n"
        # Whoever starts the tests in the background has the signal ignored, here too.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sample.task_of = lambda *_: (print('ready', flush=True), time.sleep(60))\n"
        "from iterant.cli.main import app, find_user_modules, run\nrun(['sample', 'mazes'])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.strip() == "iterant: interrupted"


def test_a_terminal_without_the_signs_gets_question_marks() -> None:
    done = start("--help", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "sample" in done.stdout
