"""``iterant train``: every field a flag, one line for every mistake, and runs that go on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import iterant
from iterant.cli.main import run
from iterant.cli.options import recipe_fields
from iterant.cli.train import free_folder, resolve_recipe
from iterant.io import RunFolder
from iterant.training.recipe import Recipe
from iterant.training.recipes import recipe
from iterant.training.trainer import Trainer

SMALL = ("--width", "4", "--head", "4", "--size", "8", "--count", "50", "--batch", "10",
         "--epochs", "2", "--iterations", "3", "--pool-slots", "16", "--pool-shortest", "1",
         "--watch-count", "4", "--device", "cpu")  # fmt: skip
"""Two epochs of four updates."""

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def command(capsys: Captured, *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as leaving:
        run(["train", *words])
    output, errors = capsys.readouterr()
    return leaving.value.code, output, errors


def shown(capsys: Captured, *words: str) -> dict[str, Any]:
    code, output, errors = command(capsys, *words, "--show", "--json")
    assert (code, errors) == (0, "")
    found: dict[str, Any] = json.loads(output)
    return found


VALUES: dict[str, tuple[tuple[str, ...], object]] = {
    "name": (("mine",), "mine"),
    "net": (("dt",), "dt"),
    "head": (("6", "5"), [6, 5]),
    "milestones": (("60", "100"), [60, 100]),
    "size": (("9",), 9),
    "count": (("777",), 777),
    "objective": (("progressive-n0",), "progressive-n0"),
    "optimizer": (("sgd",), "sgd"),
    "schedule": (("constant",), "constant"),
    "precision": (("bf16",), "bf16"),
    "choose": (("watch",), "watch"),
    "pool_damage_kinds": (("jitter", "disc"), ["jitter", "disc"]),
}
"""Values for the fields that are no plain numbers."""


@pytest.mark.parametrize("name", [field.name for field in fields(Recipe) if field.name != "notes"])
def test_every_field_is_a_flag(name: str, capsys: Captured) -> None:
    flag = f"--{name.replace('_', '-')}"
    before = recipe("paper", "prefix-sums").described()[name]
    fraction = isinstance(before, float) or name in ("clip", "average")
    words, wanted = VALUES.get(name, (("0.5",), 0.5) if fraction else (("7",), 7))
    if isinstance(before, bool):
        words, wanted = (), not before
        flag = flag.replace("--", "--no-", 1) if before else flag
    made = shown(capsys, "prefix-sums", "--recipe", "paper", flag, *words)["recipe"]
    assert made[name] == wanted != before


@pytest.mark.usefixtures("wide_screen")
def test_flags_have_the_recipes_words(capsys: Captured) -> None:
    _, output, _ = command(capsys, "--help")
    text = " ".join(output.replace("│", " ").split())
    places = []
    for field in recipe_fields():
        assert field.help, f"{field.name} is not described in the recipe"
        if field.name != "notes":
            assert field.help in text
            places.append(output.index(f"─ {field.section} ─"))
    assert places == sorted(places)


def test_none_and_no_take_things_away(capsys: Captured) -> None:
    made = shown(capsys, "mazes", "--recipe", "paper", "--no-throttle")["recipe"]
    assert made["throttle"] is False
    assert shown(capsys, "prefix-sums", "--clip", "none")["recipe"]["clip"] is None


def test_flags_win_over_the_file_and_the_file_over_the_recipe(
    tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "my.toml").write_text('width = 12\nbatch = 25\nnet = "ff"\n')
    words = ("mazes", "--recipe", "paper", "--recipe-file", "my.toml", "--width", "16")
    made = shown(capsys, *words)["recipe"]
    assert (made["width"], made["batch"], made["net"]) == (16, 25, "ff")
    # The book's other figures for that network come with it.
    assert made["epochs"] == recipe("paper", "mazes", "ff").epochs == 200
    task = iterant.task("mazes")
    base, chosen = resolve_recipe(task, "paper", Path("my.toml"), {"width": 16})
    assert base == recipe("paper", "mazes", "ff")
    assert json.loads(json.dumps(chosen.described())) == made


def test_the_recipe_is_shown_with_every_question_answered(capsys: Captured) -> None:
    code, output, errors = command(capsys, "mazes", "--recipe", "paper", "--show", "--batch", "25")
    assert (code, errors) == (0, "")
    rows = {words[0]: words[1:] for line in output.splitlines() if (words := line.split())}
    assert {field.name for field in recipe_fields()} - {"name", "notes"} <= rows.keys()
    assert rows["width"][0] == "128"
    assert rows["batch"][:3] == ["25", "(paper:", "50)"]
    assert rows["throttle"][0] == "yes"
    assert "783,504 parameters" in output
    assert "40,000 trained on, 10,000 held out" in output
    assert "1,600 an epoch, 80,000 in all" in output
    for note in recipe("paper", "mazes").notes:
        assert f"note: {note}" in output
    assert list(Path().iterdir()) == []


def test_a_run_from_beginning_to_end(capsys: Captured) -> None:
    code, output, errors = command(capsys, "prefix-sums", *SMALL, "--seed", "3")
    assert (code, errors) == (0, "")
    made = RunFolder.open("runs/prefix-sums-quick-3")
    assert made.state == "finished"
    assert made.config["seed"] == 3
    assert made.config["recipe"]["width"] == 4
    lines = output.splitlines()
    assert lines[0].endswith("seed 3, kept in runs/prefix-sums-quick-3")
    assert "update 8 of 8" in output
    assert "monitoring validation: " in output
    assert lines[-1].startswith("finished; best on validation: ")
    again = command(capsys, "--resume", "runs/prefix-sums-quick-3")
    assert again[0] == 0
    assert "has finished already" in again[1]


def test_the_next_run_finds_a_free_name(tmp_path: Path) -> None:
    task, quick = iterant.task("mazes"), recipe("quick", "mazes")
    for wanted in ("mazes-quick-0", "mazes-quick-0-2", "mazes-quick-0-3"):
        found = free_folder(task, quick, None, many=False)
        assert found == Path("runs") / wanted
        found.mkdir(parents=True)
    (tmp_path / "runs" / "mazes-quick-s4").mkdir()
    assert free_folder(task, quick, None, many=True) == Path("runs/mazes-quick-2")


def test_a_time_limit_says_how_to_go_on(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("iterant.training.interrupts.Clock.over", property(lambda _: True))
        code, output, errors = command(
            capsys, "prefix-sums", *SMALL, "--out", "r", "--time-limit", "9m", "--drop-pool"
        )
    assert (code, errors) == (0, "")
    assert "checkpoints leave out the replay pool: a resumed run will differ" in output
    assert output.endswith(
        "stopped at the time limit after update 0; go on with:\n  iterant train --resume r\n"
    )
    code, output, _ = command(capsys, "prefix-sums", "--resume", "r", "--device", "cpu")
    assert code == 0
    assert RunFolder.open("r").state == "finished"


def test_a_run_that_fails_is_code_1_and_one_line(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_seed_1(monkeypatch)
    code, _, errors = command(capsys, "prefix-sums", *SMALL, "--out", "r", "--seed", "1")
    assert code == 1
    assert errors.startswith("iterant: error: the loss became nan")
    assert errors.count("\n") == 1
    assert RunFolder.open("r").state == "failed"


def _fail_seed_1(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Trainer.update

    def update(self: Trainer, inputs: Any, targets: Any, moment: Any, factor: float) -> Any:
        loss = original(self, inputs, targets, moment, factor)
        return loss * float("nan") if moment.seed == 1 else loss

    monkeypatch.setattr(Trainer, "update", update)


def test_several_seeds_with_one_that_fails(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_seed_1(monkeypatch)
    code, output, errors = command(capsys, "prefix-sums", *SMALL, "--seeds", "0-2", "--out", "r")
    assert code == 1
    assert [RunFolder.open(f"r-s{seed}").state for seed in range(3)] == [
        "finished", "failed", "finished"
    ]  # fmt: skip
    assert output.startswith("on a CPU the seeds are trained one after the other\n")
    assert "seed 2: epoch 2 of 2" in output
    assert "2 of 3 seeds finished" in output
    assert "go on with" not in output
    assert errors.startswith("iterant: error: 1 failed (r-s1); r-s1: the loss became nan")
    assert errors.count("\n") == 1


def test_events_are_written_when_asked_for(capsys: Captured) -> None:
    pytest.importorskip("tensorboard")
    code, _, _ = command(capsys, "prefix-sums", *SMALL, "--out", "r", "--tensorboard")
    assert code == 0
    assert len(list(Path("r/events").iterdir())) == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("", 2, "which task?"),
        ("maze", 2, "did you mean 'mazes'?"),
        ("mazes --widht 3", 2, "Did you mean --width?"),
        ("mazes --recipe papr", 2, "did you mean 'paper'?"),
        ("mazes --alpha 2", 2, "alpha must lie between 0 and 1"),
        ("mazes --iterations 0", 2, "iterations (m; the paper has 30)"),
        ("mazes --milestones", 2, "--milestones requires at least 1"),
        ("mazes --size 8", 2, "8"),
        ("mazes --recipe-file none.toml", 2, "cannot read the recipe file none.toml"),
        ("prefix-sums --recipe paper --batch 9000", 2, "does not fit the 8000"),
        ("mazes --seeds 3-1", 2, "write 1-3"),
        ("mazes --seeds 0 --seed 0", 2, "not both"),
        ("mazes --seed -1", 2, "from 0 to 2**64 - 1"),
        ("mazes --device cuda:77", 2, "use --device cpu"),
        ("mazes --time-limit soon", 2, "9m, 90s or 1h30m"),
        ("mazes --shard-mb 0", 2, "shard size"),
        ("mazes --json", 2, "give both"),
        ("--resume nowhere", 1, "does not exist"),
        ("--resume nowhere --width 3 --seed 1", 2, "leave out --seed, --width"),
        ("--resume nowhere --seeds 0-1", 1, "no run nowhere-s0"),
        ("chess --data nowhere", 1, "nowhere"),
    ],
)
def test_a_mistake_is_one_line(words: str, code: int, said: str, capsys: Captured) -> None:
    found, _, errors = command(capsys, *words.split())
    assert found == code
    assert errors.startswith("iterant: error: ")
    assert errors.count("\n") == 1
    assert said in errors
    assert not Path("runs").exists()


def test_several_processes_must_name_their_folder(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    code, _, errors = command(capsys, "prefix-sums", *SMALL)
    assert code == 2
    assert "--out DIR" in errors


def test_help_loads_no_torch() -> None:
    script = (
        "import sys\nfrom iterant.cli.main import run\ntry:\n    run(['train', '--help'])\n"
        "except SystemExit:\n    sys.stderr.write(str('torch' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr == "False"
    assert "--pool-slots" in done.stdout


def test_a_real_process_that_is_interrupted_saves_and_goes_on(capsys: Captured) -> None:
    endless = ["100000" if word == "2" else word for word in SMALL]
    words = ["train", "prefix-sums", *endless, "--out", "r"]
    words += ["--watch-every", "0", "--validate-every", "1000", "--checkpoint-every", "1000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "iterant", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert "kept in r" in process.stdout.readline()
        assert "update" in process.stdout.readline()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert "stopped by SIGINT after update" in output
    stopped = RunFolder.open("r")
    assert stopped.state == "stopped"
    step = stopped.status.step
    assert step > 0
    code, output, _ = command(capsys, "--resume", "r", "--time-limit", "1s", "--device", "cpu")
    assert code == 0
    assert RunFolder.open("r").status.step >= step
