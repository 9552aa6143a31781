"""Folders and files of a stranger that name code: nothing of it is imported or called.

The module `layers` lies in the stranger's folder and leaves a trace when it is imported. Commands
start in the parent folder, from which it could be imported as ``folder.layers``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import iterant
from iterant import registry
from iterant.cli.main import run as run_command
from iterant.errors import IterantError, UntrustedCode, UsageError
from iterant.io import RunFolder, save_weights, write_json
from iterant.runner import Plan, PlannedRun, SweepFolder, planned
from iterant.runner.worker import command_for, run_one
from iterant.training.recipe import recipe as named_recipe

TINY: dict[str, Any] = {
    "epochs": 1, "count": 60, "batch_size": 10, "iterations": 4, "pool_slots": 20,
    "pool_shortest": 2, "pool_longest": None, "monitor_every": 0, "width": 4, "size": 8,
}  # fmt: skip

LAYERS = """
from pathlib import Path
import torch
from iterant.nets.protocol import Argmax as Read
from iterant.tasks.prefix_sums import PrefixSums as Task
from iterant.training.objectives import Progressive as Loss

Path({trace!r}).touch()

def job(job):
    return {{"tests": {{}}}}

class Net(torch.nn.Module):
    def __init__(self, dims, channels):
        super().__init__()
        self.head = torch.nn.Conv1d(channels, 2, 1)
    def read(self, inputs):
        return inputs
    def start(self, inputs):
        return inputs
    def step(self, features, memory, index):
        return features
    def answer(self, features):
        return self.head(features)
"""

NET, TASK, READ = "folder.layers:Net", "folder.layers:Task", "folder.layers:Read"
PREPARE = "multiprocessing.spawn:prepare"


@pytest.fixture(scope="module", name="stopped")
def _stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of our own that can be resumed."""
    path = tmp_path_factory.mktemp("run") / "run"
    iterant.train("prefix-sums", out=path, time_limit=1e-3, **{**TINY, "epochs": 50})
    return path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, stopped: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stranger's folder: a copy of the run, and `layers`; the current folder is its parent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])  # even if it is importable
    for name in [name for name in sys.modules if name.partition(".")[0] == "folder"]:
        monkeypatch.delitem(sys.modules, name)
    shutil.copytree(stopped, "folder")
    Path("folder/layers.py").write_text(LAYERS.format(trace=str(tmp_path / "TRACE")))
    Path("folder/README.md").write_text(f"open({str(tmp_path / 'TRACE')!r}, 'w')\n")
    return Path("folder")


def change(**changes: Any) -> None:
    """Change the run's config.json as a stranger would, checksum included."""
    config = {**RunFolder.open("folder").config}
    for name, value in changes.items():
        part, _, key = name.rpartition("__")
        (config[part] if part else config)[key] = value
    write_json("folder/config.json", config, checksummed=True)


def traced() -> bool:
    found = Path("TRACE").exists()
    Path("TRACE").unlink(missing_ok=True)
    return found


FOLDERS: dict[str, tuple[dict[str, Any], str]] = {
    "network": ({"net": {"kind": NET, "config": {"dims": 1, "channels": 1}}}, NET),
    "network by a path": (
        {"net": {"kind": "folder/layers.py:Net", "config": {}}}, "folder/layers.py:Net"
    ),
    "no network": (
        {"net": {"kind": "subprocess:Popen", "config": {"args": ["touch", "TRACE"]}}},
        "subprocess:Popen",
    ),
    "readout": ({"net": {"kind": "local-rule", "config": {
        "dims": 1, "channels": 1, "readout": READ}}}, READ),
    "task": ({"task": TASK}, TASK),
    "task that is a function": ({"task": PREPARE}, PREPARE),
    "its argument": (
        {"task": PREPARE, "data": {"init_main_from_path": "folder/README.md"}}, "'data' in"
    ),
}  # fmt: skip

COMMANDS = {
    "solve": "solve prefix-sums 1011 --net folder",
    "evaluate": "evaluate folder --count 2 --max-steps 2",
    "evaluate a checkpoint": "evaluate folder/checkpoints/last --count 2 --max-steps 2",
    "analyze": "analyze folder --what zeros --count 2 --max-steps 4",
    "hub": "export folder --to hub --out exported",
    "onnx": "export folder --to onnx --out exported",
    "resume": "train --resume folder --time-limit 1s",
    "bench": "bench solve --task prefix-sums --run folder --count 1 --size 8 --rounds 1",
    "demo": "demo --net folder --out page --runtime none.tgz",
}


