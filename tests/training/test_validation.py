"""Validation, monitoring on larger problems, which weights are kept, and restarts."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import Listener, assert_equal, begin, metrics, stopped, stopping_at, uninterrupted

import iterant
from iterant.errors import TaskError
from iterant.io import RunFolder
from iterant.nets import build
from iterant.tasks.prefix_sums import PrefixSums
from iterant.tasks.protocol import Size
from iterant.training import loop as loops
from iterant.training import train
from iterant.training.loop import Figures, Loop, Validator
from iterant.training.recipe import Recipe


def set_figures(
    monkeypatch: pytest.MonkeyPatch,
    validations: Iterable[float],
    monitored: Iterable[Figures] = repeat({}),
) -> None:
    """Let validation and monitoring return these, one after the other."""
    accuracies, figures = iter(validations), iter(monitored)
    monkeypatch.setattr(Validator, "validate", lambda *_: {"validation": next(accuracies)})
    monkeypatch.setattr(Validator, "monitor", lambda *_: next(figures))


@pytest.mark.parametrize(("ema", "epoch"), [(0.9, 4), (None, 2)])
def test_of_equal_weights_the_first_are_the_best_and_of_averages_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ema: float | None, epoch: int
) -> None:
    set_figures(monkeypatch, [0.2, 0.7, 0.5, 0.7, 0.1], [{"48 at 4m": 0.99}] * 5)
    kept: dict[int, torch.Tensor] = {}
    original = Loop._keep_best

    def keep(loop: Loop, epoch: int, fresh: Figures) -> None:
        kept[epoch] = loop.trainer.evaluated_weights()["net.projection.weight"].clone()
        original(loop, epoch, fresh)

    monkeypatch.setattr(Loop, "_keep_best", keep)
    run = begin(tmp_path / "run", epochs=5, monitor_every=1, ema_decay=ema)
    assert run.status.best == {"validation": 0.7, "epoch": epoch, "step": 4 * epoch}
    assert run.load("best")[1] == run.status.best
    net: Any = iterant.load(run.path)
    assert torch.equal(net.projection.weight, kept[epoch])
    last = run.load("last")[0]
    assert ("averaged" in run.checkpoints()) == (ema is not None)
    if ema is not None:
        averaged = run.load("averaged")[0]["net.projection.weight"]
        assert torch.equal(averaged, last["average.projection.weight"])
        assert not torch.equal(averaged, last["net.projection.weight"])


def test_monitoring_is_logged_and_marked() -> None:
    records = [r for r in metrics(uninterrupted()["progressive"]) if "figures" in r]
    assert [(r["kind"], r["epoch"]) for r in records] == [
        ("validation", 1.0), ("validation", 2.0), ("monitor", 2.0),
        ("validation", 3.0), ("monitor", 3.0),
    ]  # fmt: skip
    for record in records:
        assert record["monitoring"] == (record["kind"] == "monitor")
    wanted = {f"{size} {what}" for size in (48, 64) for what in ("at 2m", "at 4m", "change")}
    # More iterations than m cost more than validation, which every epoch has.
    assert records[2]["figures"].keys() == {"validation at 2m", *wanted}
    assert records[0]["figures"].keys() == {"validation"}


def test_epochs_without_validation_show_a_sample(tmp_path: Path) -> None:
    """Of which the run records nothing."""
    listener = Listener()
    run = begin(tmp_path / "run", reporter=listener, validate_every=3, monitor_every=0)
    shown = [report.fresh for report in listener.reports if report.fresh]
    assert shown == [("validation sample",)] * 2 + [("validation",)]
    assert "validation sample" not in listener.reports[-1].figures
    assert "sample" not in (run.path / "metrics.jsonl").read_text()
    assert run.status.best.keys() == {"validation", "epoch", "step"}


def test_nan_in_monitoring_does_not_stop_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = {"48 at 2m": 0.0, "48 at 4m": 0.0, "48 change": float("nan")}
    set_figures(monkeypatch, [0.5] * 3, [figures] * 2)
    run = stopped(tmp_path / "run", monkeypatch, 9)
    assert train(resume=run.path).state == "finished"


SUMS = iterant.task("prefix-sums")
SHORT = Recipe(iterations=2, monitor_count=3)


def test_missing_sizes_are_skipped() -> None:
    class Smaller(PrefixSums):
        def check_size(self, size: Size | None) -> int:
            if size == 64:
                raise TaskError("this set holds strings of 48 bits")
            return super().check_size(size)

    figures = Validator(Smaller(), SHORT, SUMS.sample(2)).monitor(iterant.load("prefix-sums"))
    assert set(figures) == {"validation at 2m", "48 at 2m", "48 at 4m", "48 change"}


def test_networks_of_fixed_depth_are_evaluated_at_m() -> None:
    shape = {"dims": 1, "channels": 1, "width": 4, "depth": 2}
    validator, deep = Validator(SUMS, SHORT, SUMS.sample(4)), build("feed-forward", shape, seed=0)
    assert validator.validate(deep).keys() == {"validation"}
    assert validator.monitor(deep).keys() == {"48 at m", "64 at m"}


def test_without_held_out_problems_there_is_no_validation() -> None:
    validator, net = Validator(SUMS, SHORT, SUMS.sample(4)[:0]), iterant.load("prefix-sums")
    assert validator.validate(net) == {}
    assert "validation at 2m" not in validator.monitor(net)


# A run that ends below ``restart_below`` restarts with other weights.

RESTARTING: dict[str, Any] = {"restart_below": 0.9, "validate_every": 3}


@pytest.fixture(autouse=True)
def short_runs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_MIN_STEPS", 12)


def test_a_failed_run_restarts_with_other_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener()
    set_figures(monkeypatch, [0.2, 0.9])
    run = begin(tmp_path / "again", **RESTARTING, reporter=listener)
    assert run.state == "finished"
    (note,) = [text for text in listener.notes if "restarting" in text]
    assert "validation accuracy 20.00 % at the end, below 90 %" in note
    weights, about = run.load("last")
    assert (about["tries"], about["step"]) == (2, 12)
    assert run.status.best == {"validation": 0.9, "epoch": 3, "step": 12}
    first, *others = metrics(run)
    assert (first["kind"], first["attempt"], first["figures"]["validation"]) == ("restart", 2, 0.2)
    assert [record["step"] for record in others if record["kind"] == "train"] == [*range(1, 13)]
    set_figures(monkeypatch, [0.9])
    straight, metadata = begin(tmp_path / "straight", **RESTARTING).load("last")
    assert metadata["tries"] == 1
    assert any(not torch.equal(weights[name], straight[name]) for name in straight)


def test_a_branch_is_not_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = begin(tmp_path / "source")
    set_figures(monkeypatch, [0.2])
    branch = begin(tmp_path / "branch", **RESTARTING, init_from=source.path)
    assert branch.load("last")[1]["tries"] == 1, "other weights are not those it begins with"
    assert branch.state == "finished"


@pytest.mark.parametrize("stop", [2, 11, None])
def test_resume_in_the_second_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int | None
) -> None:
    """After a stop, or an end during the restart itself, between its checkpoint and its metrics."""
    set_figures(monkeypatch, [0.2, 0.95])
    whole = begin(tmp_path / "whole", "best", **RESTARTING)
    set_figures(monkeypatch, [0.2, 0.95])
    original = Loop._restart

    def then_stop(loop: Loop, fresh: dict[str, float]) -> None:
        original(loop, fresh)
        stopping_at(monkeypatch, stop)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_restart", then_stop)
        if stop is None:
            patch.setattr("iterant.io.RunFolder.rewind_metrics", lambda *_: 1 / 0)
        with nullcontext() if stop else pytest.raises(ZeroDivisionError):
            begin(tmp_path / "broken", "best", **RESTARTING)
    stopping_at(monkeypatch, None)
    broken = RunFolder.open(tmp_path / "broken")
    assert (broken.state, broken.status.step) == ("stopped", stop) if stop else ("failed", 0)
    resumed = train(resume=broken.path, device="cpu")
    if stop:
        assert_equal(whole, resumed)
    ours, theirs = resumed.load("last"), whole.load("last")
    assert ours[1] == theirs[1]
    assert all(torch.equal(ours[0][name], value) for name, value in theirs[0].items())


@pytest.mark.parametrize(
    ("accuracies", "least", "tries", "best"),
    [((0.2,), 13, 1, 0.2), ((0.1, 0.3, 0.2), 12, 3, 0.3), ((0.9,), 12, 1, 0.9)],
    ids=["a short run is not restarted", "the best of three is kept", "good enough"],
)
def test_the_number_of_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accuracies: tuple[float, ...], least: int,
    tries: int, best: float,
) -> None:  # fmt: skip
    monkeypatch.setattr(loops, "_MIN_STEPS", least)
    set_figures(monkeypatch, accuracies)
    run = begin(tmp_path / "run", **RESTARTING)
    assert (run.state, run.load("last")[1]["tries"]) == ("finished", tries)
    assert run.status.best["validation"] == best
