"""Standard output that is closed or full does not end training; real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_sweeps import FIELDS, assert_same_checkpoints

from iterant.io import RunFolder
from iterant.runner import SweepFolder, status
from iterant.training import train

ITERANT = f"{sys.executable} -m iterant"
FLAGS = " ".join(
    f"--{name.replace('_', '-')} {' '.join(map(str, value)) if isinstance(value, list) else value}"
    for name, value in FIELDS.items()
)
TRAIN = f"{ITERANT} train prefix-sums {FLAGS} --device cpu --out run"

PATHS = os.pathsep.join(path for path in sys.path if path)


def shell(command: str, folder: Path) -> tuple[int, str]:
    """The exit code of the first command of a pipe, and the error stream."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": PATHS}
    done = subprocess.run(
        ["/bin/bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"], cwd=folder, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    return done.returncode, done.stderr


FAILED = "iterant: standard output failed"


@pytest.mark.parametrize(
    ("redirection", "errors"),
    [
        ("| head -1", [FAILED]),
        (">/dev/full", [FAILED]),
        (">/dev/full 2>/dev/full", []),
        ("<&- >&- 2>&-", []),
    ],
)
def test_a_run_goes_on_without_output(tmp_path: Path, redirection: str, errors: list[str]) -> None:
    code, text = shell(f"{TRAIN} {redirection}", tmp_path)
    assert (code, [line.partition(" (")[0] for line in text.splitlines()]) == (0, errors)
    run = RunFolder.open(tmp_path / "run")
    assert (run.state, run.status.step) == ("finished", 8)
    train("prefix-sums", out=tmp_path / "undisturbed", device="cpu", **FIELDS)
    assert_same_checkpoints(run.path, tmp_path / "undisturbed")


def test_a_failure_of_the_run_is_not_hidden_by_its_output(tmp_path: Path) -> None:
    code, errors = shell(f"{TRAIN} --lr 1e6 --optimizer sgd --grad-clip none >/dev/full", tmp_path)
    assert code == 1
    assert "lower lr" in errors.splitlines()[-1]
    assert RunFolder.open(tmp_path / "run").state == "failed"


def test_a_sweep_goes_on_without_output(tmp_path: Path) -> None:
    fields = "\n".join(f"{name} = {json.dumps(value)}" for name, value in FIELDS.items())
    (tmp_path / "s.toml").write_text(f'task = "prefix-sums"\nseeds = [0]\n[fields]\n{fields}\n')
    assert shell(f"{ITERANT} sweep s.toml --device cpu > /dev/full", tmp_path)[0] == 0
    folder = SweepFolder.open(tmp_path / "runs" / "s")
    assert status(folder).counts["done"] == 1
    assert (tmp_path / "results" / "s.json").exists()
