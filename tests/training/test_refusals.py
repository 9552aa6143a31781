"""What cannot be trained or resumed is refused in one line, and nothing is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import KINDS, begin, unbroken

import iterant
from iterant.errors import RecipeError, RunError, UsageError
from iterant.io import RunFolder
from iterant.training import train


@pytest.fixture(name="whole")
def _whole() -> dict[str, RunFolder]:
    """An unbroken run of each kind."""
    return unbroken()


class TestRefusing:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"batch": 41}, "a batch of 41 does not fit the 40 training problems"),
            ({"alpha": 2.0}, "alpha must lie between 0 and 1"),
            ({"iterations": 0}, "m; the paper has 30"),
            ({"objective": "pool", "pool_slots": 5}, "does not fit a pool of 5 slots"),
            ({"size": -3}, "size"),
            ({"net": "dt-recal"}, "did you mean 'dt-recall'"),
            ({"net": "mine:Net"}, "width, head: for networks that come with iterant"),
            ({"shard_mb": 0}, "shard size must be at least"),
            ({"time_limit": "soon"}, "a time is written like"),
            ({"device": "cuda:99"}, "GPU is there; use --device cpu"),
            ({"device": "gpu"}, "unknown device 'gpu'"),
            ({"device": "meta"}, "unknown device 'meta'"),
            ({"recipe": "papper"}, "did you mean 'paper'"),
            ({"widht": 3}, "did you mean 'width'"),
        ],
    )
    def test_what_cannot_be_done_is_refused_before_a_folder_is_made(
        self, tmp_path: Path, changes: dict[str, Any], message: str
    ) -> None:
        options = {"device": "cpu", **KINDS["progressive"], **changes}
        with pytest.raises(UsageError, match=message) as caught:
            train("prefix-sums", out=tmp_path / "run", **options)
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "run").exists()

    def test_a_network_that_is_nowhere(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="cannot be imported"):
            train("prefix-sums", net="no_such_module:Net", out=tmp_path / "run", device="cpu")
        assert not (tmp_path / "run").exists()

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
    def test_a_gpu_where_none_is(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="'cuda:0' was asked for and no GPU is there"):
            train("prefix-sums", out=tmp_path / "run", device="cuda")

    def test_out_or_resume(self, tmp_path: Path) -> None:
        for options in ({}, {"out": tmp_path / "a", "resume": tmp_path / "b"}):
            with pytest.raises(UsageError, match=r"either out= .* or resume="):
                train("prefix-sums", **options)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="which task"):
            train(out=tmp_path / "a")

    def test_a_folder_that_holds_a_run(self, whole: dict[str, RunFolder]) -> None:
        with pytest.raises(RunError, match="holds a run already"):
            begin(whole["pool"].path)
        assert whole["pool"].state == "finished"

    def test_a_run_of_another_task(self, whole: dict[str, RunFolder]) -> None:
        for task in ("mazes", iterant.task("mazes")):
            with pytest.raises(RunError, match="is a run of prefix-sums, not of mazes"):
                train(task, resume=whole["pool"].path)

    @pytest.mark.parametrize("changes", [{"rate": 1.0}, {"net": "ff"}])
    def test_a_resumed_run_keeps_its_recipe(
        self, whole: dict[str, RunFolder], changes: dict[str, Any]
    ) -> None:
        with pytest.raises(UsageError, match="a resumed run keeps its recipe"):
            train(resume=whole["pool"].path, **changes)

    def test_folders_that_hold_no_run(self, tmp_path: Path) -> None:
        with pytest.raises(RunError, match="does not exist"):
            train(resume=tmp_path / "none")
        with pytest.raises(RunError, match="holds no run"):
            train(resume=tmp_path)
        other = RunFolder.create(tmp_path / "other", {"task": "prefix-sums", "mine": 1})
        with pytest.raises(RunError, match="not of iterant train"):
            train(resume=other.path)

    def test_recipes_of_another_version(self, whole: dict[str, RunFolder], tmp_path: Path) -> None:
        config = json.loads(json.dumps(whole["pool"].config))
        del config["format"]
        config["recipe"]["future"] = 1
        run = RunFolder.create(tmp_path / "run", config)
        with pytest.raises(RecipeError, match="no field 'future'"):
            train(resume=run.path)