def call(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[Any, str]:
    registry._allowed.clear()  # a command is a process
    with pytest.raises(SystemExit) as end:
        run_command(line.split())
    return end.value.code, capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", FOLDERS)
def test_a_strangers_folder(kind: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    changes, word = FOLDERS[kind]
    change(**changes)
    code, errors = call(COMMANDS[command], capsys)
    assert not traced()
    reads_task = command in ("evaluate", "evaluate a checkpoint", "analyze", "resume")
    if "task" in changes and "data" not in changes and not reads_task:
        return  # only its network is used
    assert code in (1, 2)
    assert len(errors.strip().splitlines()) == 1
    assert word in errors
    if ":" in word and "/" not in word:
        assert "iterant: error: 'folder" in errors
        assert "would import the module" in errors
        assert "--trust-code" in errors


def test_weights_and_recipe_of_a_stranger(capsys: pytest.CaptureFixture[str]) -> None:
    net = {"kind": NET, "config": {"dims": 1, "channels": 1}}
    save_weights("folder/weights", net, {})
    with pytest.raises(UntrustedCode, match=re.escape(f"'folder/weights': the net {NET!r}")):
        iterant.load("folder/weights")
    Path("recipe.toml").write_text(f'net = "{NET}"\n')
    for line in ("train prefix-sums --recipe-file recipe.toml --out runs/x",
                 "train prefix-sums --recipe-file recipe.toml --show",
                 "train prefix-sums --recipe-file recipe.toml --out runs/x --seeds 0-1",
                 "train prefix-sums --objective folder.layers:Loss --out runs/x"):  # fmt: skip
        code, errors = call(line, capsys)
        assert code == 2
        assert "folder.layers" in errors
    change(recipe__net=NET, recipe__objective="folder.layers:Loss")
    with pytest.raises(UsageError, match="unknown objective"):
        iterant.train(resume="folder")
    change(objective="folder.layers:Loss")
    with pytest.raises(UsageError, match="give it again: objective="):
        iterant.train(resume="folder", trust=True)
    assert not traced()


def stored_sweep(**changes: Any) -> None:
    """A sweep as a stranger would write it: nothing is checked."""
    task, fields = changes.pop("task", "prefix-sums"), {**TINY, **changes.pop("fields", {})}
    plan = Plan("strange", (PlannedRun("a-s0", task, "quick", 0, fields),), **changes)
    shutil.rmtree("strange", ignore_errors=True)
    SweepFolder.prepare("strange", plan)


@pytest.mark.parametrize(
    "changes",
    [
        {"task": TASK},
        {"task": PREPARE, "data": {"init_main_from_path": "folder/README.md"}},
        {"fields": {"net": NET}},
        {"fields": {"objective": "folder.layers:Loss"}},
        {"job": "folder.layers:job"},
        {"job": PREPARE},
        {"options": {"net": NET}},
        {"options": {"trust": True, "net": NET}},
    ],
    ids=str,
)
def test_a_strangers_sweep(changes: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    stored_sweep(**changes)
    for line in ("sweep status strange", "sweep one strange a-s0 --device cpu", "runs strange"):
        code, errors = call(line, capsys)
        assert not traced()
        if "one" in line and "options" in changes:
            assert code == 0, "unknown options are ignored"
        elif "one" in line:
            assert code in (1, 2)
            assert len(errors.strip().splitlines()) == 1
    # A run of the stranger's sweep does not become trusted because another one is.
    if "job" not in changes and "options" not in changes:
        registry.allow("mine:Task")
        with pytest.raises(IterantError):
            run_one("strange", "a-s0")
    assert not traced()


def test_trusting_a_sweep_does_not_trust_the_folders_of_its_runs() -> None:
    """The plan names our task; the stranger has put a run there that names another network."""
    stored_sweep()
    Path("strange/runs").mkdir(exist_ok=True)
    change(net={"kind": NET, "config": {"dims": 1, "channels": 1}})
    shutil.copytree("folder", "strange/runs/a-s0")
    with pytest.raises(UntrustedCode, match=re.escape("'strange/runs/a-s0': the net")):
        run_one("strange", "a-s0", trust=True)
    assert not traced()


@pytest.mark.parametrize(
    "text",
    [f'task = "{TASK}"', f'task = "{PREPARE}"', f'task = "prefix-sums"\nfields.net = "{NET}"',
     f'task = "prefix-sums"\ngrid.net = ["dt-recall", "{NET}"]',
     f'task = "prefix-sums"\n[[list]]\nnet = "{NET}"', 'task = "prefix-sums"\ntrust = true',
     'task = "prefix-sums"\njob = "folder.layers:job"'],
)  # fmt: skip
def test_a_strangers_sweep_file(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("strange.toml").write_text(text)
    code, errors = call("sweep strange.toml", capsys)
    assert code == 2
    assert errors.startswith("iterant: error: 'strange.toml': ")
    assert not Path("runs").exists()
    assert not traced()


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"task": PREPARE}, "is not a task"),
        ({"task": "os:abort"}, "is not a task"),
        ({"task": PREPARE, "data": {"init_main_from_path": "folder/README.md"}}, "'data' in"),
        ({"net": {"kind": "local-rule", "config": {
            "dims": 1, "channels": 1, "readout": "os:abort"}}}, "is not a readout"),
        ({"net": {"kind": "local-rule", "config": {
            "dims": 1, "channels": 1, "readout": "http.server:test"}}}, "is not a readout"),
        ({"net": {"kind": "torch.nn:Identity", "config": {}}}, "is not a net"),
        ({"net": {"kind": "torch:compile", "config": {"model": 1}}}, "is not a net"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_trusted_is_checked_before_it_is_called(
    changes: dict[str, Any], fault: str
) -> None:
    change(**changes)
    with pytest.raises(IterantError, match=fault):
        iterant.analyze("folder", what="zeros", count=2, max_steps=4, trust=True)
    assert not traced()


def test_a_recipe_that_names_code_needs_trust() -> None:
    recipe = named_recipe("quick", "prefix-sums").changed(**TINY, net=NET)
    with pytest.raises(UntrustedCode):
        iterant.train("prefix-sums", recipe=recipe, out="run")
    assert not traced()
    iterant.train("prefix-sums", recipe=recipe, out="run", trust=True, time_limit=0.001)


def test_the_callers_own_names_are_checked_too(capsys: pytest.CaptureFixture[str]) -> None:
    for line, fault in (
        (f"sample {PREPARE} --data folder/README.md", "is not a task"),
        ("solve prefix-sums 10 --halt os:abort", "is not a rule"),
        ("train prefix-sums --net os:abort --out runs/x", "is not a net"),
    ):
        code, errors = call(line, capsys)
        assert code == 2
        assert fault in errors
    with pytest.raises(UsageError, match="data must be the path"):
        iterant.task("prefix-sums", data={"a": 1})
    assert not traced()


def test_with_trust_it_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    """The same class named in the call needs no trust; otherwise --trust-code or trust=True."""
    tiny = " ".join(f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()
                    if value is not None and name != "width")  # fmt: skip
    train = f"train {TASK} --net {NET} --out runs/mine {tiny}"
    for line, trusted in (
        (train, True),
        ("evaluate runs/mine --count 2 --max-steps 2", False),
        (f"evaluate runs/mine --count 2 --max-steps 2 --task {TASK}", False),  # and its network
        ("evaluate runs/mine --count 2 --max-steps 2 --trust-code", True),
        ("export runs/mine --to hub --out hub --trust-code", True),
        ("analyze hub --what zeros --count 2 --max-steps 4", False),
        ("analyze hub --what zeros --count 2 --max-steps 4 --trust-code", True),
        (f"solve {TASK} 1011 --net runs/mine --trust-code", True),
        ("train --resume runs/mine", False),
        ("train --resume runs/mine --trust-code", True),
        (f"train {TASK} --net dt-recall --out runs/task {tiny} --time-limit 0.001", True),
        (f"train {TASK} --resume runs/task", True),
        (f"evaluate runs/task --count 2 --max-steps 2 --task {TASK}", True),
        (f"solve {TASK} 1011 --net runs/task", True),
    ):
        code, errors = call(line, capsys)
        finished = line == "train --resume runs/mine"  # nothing is built for a finished run
        assert (code == 0) == (trusted or finished), (line, errors)
        assert trusted or finished or "--trust-code" in errors
    assert 'iterant.load("PATH/TO/THIS/FOLDER", trust=True)' in Path("hub/README.md").read_text()
    registry._allowed.clear()
    assert type(iterant.load("runs/mine", trust=True)).__name__ == "Net"
    iterant.load("runs/mine")  # the same class, which this process has imported


def test_the_command_that_continues_a_run_works(capsys: pytest.CaptureFixture[str]) -> None:
    for task, flag in ((TASK, " --trust-code"), ("prefix-sums", "")):
        out = f"runs/{task[:4]}"
        registry._allowed.clear()
        with pytest.raises(SystemExit):
            run_command(
                f"train {task} --out {out} --time-limit 0.001 --count 60 --batch-size 10 "
                "--epochs 50 --pool-slots 20".split()
            )
        line = capsys.readouterr().out.splitlines()[-1]
        assert line == f"  iterant train --resume {out}{flag}"
        assert call(line.removeprefix("  iterant ") + " --time-limit 0.001", capsys)[0] == 0


def test_our_own_sweep_and_a_folder_with_names_of_the_standard_library(tmp_path: Path) -> None:
    """Workers have the current folder last on the path; a user-defined task needs --trust-code."""
    trap = f"open({str(tmp_path / 'TRAPPED')!r}, 'w')\nraise RuntimeError('not this one')\n"
    for name in ("json", "chess", "typing", "torch", "submitit", "numpy"):
        (tmp_path / f"{name}.py").write_text(trap)
    fields = "\n".join(f"{name} = {json.dumps(value)}" for name, value in TINY.items()
                       if value is not None and name != "width")  # fmt: skip
    (tmp_path / "mine.toml").write_text(
        f'task = "{TASK}"\nseeds = [0]\n[fields]\nnet = "{NET}"\n{fields}\n'
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONSAFEPATH", None)
    command = str(Path(sys.executable).with_name("iterant"))

    def call_process(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, capture_output=True, text=True, env=environment, check=False)

    refused = call_process(command, "sweep", "mine.toml")
    assert refused.returncode == 2
    assert f"'mine.toml': the task {TASK!r} is not part of iterant" in refused.stderr
    assert not traced()
    done = call_process(command, "sweep", "mine.toml", "--trust-code", "--device", "cpu")
    log = Path(next(Path("runs/mine/work").iterdir()), "log").read_text()
    assert done.returncode == 0, done.stderr + log
    assert "1 of 1 done" in done.stdout
    assert traced()
    assert not Path("TRAPPED").exists()


def test_python_m_iterant_does_not_import_from_the_current_folder(tmp_path: Path) -> None:
    """Real processes; Python itself imports `typing` and some others before we can do anything.

    `triton` is an optional package of torch, which training asks for.
    """
    trap = f"open({str(tmp_path / 'TRAPPED')!r}, 'w')\nraise RuntimeError('not this one')\n"
    for name in ("json", "chess", "numpy", "cyclopts", "triton"):
        (tmp_path / f"{name}.py").write_text(trap)
    change(net={"kind": "local-rule", "config": {
        "dims": 1, "channels": 1, "readout": "os:abort"}})  # fmt: skip
    for line in ("-m iterant export folder --to hub", "-m iterant evaluate folder --trust-code"):
        done = subprocess.run(
            [sys.executable, *line.split()], capture_output=True, text=True, check=False
        )
        assert done.returncode in (1, 2), done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert "os:abort" in done.stderr
    tiny = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items() if value]
    words = ["-m", "iterant", "train", "prefix-sums", "--out", "runs/ours", *tiny]
    subprocess.run([sys.executable, *words], check=True)
    assert not Path("TRAPPED").exists()


def test_a_plan_made_in_python_is_the_callers() -> None:
    """Its workers may import what it names, and nothing else that the folder holds."""
    stored_sweep(task=TASK)  # by a stranger
    fields = {name: value for name, value in TINY.items() if name != "width"}
    plan = planned("mine", task="prefix-sums", fields={**fields, "net": NET})
    stored = SweepFolder.prepare("strange", plan)
    (mine,) = stored.planned.keys() - {"a-s0"}
    assert "--trust-code" in command_for(stored, mine, "auto")
    assert "--trust-code" not in command_for(stored, "a-s0", "auto")
