"""Several seeds: each equals the same seed trained alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_runs import KINDS, Listener, assert_equal, begin, stopping_at
from torch import Tensor

from iterant.errors import RunError, UsageError
from iterant.io import RunFolder
from iterant.rng import StepRng
from iterant.training import train_seeds
from iterant.training.multi_seed import parse_seeds, seed_folder
from iterant.training.trainer import Trainer


def several(out: Path, seeds: list[int], kind: str = "pool", **changes: Any) -> list[RunFolder]:
    given = {**KINDS[kind], **changes}
    return train_seeds("prefix-sums", seeds=seeds, out=out, device="cpu", **given)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], RunFolder]:
    """A seed trained alone, made once."""
    folder = tmp_path_factory.mktemp("alone")
    made: dict[tuple[str, int], RunFolder] = {}

    def run(kind: str, seed: int) -> RunFolder:
        if (kind, seed) not in made:
            made[kind, seed] = begin(folder / f"{kind}-{seed}", kind, seed=seed)
        return made[kind, seed]

    return run


def states(runs: list[RunFolder]) -> dict[str, str]:
    return {run.path.name: run.state for run in runs}


@given(st.sets(st.integers(0, 40), min_size=1))
def test_parse_seeds(seeds: set[int]) -> None:
    wanted = sorted(seeds)
    assert parse_seeds(",".join(map(str, wanted))) == wanted
    whole = range(wanted[0], wanted[-1] + 1)
    assert parse_seeds(f"{wanted[0]}-{wanted[-1]}") == list(whole)


def test_ranges_and_numbers_mix() -> None:
    assert parse_seeds("4, 0-2") == [4, 0, 1, 2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3-1", "run backwards; write 1-3"),
        ("", "written like 0-7"),
        (",", "written like 0-7"),
        ("-1", "written like 0-7"),
        ("1--2", "written like 0-7"),
        ("one", "written like 0-7"),
        ("²", "written like 0-7"),
        ("1,1", "seed 1 was given twice"),
        ("0-2,2", "seed 2 was given twice"),
        ("0-9999999", "more than 1000"),
        ("18446744073709551616", "from 0 to 2**64 - 1"),
    ],
)
def test_parse_seeds_refuses(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("*", r"\*")) as caught:
        parse_seeds(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seeds", [[], [-1], [2, 2]])
def test_bad_seeds_in_python(tmp_path: Path, seeds: list[int]) -> None:
    with pytest.raises(UsageError):
        several(tmp_path / "runs", seeds)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("kind", "at_once"), [("progressive", 2), ("pool", 1), ("pool", 3)])
def test_a_seed_among_others_equals_the_seed_alone(
    tmp_path: Path, alone: Callable[[str, int], RunFolder], kind: str, at_once: int
) -> None:
    runs = several(tmp_path / "runs", [2, 0, 1], kind, at_once=at_once)
    assert [run.path.name for run in runs] == ["runs-s2", "runs-s0", "runs-s1"]
    for run, seed in zip(runs, (2, 0, 1), strict=True):
        assert run.config["seed"] == seed
        assert_equal(run, alone(kind, seed))


def failing_seed(monkeypatch: pytest.MonkeyPatch, seed: int, at: int) -> None:
    """Let one seed's loss become NaN at an update."""
    original = Trainer.update

    def update(
        self: Trainer, inputs: Tensor, targets: Tensor, rng: StepRng, factor: float
    ) -> Tensor:
        loss = original(self, inputs, targets, rng, factor)
        return loss * float("nan") if rng == StepRng(seed, at) else loss

    monkeypatch.setattr(Trainer, "update", update)


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_failing_seed_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    failing_seed(monkeypatch, 1, at=5)
    listeners = {seed: Listener() for seed in (0, 1, 2)}
    runs = several(tmp_path / "r", [0, 1, 2], at_once=at_once, reporter=listeners.__getitem__)
    assert states(runs) == {"r-s0": "finished", "r-s1": "failed", "r-s2": "finished"}
    assert "nan" in str(runs[1].status.reason)
    assert [listener.ends[0].partition(":")[0] for listener in listeners.values()] == [
        "finished",
        "failed",
        "finished",
    ]


@pytest.mark.parametrize("at_once", [1, 3])
def test_resume_continues_stopped_seeds_and_starts_missing_ones(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    alone: Callable[[str, int], RunFolder],
    at_once: int,
) -> None:
    stopping_at(monkeypatch, 6)
    begun = several(tmp_path / "r", [0, 1, 2], at_once=at_once)
    assert len(begun) == at_once
    assert set(states(begun).values()) == {"stopped"}
    stopping_at(monkeypatch, None)
    ended = train_seeds(seeds=[0, 1, 2], resume=tmp_path / "r", device="cpu", at_once=at_once)
    assert set(states(ended).values()) == {"finished"}
    for run, seed in zip(ended, (0, 1, 2), strict=True):
        assert_equal(run, alone("pool", seed))


def test_a_time_limit_holds_for_all_seeds_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iterant.training.interrupts.Clock.over", property(lambda _: True))
    assert several(tmp_path / "r", [0, 1], time_limit="9m") == []
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_refused_before_any_run(tmp_path: Path) -> None:
    taken = seed_folder(tmp_path / "r", 2)
    taken.mkdir()
    (taken / "file").touch()
    with pytest.raises(RunError, match="r-s2 for seed 2 is there already") as caught:
        several(tmp_path / "r", [0, 1, 2])
    assert "--resume" in str(caught.value)
    assert list(tmp_path.iterdir()) == [taken]


def test_a_bad_recipe_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="batch of 4000"):
        several(tmp_path / "r", [0, 1], "progressive", batch=4000)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "either out"),
        ({"out": "a", "resume": "b"}, "either out"),
        ({"resume": "nowhere"}, "no run nowhere-s0"),
        ({"resume": "nowhere", "width": 3}, "keep their recipe"),
    ],
    ids=str,
)
def test_bad_arguments_of_train_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((UsageError, RunError), match=said):
        train_seeds("prefix-sums", seeds=[0], device="cpu", **given)


def test_several_processes_refuse_several_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="give --seed"):
        several(tmp_path / "r", [0])
