"""Sets of tensors are replaced as a whole, damage is detected, and weights are read from runs."""

import hashlib
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from iterant.errors import RunError, UsageError
from iterant.io import checkpoint as module
from iterant.io.checkpoint import CONFIG, load_tensors, read_weights, save_tensors, save_weights
from iterant.io.files import write_atomic, write_json
from iterant.io.run_folder import RunFolder

TENSORS = {"net.a": torch.arange(3000.0), "net.b": torch.ones(2, 3).bfloat16()}
DOUBLED = {name: tensor * 2 for name, tensor in TENSORS.items()}


def identical(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    """Equal in names, order, shape, dtype and every bit (NaN too)."""

    def content(tensor: Tensor) -> tuple[object, ...]:
        flat = tensor.detach().contiguous().reshape(-1)
        return tensor.shape, tensor.dtype, flat.view(torch.uint8).tolist() if len(flat) else []

    return list(a) == list(b) and all(content(a[name]) == content(b[name]) for name in a)


def test_tensors_and_metadata_round_trip(tmp_path: Path) -> None:
    metadata = {"step": 7, "rates": [1e-3, 0.1 + 0.2], "random": {"state": [2**64 - 1]}}
    save_tensors(tmp_path / "last", TENSORS, metadata)
    loaded, read = load_tensors(tmp_path / "last")
    assert identical(loaded, TENSORS)
    assert read == metadata
    with pytest.raises(UsageError, match="as JSON"):
        save_tensors(tmp_path / "a", TENSORS, {"best": {"loss": object()}})
    assert len(list(tmp_path.iterdir())) == 2, "nothing of the second"


def test_save_replaces_its_own_set_and_removes_leftovers(tmp_path: Path) -> None:
    save_tensors(tmp_path / "best", TENSORS)
    save_tensors(tmp_path / "last", TENSORS)
    for leftover in ("last-0123456789ab-00001-of-00002.safetensors",
                     ".last-0123456789ab-00002-of-00002.safetensors.0123456789ab.tmp",
                     ".last.json.0123456789ab.tmp"):  # fmt: skip
        (tmp_path / leftover).touch()
    save_tensors(tmp_path / "last", DOUBLED)
    assert len(list(tmp_path.iterdir())) == 4, "an index and a file of tensors each"
    assert identical(load_tensors(tmp_path / "last")[0], DOUBLED)
    assert identical(load_tensors(tmp_path / "best")[0], TENSORS)


@pytest.mark.parametrize("moment", ["tensors", "index", "after the index"])
def test_a_failed_save_keeps_one_of_the_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    save_tensors(tmp_path / "last", TENSORS)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def write(path: Path, data: bytes) -> None:
        if moment == "tensors":
            raise RunError("no space left")
        write_atomic(path, data)

    def write_index(path: Path, value: object, *, checksummed: bool) -> None:
        if moment == "after the index":
            write_json(path, value, checksummed=checksummed)
        raise RunError("no space left")

    monkeypatch.setattr(module, "write_atomic", write)
    monkeypatch.setattr(module, "write_json", write_index)
    with pytest.raises(RunError, match="no space left"):
        save_tensors(tmp_path / "last", DOUBLED)
    if moment == "after the index":
        assert identical(load_tensors(tmp_path / "last")[0], DOUBLED)
    else:
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_concurrent_reader_sees_complete_sets(tmp_path: Path) -> None:
    def save(step: int) -> None:
        values = {name: torch.full((2000,), float(step)) for name in "ab"}
        save_tensors(tmp_path / "last", values, {"step": step})

    save(0)
    writer = threading.Thread(target=lambda: list(map(save, range(1, 60))))
    writer.start()
    reads = 0
    while writer.is_alive() or not reads:
        loaded, metadata = load_tensors(tmp_path / "last")
        assert all((tensor == metadata["step"]).all() for tensor in loaded.values())
        reads += 1
    writer.join()
    assert load_tensors(tmp_path / "last")[1] == {"step": 59}


# Content


def filled(dtype: torch.dtype, *shape: int) -> Tensor:
    """Random bits, NaN included."""
    generator = torch.Generator().manual_seed(len(shape))
    count = torch.Size(shape).numel()
    if dtype == torch.bool:
        return torch.randint(2, (count,), generator=generator).bool().reshape(shape)
    data = torch.randint(256, (count * dtype.itemsize,), generator=generator, dtype=torch.uint8)
    return data.view(dtype).reshape(shape)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int64", "bool", "complex64"])
def test_every_dtype_shape_and_layout_round_trips(tmp_path: Path, name: str) -> None:
    dtype = getattr(torch, name)
    whole = filled(dtype, 40)
    tensors = {
        "scalar": filled(dtype),
        "empty": filled(dtype, 0),
        "empty rows": filled(dtype, 3, 0, 2),
        "large": filled(dtype, 40, 33, 17),
        "transposed": filled(dtype, 50, 70).T,
        "channels-last": filled(dtype, 2, 3, 5, 7).to(memory_format=torch.channels_last),
        "expanded": filled(dtype, 1, 4).expand(3, 4),
        "whole": torch.nn.Parameter(whole, requires_grad=whole.is_floating_point()),
        "same memory": whole,
        "every other": whole[::2],
    }
    save_tensors(tmp_path / "a", tensors)
    loaded = load_tensors(tmp_path / "a")[0]
    assert identical(loaded, tensors)
    assert not loaded["whole"].requires_grad
    loaded["whole"].zero_()  # writable, and a copy
    assert loaded["same memory"].any()


def test_several_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    parts = {"net.a": torch.arange(4.0), "pool.c": torch.ones(2), "net.b": torch.ones(1)}
    files = [tmp_path / f"a-0123456789ab-{k:05}-of-00003.safetensors" for k in range(1, 4)]
    shards = [
        module.write_shard(file, {name: tensor})
        for file, (name, tensor) in zip(files, parts.items(), strict=True)
    ]
    files[1].unlink()  # not needed for the network
    index = {"format": 1, "metadata": {}, "weights": {"shards": shards, "split": {}}}
    write_json(tmp_path / "a.json", index, checksummed=True)
    del parts["pool.c"]
    assert identical(load_tensors(tmp_path / "a", "net.")[0], parts)
    save_tensors(tmp_path / "a", parts)
    assert len(list(tmp_path.iterdir())) == 2


SHARD = {"file": "a.safetensors", "bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}


@pytest.mark.parametrize("shard", [None, {}, {**SHARD, "holds": [3]}, {**SHARD, "holds": ["a"]}])
def test_invalid_content_with_its_checksum_is_refused(tmp_path: Path, shard: object) -> None:
    (tmp_path / "a.safetensors").write_bytes(b"x")
    index = {"format": 1, "weights": {"shards": [shard], "split": {}}}
    write_json(tmp_path / "a.json", index, checksummed=True)
    with pytest.raises(RunError, match="lists no tensors"):
        load_tensors(tmp_path / "a")


def test_files_outside_the_folder_are_not_read(tmp_path: Path) -> None:
    shard = module.write_shard(tmp_path / "a.safetensors", {"a": torch.ones(1)})
    (tmp_path / "below").mkdir()
    for file in ("../a.safetensors", str(tmp_path / "a.safetensors")):
        manifest = {"shards": [{**shard, "file": file}], "split": {}}
        write_json(tmp_path / "below" / "a.json", {"weights": manifest}, checksummed=True)
        with pytest.raises(RunError, match="no such file"):
            load_tensors(tmp_path / "below" / "a")


# Weights

NET: dict[str, Any] = {"kind": "deep-thinking", "config": {"width": 4, "dims": 2}}


def tensors(value: float) -> dict[str, Tensor]:
    return {"net.0.weight": torch.full((5, 10), value), "head": torch.ones(3)}


def run_with(path: Path, *names: str, **config: Any) -> RunFolder:
    """A run whose checkpoint number i holds i."""
    run = RunFolder.create(path, {"net": NET, **config})
    for value, name in enumerate(names):
        net = {f"net.{key}": tensor for key, tensor in tensors(value).items()}
        run.save(name, {**net, "optimizer.m": torch.ones(2)}, {"step": value})
    return run


def test_weights_round_trip(tmp_path: Path) -> None:
    config = {**NET, "task": "mazes", "split": "train", "shards": 3}
    for value in (1.0, 2.0):  # the second replaces the first
        save_weights(tmp_path / "w", config, tensors(value))
        read, loaded = read_weights(tmp_path / "w")
        assert read == {"format": 1, **config}
        assert identical(loaded, tensors(value))
    assert len(list((tmp_path / "w").iterdir())) == 2
    shard = next((tmp_path / "w").glob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    with pytest.raises(RunError, match="checksum"):
        read_weights(tmp_path / "w")


@pytest.mark.parametrize(
    ("names", "config", "which", "chosen"),
    [
        (["last"], {}, None, "last"),
        (["last", "averaged"], {}, None, "averaged"),
        (["last", "averaged", "best"], {}, None, "best"),
        (["last", "averaged", "best"], {"prefer": "averaged"}, None, "averaged"),
        (["last", "averaged", "best"], {}, "last", "last"),
    ],
)
def test_preferred_checkpoint_of_a_run(
    tmp_path: Path, names: list[str], config: dict[str, Any], which: str | None, chosen: str
) -> None:
    run = run_with(tmp_path / "m0", *names, **config)
    read, loaded = read_weights(run.path, which)
    assert read == {"format": 1, **NET}
    assert identical(loaded, tensors(names.index(chosen)))
    assert identical(read_weights(run.path / "checkpoints" / chosen)[1], loaded)
    with pytest.raises(RunError, match=r"no checkpoint other; .*last"):
        read_weights(run.path / "checkpoints" / "other")
    with pytest.raises(RunError, match="is a run folder"):
        save_weights(run.path, NET, {})


def test_folders_without_weights(tmp_path: Path) -> None:
    def refused(path: Path, message: str) -> None:
        with pytest.raises(RunError, match=message):
            read_weights(path)

    refused(tmp_path / "none", "does not exist")
    refused(tmp_path, r"no config\.json")
    refused(run_with(tmp_path / "m0").path, "has no checkpoint yet")
    RunFolder.create(tmp_path / "m1", {"net": NET}).save("best", {"other": torch.ones(1)})
    refused(tmp_path / "m1", "no network")
    for foreign in ('{"architectures": ["Bert"]}', "[]", '{"kind": "x", "config": {}}'):
        (tmp_path / CONFIG).write_text(foreign)
        refused(tmp_path, "neither weights of iterant nor a run")
    (tmp_path / CONFIG).write_text('{"kind": "x", "config": {}, "weights": {}}')
    refused(tmp_path, "checksum")
    save_weights(tmp_path / "w", {**NET, "format": 2}, {})
    refused(tmp_path / "w", "has format 2")
