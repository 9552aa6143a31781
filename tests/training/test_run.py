"""Starting a run from another one, and requests that are refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from small_runs import KINDS, Listener, assert_equal, begin, stopped, uninterrupted

import iterant
from iterant.errors import RunError, UsageError
from iterant.io import RunFolder, read_json, write_json
from iterant.tasks.prefix_sums import PrefixSums
from iterant.training import train
from iterant.training.recipe import Recipe
from iterant.training.run import recipe_for, threads_of


def test_a_run_records_the_problems_of_its_task() -> None:
    loops = iterant.task("mazes", problems="p=0.1")
    for recipe in ("best", Recipe(problems="start=any")):  # both have another kind
        assert recipe_for(loops, recipe).problems == "p=0.1"
    assert recipe_for(loops, "best", problems="walls=0.3").problems == "walls=0.3"
    assert recipe_for(iterant.task("mazes"), "best").problems == "start=any"


@pytest.mark.parametrize("kind", ["progressive", "pool"])
def test_start_loads_weights_and_optimizer_state(tmp_path: Path, kind: str) -> None:
    source = uninterrupted()[kind]
    branch = begin(
        tmp_path / "b", kind, init_from=source.path, lr=1e-30, weight_decay=0.0, epochs=1
    )
    theirs, before = source.load("last")
    ours, about = branch.load("last")
    assert about["step"] == 4  # of its own
    assert about["first_loss"] >= before["first_loss"], "not that of weights that are trained"
    assert branch.config["init_from"] == str(source.path.resolve())
    for name, value in theirs.items():
        if name.startswith("net."):
            torch.testing.assert_close(ours[name], value)
        if name.endswith(".step"):
            assert ours[name] == value + 4  # the moments are older than the branch


def test_a_branch_without_a_checkpoint_begins_with_its_source_again(tmp_path: Path) -> None:
    source = uninterrupted()["progressive"].path
    whole = begin(tmp_path / "whole", init_from=source, epochs=1)
    config = {name: value for name, value in whole.config.items() if name != "format"}
    killed = RunFolder.create(tmp_path / "killed", config)
    assert_equal(train(resume=killed.path, device="cpu"), whole)


def test_start_drops_a_pool_of_another_size_and_begins_what_is_missing(tmp_path: Path) -> None:
    pool = uninterrupted()["pool"].path
    branch = begin(tmp_path / "p", "pool", init_from=pool, pool_slots=11, epochs=1)
    assert len(branch.load("last")[0]["pool.filled"]) == 11
    branch = begin(tmp_path / "u", "pool", init_from=pool, pool_until_solved=True, epochs=1)
    assert "pool.solved" in branch.load("last")[0], "the source did not keep it"
    source = begin(tmp_path / "a", ema_decay=None, epochs=1)
    branch = begin(tmp_path / "h", init_from=source.path, precision="fp16", epochs=1)
    assert branch.load("last")[0]["scaling.scale"] > 0
    branch = begin(tmp_path / "b", start=source.path, ema_decay=0.5, lr=1e-30, weight_decay=0.0,
                   epochs=1)  # fmt: skip
    theirs, ours = source.load("last")[0], branch.load("last")[0]
    for name, weight in theirs.items():
        if name.startswith("net."):
            torch.testing.assert_close(ours["average." + name.removeprefix("net.")], weight)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"width": 6}, r"does not fit this recipe \(size mismatch for .*; a branch"),
     ({"optimizer": "muon"}, "trained by adam, whose state muon cannot use"),
     ({"start": "nowhere"}, "does not exist"),
     ({"start": "empty"}, "has no checkpoint yet; train it first")],
)  # fmt: skip
def test_start_refuses_another_network_or_optimizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    source = uninterrupted()["progressive"]
    RunFolder.create("empty", source.config)
    with pytest.raises(RunError, match=message):
        begin(tmp_path / "b", **{"init_from": source.path, **changes})
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 41}, "a batch of 41 does not fit the 40 training problems"),
        ({"alpha": 2.0}, "alpha must be a number from 0 to 1"),
        ({"objective": "pool", "pool_slots": 5}, "does not fit a pool of 5 slots"),
        ({"size": -3}, "size"),
        ({"net": "dt-recal"}, "did you mean 'dt-recall'"),
        ({"net": "resnet"}, "or give module:Class"),
        ({"net": "small_networks:Ticking"}, "width, head: for networks that come with iterant"),
        ({"time_limit": "soon"}, "a time is written like"),
        ({"device": "meta"}, "unknown device 'meta'"),
        ({"recipe": "papper"}, "did you mean 'paper'"),
        ({"widht": 3}, "did you mean 'width'"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"validation": 0.0, "restart_below": 0.5}, "restart_below must be 0"),
        ({"task": None}, "which task"),
        ({"resume": "somewhere"}, r"either out= .* or resume="),
    ],
)
def test_bad_arguments_leave_no_folder(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    options = {"task": "prefix-sums", "out": tmp_path / "run", "device": "cpu",
               **KINDS["progressive"], **changes}  # fmt: skip
    with pytest.raises(UsageError, match=message) as caught:
        train(**options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("task", "changes", "error", "message"),
    [("mazes", {}, RunError, "is a run of prefix-sums, not of mazes"),
     (iterant.task("mazes"), {}, RunError, "is a run of prefix-sums, not of mazes"),
     (PrefixSums, {}, UsageError, r"got the class PrefixSums; give PrefixSums\(\)"),
     (None, {"lr": 1.0}, UsageError, "keeps its recipe and seed; leave out lr"),
     (None, {"net": "ff"}, UsageError, "keeps its recipe and seed; leave out net"),
     (None, {"start": "a"}, UsageError, "keeps its recipe and seed; leave out init_from"),
     (None, {"recipe": "quick", "seed": 0}, UsageError, "leave out recipe, seed")],
)  # fmt: skip
def test_a_resumed_run_keeps_its_task_and_recipe(
    task: Any, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        train(task, resume=uninterrupted()["pool"].path, **changes)


def test_a_run_resumes_with_the_task_as_an_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped(tmp_path / "run", monkeypatch, 6)
    resumed = train(PrefixSums(), resume=run.path, device="cpu")
    assert_equal(resumed, uninterrupted()["progressive"])


def test_folders_that_hold_a_run_or_none(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds a run already"):
        begin(uninterrupted()["pool"].path)
    RunFolder.create(tmp_path / "other", {"task": "prefix-sums", "mine": 1})
    messages = {"none": "does not exist", ".": "holds no run", "other": "not of iterant train"}
    for folder, message in messages.items():
        with pytest.raises(RunError, match=message):
            train(resume=tmp_path / folder)


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Two threads unless a test changes that; a network whose weights depend on their number."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("iterant.training.run._SMALL_NETWORK", 0)  # one thread for smaller ones
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield {"width": 16, "head": (8,), "size": 16, "count": 100, "batch_size": 20, "epochs": 2}
    torch.set_num_threads(before)


def test_a_run_resumes_with_its_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two_threads: dict[str, Any]
) -> None:
    whole = begin(tmp_path / "whole", **two_threads)
    broken = stopped(tmp_path / "broken", monkeypatch, 3, **two_threads)
    shutil.copytree(broken.path, tmp_path / "copy")
    torch.set_num_threads(1)
    listener = Listener()
    assert_equal(train(resume=broken.path, device="cpu", reporter=listener), whole)
    assert "continued with 2 threads, as it was started (here: 1)" in listener.notes
    assert torch.get_num_threads() == 1  # that of the caller
    # A number that the user chose is kept, and the difference is noted.
    monkeypatch.setenv("MKL_NUM_THREADS", "1")
    listener = Listener()
    train(resume=tmp_path / "copy", device="cpu", reporter=listener)
    (note,) = [note for note in listener.notes if "thread" in note]
    assert note.startswith("this run was started with 2 threads")
    assert note.endswith("sets 1: it continues, but may not equal an uninterrupted run bit for bit")


@pytest.mark.parametrize("hardware", [{}, None, {"threads": None}, {"threads": 10**9}])
def test_runs_without_a_number_of_threads(hardware: Any) -> None:
    """As those of earlier versions, and of a file that was made up."""
    run: Any = SimpleNamespace(environment={"hardware": hardware})
    assert threads_of(run) is None


def test_a_network_larger_than_its_checkpoint_is_not_built(tmp_path: Path) -> None:
    run = begin(tmp_path / "run", epochs=1)
    run.set_status("stopped")
    config = read_json(run.path / "config.json", checksummed=True)
    config["net"]["config"]["width"] = 4096
    write_json(run.path / "config.json", config, checksummed=True)
    with pytest.raises(RunError, match=r"does not fit the network in its config\.json"):
        train(resume=run.path)
