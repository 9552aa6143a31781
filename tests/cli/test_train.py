"""``iterant train``: recipes from flags and files, one run and several, resuming."""

from __future__ import annotations

import json
import os
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from iterant.cli.main import app
from iterant.io import RunFolder
from iterant.training.recipe import OLD_NAMES, Recipe, recipe
from iterant.training.trainer import Trainer

SMALL = ("--width", "4", "--head", "4", "--size", "8", "--count", "50", "--batch-size", "10",
         "--epochs", "2", "--iterations", "3", "--pool-slots", "16", "--pool-shortest", "1",
         "--monitor-count", "4", "--device", "cpu")  # fmt: skip
"""Two epochs of four updates."""


def recipe_shown(command: Any, *words: str) -> dict[str, Any]:
    code, output, errors = command("train", *words, "--show", "--json")
    assert (code, errors) == (0, "")
    shown: dict[str, Any] = json.loads(output)["recipe"]
    return shown


def test_a_recipe_is_json_whatever_its_name(command: Any) -> None:
    assert recipe_shown(command, "prefix-sums", "--name", "\x9bα\u202e")["name"] == "\x9bα\u202e"


FIELDS = [field.name for field in fields(Recipe) if field.name != "notes"]


@pytest.mark.usefixtures("wide_screen")
def test_every_field_is_a_flag_with_the_help_of_the_recipe(command: Any) -> None:
    flags = {name for one in app["train"].assemble_argument_collection() for name in one.names}
    assert {f"--{name.replace('_', '-')}" for name in [*FIELDS, *OLD_NAMES]} <= flags
    _, output, _ = command("train", "--help")
    text = " ".join(output.replace("│", " ").split())
    described = {one.name: one.metadata["help"] for one in fields(Recipe) if one.name in FIELDS}
    assert [name for name, about in described.items() if not about or about not in text] == []


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("--head 6 5 --milestones 60 100", {"head": [6, 5], "milestones": [60, 100]}),
        ("--size 9 --count 777 --precision bf16", {"size": 9, "count": 777, "precision": "bf16"}),
        ("--problems start=any --net dt", {"problems": "start=any", "net": "dt"}),
        ("--no-throttle --grad-clip none", {"throttle": False, "grad_clip": None}),
        # Former names of fields and of a value.
        ("--rate 0.5 --pool-shake 0.5", {"lr": 0.5, "pool_noise": 0.5}),
        ("--schedule hold --hold 0.2", {"schedule": "wsd", "stable_fraction": 0.2}),
    ],
)  # fmt: skip
def test_values_of_flags(words: str, changed: dict[str, object], command: Any) -> None:
    shown = recipe_shown(command, "mazes", "--recipe", "paper", *words.split())
    assert {name: shown[name] for name in changed} == changed


def test_flags_over_file_over_recipe(tmp_path: Path, command: Any) -> None:
    (tmp_path / "my.toml").write_text('width = 12\nbatch = 25\nnet = "ff"\n')
    words = ("mazes", "--recipe", "paper", "--recipe-file", "my.toml", "--width", "16")
    shown = recipe_shown(command, *words)
    assert (shown["width"], shown["batch_size"], shown["net"]) == (16, 25, "ff")
    # The paper's other figures for that network come with it.
    assert shown["epochs"] == recipe("paper", "mazes", "ff").epochs == 200
    assert recipe_shown(command, "mazes", "--recipe", "best")["net"] == "local-rule"
    shown = recipe_shown(command, "mazes", "--recipe", "best", "--net", "dt-recall")
    assert shown == json.loads(json.dumps(recipe("best", "mazes", "dt-recall").described()))


def test_a_recipe_file_may_be_a_pipe(command: Any) -> None:
    """It can be read once only: `--recipe-file <(…)`."""
    end, start = os.pipe()
    os.write(start, b"width = 12")
    os.close(start)
    shown = recipe_shown(command, "mazes", "--recipe-file", f"/dev/fd/{end}")
    os.close(end)
    assert shown["width"] == 12


def test_a_trusted_recipe_file_may_name_a_network(tmp_path: Path, command: Any) -> None:
    (tmp_path / "my.toml").write_text('net = "small_networks:Ticking"\n')
    words = ("train", "prefix-sums", "--recipe-file", "my.toml", "--width", "8")
    for trust, message in (
        ((), "add --trust-code"),
        (("--trust-code",), "width: for networks that come with iterant"),
    ):
        code, _, errors = command(*words, *trust)
        assert (code, message in errors) == (2, True)


