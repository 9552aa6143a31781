"""Weights are read from their folders and from runs by the same call."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from iterant.errors import RunError, UsageError
from iterant.io.run_folder import CONFIG, RunFolder
from iterant.io.weights import read_weights, save_weights

NET: dict[str, Any] = {"kind": "deep-thinking", "config": {"width": 4, "dims": 2}}
EXTRA: dict[str, Any] = {**NET, "task": "mazes", "split": "train", "shards": 3}


def tensors(value: float) -> dict[str, torch.Tensor]:
    return {"net.0.weight": torch.full((50, 100), value), "head": torch.ones(3)}


def run_with(path: Path, *names: str, **config: Any) -> RunFolder:
    """A run whose checkpoint number i holds i."""
    run = RunFolder.create(path, {"net": NET, **config})
    for value, name in enumerate(names):
        own = {f"net.{key}": tensor for key, tensor in tensors(value).items()}
        run.save(name, {**own, "optimizer.m": torch.ones(2)}, {"step": value})
    return run


@pytest.mark.parametrize("shard_mb", [None, 0.01])
def test_round_trip(tmp_path: Path, shard_mb: float | None) -> None:
    for value in (1.0, 2.0):  # the second replaces the first
        save_weights(tmp_path / "w", EXTRA, tensors(value), shard_mb)
        config, loaded = read_weights(tmp_path / "w")
        assert config == {"format": 1, **EXTRA}
        assert loaded.keys() == tensors(value).keys()
        assert all(torch.equal(loaded[name], tensors(value)[name]) for name in loaded)
    files = json.loads((tmp_path / "w" / CONFIG).read_text())["weights"]["shards"]
    assert len(list((tmp_path / "w").iterdir())) == 1 + len(files)


def test_preferred_checkpoint_of_a_run(tmp_path: Path) -> None:
    def chosen(*names: str, which: str | None = None, **config: Any) -> str:
        path = tmp_path / "-".join([*names, *config, str(which)])
        run = run_with(path, *names, **config)
        found, loaded = read_weights(run.path, which)
        assert found == {"format": 1, **NET}
        assert loaded.keys() == tensors(0).keys()
        return names[int(loaded["net.0.weight"][0, 0])]

    assert chosen("last") == "last"
    assert chosen("last", "averaged") == "averaged"
    assert chosen("last", "averaged", "best") == "best"
    assert chosen("last", "averaged", "best", prefer="averaged") == "averaged"
    assert chosen("last", "averaged", "best", which="last") == "last"


def test_path_to_a_checkpoint(tmp_path: Path) -> None:
    run = run_with(tmp_path / "m0", "last", "best")
    assert read_weights(run.path / "checkpoints" / "last")[1]["net.0.weight"][0, 0] == 0
    with pytest.raises(RunError, match="no checkpoint averaged; it has: best, last"):
        read_weights(run.path / "checkpoints" / "averaged")


def test_folders_without_weights(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="does not exist"):
        read_weights(tmp_path / "none")
    with pytest.raises(RunError, match=r"config\.json is missing"):
        read_weights(tmp_path)
    with pytest.raises(RunError, match="until its first"):
        read_weights(run_with(tmp_path / "m0").path)
    RunFolder.create(tmp_path / "m1", {"net": NET}).save("best", {"other": torch.ones(1)})
    with pytest.raises(RunError, match="no network"):
        read_weights(tmp_path / "m1")
    for foreign in ('{"architectures": ["Bert"]}', "[]", '{"kind": "x", "config": {}}'):
        (tmp_path / CONFIG).write_text(foreign)
        with pytest.raises(RunError, match="neither weights of iterant nor a run"):
            read_weights(tmp_path)
    (tmp_path / CONFIG).write_text('{"kind": "x", "config": {}, "weights": {}}')
    with pytest.raises(RunError, match="no checksum"):
        read_weights(tmp_path)


def test_flipped_bits_are_detected(tmp_path: Path) -> None:
    save_weights(tmp_path, NET, {"a": torch.arange(20.0)})
    random = np.random.default_rng(0)
    for path in list(tmp_path.iterdir()):
        data = path.read_bytes()
        for position in random.integers(len(data) * 8, size=50):
            damaged = bytearray(data)
            damaged[position // 8] ^= 1 << (position % 8)
            path.write_bytes(damaged)
            with pytest.raises(RunError) as caught:
                read_weights(tmp_path)
            assert "\n" not in str(caught.value)
        path.write_bytes(data)
    assert torch.equal(read_weights(tmp_path)[1]["a"], torch.arange(20.0))


@pytest.mark.parametrize(
    "config",
    [{}, {"kind": "x"}, {"kind": 1, "config": {}}, NET | {"weights": 1}, NET | {"format": 2}],
)
def test_invalid_configurations(tmp_path: Path, config: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        save_weights(tmp_path / "w", config, {})
    assert not (tmp_path / "w").exists()


def test_weights_do_not_overwrite_a_run(tmp_path: Path) -> None:
    run = run_with(tmp_path / "m0", "last")
    with pytest.raises(RunError, match="is a run folder"):
        save_weights(run.path, NET, {})
    assert RunFolder.open(run.path).has("last")
