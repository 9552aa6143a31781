"""Wrong input of every command: one line and the exit code, nothing printed or written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cli.files import authors_checkpoint, feed_forward, maze_run
from iterant import registry
from iterant.training.data import TrainingSet
from iterant.zoo import loading

FEN = "6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"
OUT = ("--out", "new")

# Files in the folder where the commands run: ff (weights of five layers for prefix sums), m0 (a run
# on mazes), m.pth (a checkpoint of the paper's authors), text.
WRONG: dict[str, list[tuple[str | tuple[str, ...], str]]] = {
    "": [
        ("smaple", 'Did you mean "sample"?'),
        ("-v", 'unknown command "-v"'),
        ("sweep", "FILE requires an argument (see iterant sweep --help)"),
        ("data ches", 'Did you mean "chess"?'),
        ("data chess none.csv --out new", "none.csv"),
        ("runs nowhere", "there is no folder"),
        ("solve m0", "a run is given as --net m0"),
        ("sweep x.toml --memory 2", "for Slurm; give --on slurm too"),
        ("bench train --rounds=.5", "--rounds takes a whole number, got .5"),
    ],
    "sample": [
        ("maze", "did you mean 'mazes'?"),
        ("", "TASK requires an argument (see iterant sample --help)"),
        ("mazes --count", "--count requires an argument (see iterant sample --help)"),
        ("mazes and more", "unexpected argument: and more"),
        ("mazes --count few", '--count: unable to convert "few" into int'),
        ("mazes --size 8", "odd"),
        ("mazes --save m.gif", "pictures are written as .png or .svg, got"),
    ],
    "solve": [
        ("mazes --sise 9", "unknown option: --sise (see iterant solve --help)"),
        ("mazes nowhere.png", "there is no file"),
        ("mazes S.G --size 9", "not both"),
        ("mazes --patience 5", "rule 'rest' cannot be made with (patience=5)"),
        ("mazes --save out.txt", "answers are written as .png, .svg, .gif or .json, got"),
        ("mazes --halt never", "unknown rule 'never'"),
        ("mazes --legal S.G", "do not restrict"),
        ("mazes --pgn S.G", "the problem is of the kind games"),
        ("mazes --pgn", "give the file too"),
        (("chess", "8/5ppp/8/8/8/8/8/K2R4 w - -"), "king"),
    ],
    "train": [
        ("mazes --learning-rate 1", "unknown option: --learning-rate. Did you mean --lr?"),
        ("mazes --lr 1 --rate 1", "rate is a former name of lr; give one of the two"),
        ("mazes --steps 8", "Did you mean --epochs or --iterations?"),
        ("mazes --device cuda:9", "is not available; use --device cpu"),
        ("", "which task?"),
        ("mazes --recipe papr", "did you mean 'paper'?"),
        ("mazes --device meta --show", "unknown device 'meta'; use auto, cpu"),
        ("mazes --recipe-file none.toml", "cannot read 'none.toml'"),
        ("prefix-sums --recipe paper --batch-size 9000", "does not fit the 8000"),
        ("mazes --seeds 0 --seed 0", "not both"),
        ("mazes --time-limit soon", "9m, 90s or 1h30m"),
        ("mazes --json", "give both"),
        ("--resume nowhere", "does not exist"),
        ("--resume nowhere --width 3 --seed 1", "leave out --seed, --width"),
        ("--resume nowhere --seeds 0", "no run nowhere-s0"),
        ("prefix-sums --init-from nowhere --seeds 0-1", "--init-from is for one run"),
        ("prefix-sums --start nowhere", "'nowhere' does not exist"),
        ("chess --data nowhere", "nowhere"),
    ],
    "evaluate": [
        ("", "which runs?"),
        ("./nothing", "does not exist"),
        ("ff --max-steps 6", "has 5 iterations, asked for 6; ask for at most 5"),
        ("ff --rule stabel", "did you mean 'stable'?"),
        ("ff --precision fp8", "unknown precision 'fp8'"),
        ("ff --save c.pdf", "written as .png"),
        ("ff --json f.txt", "try f.json"),
        ("ff --trade --save c.png", "leave out --save and"),
    ],
    "analyze": [
        ("", "which runs?"),
        ("m0 --what nosie", "did you mean 'noise'"),
        ("m0 --what swap --max-steps 50", "it takes 51 iterations or more, got 50"),
        ("m0 --what noise --size 8", "try 9"),
        ("m0 --what bit-flip", "the task mazes has no method flip"),
    ],
    "reproduce": [
        ("", "give the name of a table or figure"),
        ("fig-width --list", "or --list, or --all"),
        ("fig-with", "did you mean 'fig-width'"),
        ("fig-width --write x.md", "--write goes with --all"),
        ("--all --train", "one table or figure at a time"),
        ("fig-width --budget soon", "a time is written like"),
        ("fig-width --seeds 1", "give --train or --budget with it"),
        ("fig-width --results text", "is a file"),
        ("mazes-201 --train", "scripts/measure-network"),
    ],
    "export": [
        ("ff --to keras", "keras"),
        ("./none --to onnx", "does not exist"),
        ("ff --to hub --out ff", "is there already"),
    ],
    "import": [
        (("m.pth", "--task", "chess", *OUT), "holds a network for images of 3 channels"),
        (("text", "--task", "mazes", *OUT), "cannot be read as a checkpoint"),
        (("none.pth", "--task", "mazes", *OUT), "none.pth"),
    ],
}
CASES = [
    ((*name.split(), *(words.split() if isinstance(words, str) else words)), message)
    for name, cases in WRONG.items()
    for words, message in cases
]
UNREADABLE = ("does not exist", "there is no folder", "nowhere", "none.csv", "none.pth",
              "holds a network", "as a checkpoint")  # fmt: skip
"""In messages about files and runs: a failure of the machine, not of the command line."""


def make_files(folder: Path) -> None:
    feed_forward(folder / "ff")
    maze_run(folder / "m0")
    authors_checkpoint(folder / "m.pth")
    (folder / "text").write_text("hello\n")


@pytest.mark.parametrize(
    ("words", "message"),
    CASES,
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else "",
)
def test_wrong_input(words: tuple[str, ...], message: str, command: Any, tmp_path: Path) -> None:
    make_files(tmp_path)
    before = sorted(tmp_path.iterdir())
    code, output, errors = command(*words)
    assert errors.startswith("iterant: error: ")
    assert errors.count("\n") == 1
    assert message in errors
    assert output == ""
    assert code == (1 if any(part in message for part in UNREADABLE) else 2)
    assert sorted(tmp_path.iterdir()) == before


BELOW = "file/below"
UNWRITABLE = [
    ["evaluate", "mazes", "--json", f"{BELOW}/a.json"],
    ["evaluate", "mazes", "--json", "no name.json"],
    ["evaluate", "mazes", "--save", f"{BELOW}/a.png"],
    ["analyze", "mazes", "--out", BELOW],
    ["bench", "train", "--out", BELOW],
    ["bench", "solve", "--out", BELOW],
    ["reproduce", "--all", "--write", "."],
    ["sample", "mazes", "--save", f"{BELOW}/a.png"],
    ["solve", "mazes", "--save", f"{BELOW}/a.gif"],
    ["sweep", "study.toml", "--results", BELOW],
    ["train", "prefix-sums", "--out", BELOW],
    ["train", "prefix-sums", "--seeds", "0-1", "--out", BELOW],
    ["export", "prefix-sums", "--to", "hub", "--out", BELOW],
    ["import", "model.pth", "--task", "mazes", "--out", BELOW],
    ["data", "chess", "puzzles.csv", "--out", BELOW],
]


@pytest.mark.parametrize("words", UNWRITABLE, ids=" ".join)
def test_targets_are_checked_before_work_begins(
    words: list[str], command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("file").write_text("")
    Path("model.pth").write_bytes(b"nothing")
    Path("puzzles.csv").write_text("nothing")
    Path("study.toml").write_text('task = "prefix-sums"\nseeds = "0-1"\n[fields]\nepochs = 1\n')
    before = sorted(Path().iterdir())

    def work(*_: Any, **__: Any) -> None:
        raise AssertionError("work began")

    monkeypatch.setattr(TrainingSet, "of", work)
    if words[0] not in ("train", "sweep", "export", "import"):  # these need the task for the target
        monkeypatch.setattr(registry, "task", work)
        monkeypatch.setattr(loading, "load", work)
    code, _, errors = command(*words)
    assert code == 2
    assert errors.startswith("iterant: error: ")
    assert errors.count("\n") == 1
    assert re.search("is not a folder|there is no folder|no name|it is a folder", errors)
    assert sorted(Path().iterdir()) == before