def test_show(command: Any) -> None:
    words = ("--recipe", "paper", "--show", "--batch-size", "25")
    code, output, errors = command("train", "mazes", *words)
    assert (code, errors) == (0, "")
    rows = {words[0]: words[1:] for line in output.splitlines() if (words := line.split())}
    assert {*FIELDS} - {"name"} <= rows.keys()
    assert rows["batch_size"][0] == "25"
    assert "783,504 parameters" in output
    assert "1,600 per epoch, 80,000 in total" in output
    assert list(Path().iterdir()) == [], "nothing is trained"


def test_one_run(command: Any) -> None:
    code, output, errors = command("train", "prefix-sums", *SMALL, "--seed", "3", "--tensorboard")
    assert (code, errors) == (0, "")
    run = RunFolder.open("runs/prefix-sums-quick-3")
    assert len(list((run.path / "events").iterdir())) == 1
    assert run.state == "finished"
    assert run.config["seed"] == 3
    assert run.config["recipe"]["width"] == 4
    lines = output.splitlines()
    assert lines[0].endswith("seed 3, kept in runs/prefix-sums-quick-3")
    assert "step 8 of 8" in output
    assert re.search(r"\nvalidation .* % after 3 iterations, .* after 6; size 48: ", output)
    assert lines[-2].startswith("finished; best on validation: ")
    net = "--net runs/prefix-sums-quick-3"
    assert lines[-1] == f"solve with it: iterant solve prefix-sums {net} --size 64"
    again = command("train", "--resume", "runs/prefix-sums-quick-3")
    assert again[0] == 0
    assert "has finished already" in again[1]


def test_default_folders_are_free(command: Any) -> None:
    for taken, seeds, folder in (
        ("prefix-sums-quick-0", (), "prefix-sums-quick-0-2"),
        ("prefix-sums-quick-s4", ("--seeds", "0"), "prefix-sums-quick-2-s0"),
    ):
        (Path("runs") / taken).mkdir(parents=True)
        assert command("train", "prefix-sums", *SMALL, *seeds)[0] == 0
        assert RunFolder.open(f"runs/{folder}").state == "finished"


def test_time_limit_and_resume(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("iterant.training.loop.Clock.over", property(lambda _: True))
        code, output, errors = command(
            "train", "prefix-sums", *SMALL, "--out", "a run", "--time-limit", "9m"
        )
    assert (code, errors) == (0, "")
    assert output.endswith(
        "stopped at the time limit after step 0; continue with:\n  iterant train --resume 'a run'\n"
    )
    code, output, _ = command("train", "prefix-sums", "--resume", "a run", "--device", "cpu")
    assert code == 0
    assert RunFolder.open("a run").state == "finished"


def test_a_failed_run(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda *given: original(*given) * float("nan"))
    code, _, errors = command("train", "prefix-sums", *SMALL, "--out", "r")
    assert code == 1
    assert errors.startswith("iterant: error: the loss became nan")
    assert errors.count("\n") == 1
    assert RunFolder.open("r").state == "failed"


def test_several_seeds_one_of_which_fails(command: Any) -> None:
    assert command("train", "prefix-sums", *SMALL, "--seed", "1", "--out", "r-s1")[0] == 0
    Path("r-s1/checkpoints/last.json").write_text("{}")
    RunFolder.open("r-s1").set_status("stopped")
    words = ("--resume", "r", "--seeds", "0-1", "--device", "cpu", "--tensorboard")
    code, output, errors = command("train", *words)
    assert code == 1
    assert RunFolder.open("r-s0").state == "finished"
    assert len(list(Path("r-s0/events").iterdir())) == 1
    assert "1 of 2 done, 1 failed" in output
    assert errors.startswith("iterant: error: 1 of 2 runs failed twice (r-s1); r-s1: ")
    assert errors.endswith("--resume r --seeds 0-1\n")
    assert errors.count("\n") == 1


def test_several_processes_need_out(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    code, _, errors = command("train", "prefix-sums", *SMALL)
    assert code == 2
    assert "--out DIR" in errors
    monkeypatch.setenv("RANK", "1")
    assert command("sample", "mazes") == (0, "", ""), "rank 0 prints"


def test_a_run_may_start_from_another(command: Any) -> None:
    assert command("train", "prefix-sums", *SMALL, "--out", "runs/a")[::2] == (0, "")
    branch = ("--out", "runs/b", "--start", "runs/a", "--lr", "1e-9")
    assert command("train", "prefix-sums", *SMALL, *branch)[::2] == (0, "")
    assert RunFolder.open("runs/b").config["init_from"].endswith("a")


def test_valid_sizes_depend_on_the_kind_of_problems(command: Any) -> None:
    words = ("mazes", "--recipe", "best", "--size", "12")
    assert recipe_shown(command, *words, "--problems", "walls=0.3")["size"] == 12
    code, _, errors = command("train", *words, "--show")
    assert (code, "odd number" in errors) == (2, True)
