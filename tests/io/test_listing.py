"""Every run under a folder is listed, and a broken one says why."""

from pathlib import Path

import pytest
import torch

from iterant.errors import RunError
from iterant.io.run_folder import CONFIG, STATUS, RunFolder, list_runs
from iterant.io.weights import save_weights


def test_runs_of_all_kinds_are_listed(tmp_path: Path) -> None:
    done = RunFolder.create(
        tmp_path / "a", {"task": "mazes", "recipe": {"name": "best", "seed": 4}}
    )
    done.set_status("finished", step=10, steps=10, best={"accuracy": 0.9})
    lost = RunFolder.create(
        tmp_path / "sweep" / "b", {"task": {"name": "chess"}, "recipe": "paper", "seed": 0}
    )
    lost.set_status("running", step=3, steps=10)
    broken = RunFolder.create(tmp_path / "c", {})
    (broken.path / STATUS).write_text("{")
    half = tmp_path / "d"
    (half / "checkpoints").mkdir(parents=True)
    save_weights(tmp_path / "weights", {"kind": "x", "config": {}}, {"a": torch.ones(1)})
    (tmp_path / "notes.txt").touch()
    (tmp_path / ".hidden" / "checkpoints").mkdir(parents=True)

    a, c, d, b = list_runs(tmp_path)
    assert (a.path, a.task, a.recipe, a.seed, a.state) == (
        done.path,
        "mazes",
        "best",
        4,
        "finished",
    )
    assert (a.step, a.steps, a.best) == (10, 10, {"accuracy": 0.9})
    assert a.age_seconds is not None
    assert -1 <= a.age_seconds < 3600
    assert (b.path, b.task, b.recipe, b.seed, b.state) == (
        lost.path,
        "chess",
        "paper",
        0,
        "interrupted",
    )
    assert c.state == d.state == "unreadable"
    assert STATUS in str(c.reason)
    assert CONFIG in str(d.reason)
    assert "\n" not in str(c.reason)
    with lost.lock():
        assert list_runs(lost.path)[0].state == "running"


def test_no_folder_is_an_error_and_an_empty_one_a_short_list(tmp_path: Path) -> None:
    assert list_runs(tmp_path) == []
    with pytest.raises(RunError, match="iterant train"):
        list_runs(tmp_path / "runs")


def test_links_in_a_circle_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "up").symlink_to(tmp_path)
    RunFolder.create(tmp_path / "sweep" / "a", {})
    assert len(list_runs(tmp_path)) == 1
