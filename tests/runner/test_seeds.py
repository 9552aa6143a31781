"""Several seeds of one recipe: each equals the same seed trained alone."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_sweeps import FIELDS, assert_same_checkpoints

from iterant.errors import RunError, UsageError
from iterant.io import RunFolder
from iterant.runner import SweepFolder, SweepStatus, parse_seeds, status, train_seeds
from iterant.training import train


def several(out: Path, seeds: list[int], **changes: Any) -> SweepStatus:
    return train_seeds("prefix-sums", seeds=seeds, out=out, device="cpu", **{**FIELDS, **changes})


@given(st.sets(st.integers(0, 40), min_size=1))
def test_parse_seeds(seeds: set[int]) -> None:
    wanted = sorted(seeds)
    assert parse_seeds(",".join(map(str, wanted))) == wanted
    low, high = wanted[0], wanted[-1]
    assert parse_seeds(f"99, {low}-{high}") == [99, *range(low, high + 1)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "written like 0-7") for text in ("", ",", "-1", "1--2", "one", "²", "3-1")),
        ("0-2,2", "different seeds"),
        ("0-1000", "at most 1000"),
        ("18446744073709551616", r"from 0 to 2\*\*64 - 1"),
    ],
)
def test_parse_seeds_refuses(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_seeds(text)


def test_seeds_equal_those_trained_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 0 was stopped, the checkpoint of seed 1 is corrupt, seed 2 was not started."""

    def alone(name: str, seed: int) -> RunFolder:
        return train("prefix-sums", seed=seed, out=tmp_path / name, device="cpu", **FIELDS)

    whole = {seed: alone(f"alone-{seed}", seed) for seed in (0, 2)}
    with monkeypatch.context() as patched:
        over = itertools.cycle([*[False] * 5, True])
        patched.setattr("iterant.training.interrupts.Clock.over", property(lambda _: next(over)))
        stopped = [alone(f"r-s{seed}", seed) for seed in (0, 1)]
    assert [run.status.step for run in stopped] == [5, 5]
    for path in stopped[1].path.glob("checkpoints/last-*"):
        path.write_bytes(path.read_bytes()[:-1])
    lines: list[str] = []
    seen = train_seeds(
        seeds=[2, 1, 0], resume=tmp_path / "r", device="cpu", at_once=2, say=lines.append
    )
    states = {run.name: run.state for run in seen.runs}
    assert states == {"r-s2": "done", "r-s1": "failed", "r-s0": "done"}
    for seed, run in whole.items():
        assert_same_checkpoints(tmp_path / f"r-s{seed}", run.path)
    assert status(SweepFolder.open(tmp_path / "r")) == seen
    assert any(line.startswith("r-s1: failed: ") for line in lines)


def test_a_time_limit_holds_for_all_seeds_together(tmp_path: Path) -> None:
    assert several(tmp_path / "r", [0, 1], time_limit=1e-3).counts["left"] == 2
    assert not list(tmp_path.glob("r-s*"))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"seeds": []}, "different seeds"),
        ({"seeds": [-1]}, "seed"),
        ({"seeds": [2, 2]}, "different seeds"),
        ({"batch": 4000}, "batch of 4000"),
        ({"out": None}, "either out"),
        ({"resume": "r"}, "either out"),
        ({"out": None, "resume": "nowhere"}, "no run nowhere-s0"),
        ({"out": None, "resume": "taken"}, "keep their recipe"),
        ({"out": "taken", "seeds": [0, 2]}, "taken-s2 for seed 2 .*--resume taken --seeds 0-2"),
    ],
    ids=str,
)
def test_refused_before_any_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken-s2").mkdir()
    (tmp_path / "taken-s2" / "file").touch()
    changes = {} if settings.get("resume") == "nowhere" else FIELDS
    with pytest.raises((UsageError, RunError), match=why):
        train_seeds("prefix-sums", **{"seeds": [0], "out": "r", **changes, **settings})
    assert [path.name for path in tmp_path.iterdir()] == ["taken-s2"]


def test_several_processes_refuse_several_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="give --seed"):
        several(tmp_path / "r", [0])
