"""A branch begins with another run's weights, moments, average and pool, and counts from 0."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from small_runs import begin, unbroken

from iterant.errors import RunError, UsageError
from iterant.training.run import train


@pytest.mark.parametrize("kind", ["progressive", "pool"])
def test_a_branch_that_learns_nothing_is_the_run_it_began_with(tmp_path: Path, kind: str) -> None:
    source = unbroken()[kind]
    branch = begin(tmp_path / "b", kind, start=source.path, rate=1e-30, weight_decay=0.0, epochs=1)
    theirs, _ = source.load("last")
    ours, about = branch.load("last")
    assert about["step"] == 4  # of its own
    assert branch.config["start"] == str(source.path.resolve())
    for name, held in theirs.items():
        if name.startswith("net."):
            torch.testing.assert_close(ours[name], held)
        if name.endswith(".step"):
            assert ours[name] == held + 4  # the moments are older than the branch


def test_a_pool_of_another_size_begins_anew(tmp_path: Path) -> None:
    source = unbroken()["pool"]
    branch = begin(tmp_path / "b", "pool", start=source.path, pool_slots=11, epochs=1)
    ours, _ = branch.load("last")
    assert len(ours["pool.filled"]) == 11


def test_an_average_may_be_new(tmp_path: Path) -> None:
    source = begin(tmp_path / "a", average=None, epochs=1)
    branch = begin(tmp_path / "b", start=source.path, average=0.5, rate=1e-30, weight_decay=0.0,
                   epochs=1)  # fmt: skip
    theirs, _ = source.load("last")
    ours, _ = branch.load("last")
    averages = {name: held for name, held in ours.items() if name.startswith("average.")}
    assert averages
    for name, held in averages.items():
        torch.testing.assert_close(held, theirs["net." + name.removeprefix("average.")])


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    source = unbroken()["progressive"]
    with pytest.raises(
        RunError, match=r"does not fit this recipe \(size mismatch for .*; a branch"
    ):
        begin(tmp_path / "b", start=source.path, width=6)
    with pytest.raises(RunError, match="trained by adam, and its moments mean nothing to muon"):
        begin(tmp_path / "b", start=source.path, optimizer="muon")
    with pytest.raises(RunError, match="does not exist"):
        begin(tmp_path / "b", start=tmp_path / "nowhere")
    with pytest.raises(UsageError, match="start cannot change"):
        train(resume=source.path, start=source.path)
    assert not (tmp_path / "b").exists()
