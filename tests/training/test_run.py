"""Starting a run from another one, and requests that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import KINDS, begin, unbroken

import iterant
from iterant.errors import RunError, UsageError
from iterant.io import RunFolder
from iterant.training import train


@pytest.mark.parametrize("kind", ["progressive", "pool"])
def test_start_loads_weights_and_optimizer_state(tmp_path: Path, kind: str) -> None:
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


def test_start_drops_a_pool_of_another_size(tmp_path: Path) -> None:
    source = unbroken()["pool"]
    branch = begin(tmp_path / "b", "pool", start=source.path, pool_slots=11, epochs=1)
    assert len(branch.load("last")[0]["pool.filled"]) == 11


def test_start_initialises_a_missing_ema(tmp_path: Path) -> None:
    source = begin(tmp_path / "a", average=None, epochs=1)
    branch = begin(tmp_path / "b", start=source.path, average=0.5, rate=1e-30, weight_decay=0.0,
                   epochs=1)  # fmt: skip
    theirs, _ = source.load("last")
    ours, _ = branch.load("last")
    averages = {name: held for name, held in ours.items() if name.startswith("average.")}
    assert averages
    for name, held in averages.items():
        torch.testing.assert_close(held, theirs["net." + name.removeprefix("average.")])


def test_start_refuses_another_network_or_optimizer(tmp_path: Path) -> None:
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


class TestRefusing:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"batch": 41}, "a batch of 41 does not fit the 40 training problems"),
            ({"alpha": 2.0}, "alpha must lie between 0 and 1"),
            ({"iterations": 0}, "iterations must be a whole number above 0"),
            ({"objective": "pool", "pool_slots": 5}, "does not fit a pool of 5 slots"),
            ({"size": -3}, "size"),
            ({"net": "dt-recal"}, "did you mean 'dt-recall'"),
            ({"net": "mine:Net"}, "width, head: for networks that come with iterant"),
            ({"shard_mb": 0}, "shard size must be at least"),
            ({"time_limit": "soon"}, "a time is written like"),
            ({"device": "cuda:99"}, "is not there; use --device cpu"),
            ({"device": "gpu"}, "unknown device 'gpu'"),
            ({"device": "meta"}, "unknown device 'meta'"),
            ({"recipe": "papper"}, "did you mean 'paper'"),
            ({"widht": 3}, "did you mean 'width'"),
            ({"seed": -1}, "seed must be a whole number"),
            ({"validation": 0.0, "again_below": 0.5}, "again_below must be 0"),
        ],
    )
    def test_bad_arguments_leave_no_folder(
        self, tmp_path: Path, changes: dict[str, Any], message: str
    ) -> None:
        options = {"device": "cpu", **KINDS["progressive"], **changes}
        with pytest.raises(UsageError, match=message) as caught:
            train("prefix-sums", out=tmp_path / "run", **options)
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "run").exists()

    def test_out_or_resume(self, tmp_path: Path) -> None:
        for options in ({}, {"out": tmp_path / "a", "resume": tmp_path / "b"}):
            with pytest.raises(UsageError, match=r"either out= .* or resume="):
                train("prefix-sums", **options)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="which task"):
            train(out=tmp_path / "a")

    def test_a_folder_that_holds_a_run(self) -> None:
        with pytest.raises(RunError, match="holds a run already"):
            begin(unbroken()["pool"].path)
        assert unbroken()["pool"].state == "finished"

    def test_a_run_of_another_task(self) -> None:
        for task in ("mazes", iterant.task("mazes")):
            with pytest.raises(RunError, match="is a run of prefix-sums, not of mazes"):
                train(task, resume=unbroken()["pool"].path)

    @pytest.mark.parametrize("changes", [{"rate": 1.0}, {"net": "ff"}])
    def test_a_resumed_run_keeps_its_recipe(self, changes: dict[str, Any]) -> None:
        with pytest.raises(UsageError, match="a resumed run keeps its recipe"):
            train(resume=unbroken()["pool"].path, **changes)

    def test_folders_that_hold_no_run(self, tmp_path: Path) -> None:
        with pytest.raises(RunError, match="does not exist"):
            train(resume=tmp_path / "none")
        with pytest.raises(RunError, match="holds no run"):
            train(resume=tmp_path)
        other = RunFolder.create(tmp_path / "other", {"task": "prefix-sums", "mine": 1})
        with pytest.raises(RunError, match="not of iterant train"):
            train(resume=other.path)
