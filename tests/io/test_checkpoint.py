"""Checkpoints are replaced as a whole, and damage is always detected."""

import hashlib
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor

from iterant.errors import RunError, UsageError
from iterant.io import checkpoint as module
from iterant.io.checkpoint import load_tensors, save_tensors
from iterant.io.files import write_atomic, write_json

TENSORS = {"net.a": torch.arange(3000.0), "net.b": torch.ones(2, 3).bfloat16()}


def same(loaded: dict[str, torch.Tensor], factor: int = 1) -> bool:
    return loaded.keys() == TENSORS.keys() and all(
        torch.equal(loaded[name], TENSORS[name] * factor) for name in TENSORS
    )


def one_line(caught: pytest.ExceptionInfo[RunError], path: Path) -> None:
    assert "\n" not in str(caught.value)
    assert path.name in str(caught.value)


def test_tensors_and_metadata_round_trip(tmp_path: Path) -> None:
    metadata = {"step": 7, "rates": [1e-3, 0.1 + 0.2], "random": {"state": [2**64 - 1]}}
    files = save_tensors(tmp_path / "last", TENSORS, metadata, shard_mb=0.01)
    assert sorted(files) == sorted(tmp_path.iterdir())
    assert files[0] == tmp_path / "last.json"
    loaded, found = load_tensors(tmp_path / "last")
    assert same(loaded)
    assert found == metadata


def test_save_replaces_only_its_own_set(tmp_path: Path) -> None:
    save_tensors(tmp_path / "best", TENSORS)
    before = set(tmp_path.iterdir())
    save_tensors(tmp_path / "last", TENSORS, shard_mb=0.01)
    files = save_tensors(tmp_path / "last", {n: t * 2 for n, t in TENSORS.items()})
    assert set(tmp_path.iterdir()) == before | set(files)
    assert same(load_tensors(tmp_path / "last")[0], 2)
    assert same(load_tensors(tmp_path / "best")[0])


def test_files_are_safetensors(tmp_path: Path) -> None:
    _, shard = save_tensors(tmp_path / "last", TENSORS)
    assert same(safetensors.torch.load_file(shard))


def test_next_save_removes_leftovers(tmp_path: Path) -> None:
    _, shard = save_tensors(tmp_path / "last", TENSORS)
    shard.with_name("last-0123456789ab-00001-of-00002.safetensors").touch()
    shard.with_name(".last-0123456789ab-00002-of-00002.safetensors.0123456789ab.tmp").touch()
    files = save_tensors(tmp_path / "last", TENSORS)
    assert set(tmp_path.iterdir()) == set(files)


@pytest.mark.parametrize("moment", ["first shard", "last shard", "index"])
def test_failed_save_keeps_the_old_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    save_tensors(tmp_path / "last", TENSORS, {"step": 1}, shard_mb=0.01)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*_: object, **__: object) -> None:
        raise RunError("the disk is full; free some space")

    new = {name: tensor * 2 for name, tensor in TENSORS.items()}
    if moment == "index":
        monkeypatch.setattr(module, "write_json", fail)
    else:
        good = 0 if moment == "first shard" else len(before) - 2
        calls = iter(range(100))
        monkeypatch.setattr(
            module,
            "write_atomic",
            lambda p, d: write_atomic(p, d) if next(calls) < good else fail(),
        )
    with pytest.raises(RunError, match="disk is full"):
        save_tensors(tmp_path / "last", new, {"step": 2}, shard_mb=0.01)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_failed_first_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RunError("the disk is full; free some space")

    monkeypatch.setattr(module, "write_json", fail)
    with pytest.raises(RunError, match="disk is full"):
        save_tensors(tmp_path / "last", TENSORS, shard_mb=0.01)
    assert list(tmp_path.iterdir()) == []


def test_interrupt_after_the_index_keeps_the_new_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_tensors(tmp_path / "last", TENSORS)

    def late(path: Path, value: object, *, checksummed: bool) -> None:
        write_json(path, value, checksummed=checksummed)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "write_json", late)
    with pytest.raises(KeyboardInterrupt):
        save_tensors(tmp_path / "last", {n: t * 2 for n, t in TENSORS.items()})
    assert same(load_tensors(tmp_path / "last")[0], 2)


@pytest.mark.parametrize("which", [0, 1], ids=["index", "shard"])
def test_cut_file_is_detected(tmp_path: Path, which: int) -> None:
    path = save_tensors(tmp_path / "last", {"a": torch.arange(50)}, {"step": 1})[which]
    data = path.read_bytes()
    for length in range(len(data) - 1 if which == 0 else len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(RunError) as caught:
            load_tensors(tmp_path / "last")
        one_line(caught, path)
    path.write_bytes(data + b"x")
    with pytest.raises(RunError):
        load_tensors(tmp_path / "last")


@pytest.mark.parametrize("which", [0, 1, 2], ids=["index", "first shard", "second shard"])
def test_flipped_bit_is_detected(tmp_path: Path, which: int) -> None:
    path = save_tensors(tmp_path / "last", TENSORS, {"step": 1}, shard_mb=0.01)[which]
    data = path.read_bytes()
    for position in np.random.default_rng(which).integers(len(data) * 8, size=60):
        damaged = bytearray(data)
        damaged[position // 8] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        with pytest.raises(RunError) as caught:
            load_tensors(tmp_path / "last")
        one_line(caught, path)


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no tensors at .*last.json' is missing"):
        load_tensors(tmp_path / "last")
    index, shard = save_tensors(tmp_path / "last", TENSORS)
    shard.unlink()
    with pytest.raises(RunError, match="no such file"):
        load_tensors(tmp_path / "last")
    index.write_text('{"weight_map": {}}')
    with pytest.raises(RunError, match="no checksum"):
        load_tensors(tmp_path / "last")


class Trap:
    """Unpickling this would show."""

    sprung = False

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return setattr, (Trap, "sprung", True)


def test_pickle_is_refused_and_not_executed(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(Trap(), protocol))
        with pytest.raises(RunError, match="not a whole safetensors file") as caught:
            load_tensors(path)
        one_line(caught, path)
    torch.save({"a": torch.ones(3)}, path)
    with pytest.raises(RunError, match="a pickle or zip archive"):
        load_tensors(path)
    assert not Trap.sprung


def test_single_file_without_index(
    tmp_path: Path,
) -> None:
    path = tmp_path / "model.safetensors"
    safetensors.torch.save_file(TENSORS, path)
    assert same(load_tensors(path)[0])
    assert list(load_tensors(path, prefix="net.b")[0]) == ["net.b"]
    data = path.read_bytes()
    for length in [*range(200), *range(200, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(RunError):
            load_tensors(path)


def test_metadata_with_infinity_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'best\.loss'"):
        save_tensors(tmp_path / "last", TENSORS, {"best": {"loss": float("inf")}})
    assert not list(tmp_path.iterdir())


def test_concurrent_reader_sees_complete_sets(tmp_path: Path) -> None:
    save_tensors(
        tmp_path / "last",
        {"a": torch.zeros(2000), "b": torch.zeros(2000)},
        {"step": 0},
        shard_mb=0.01,
    )

    def write() -> None:
        for step in range(1, 60):
            values = {name: torch.full((2000,), float(step)) for name in "ab"}
            save_tensors(tmp_path / "last", values, {"step": step}, shard_mb=0.01)

    writer = threading.Thread(target=write)
    writer.start()
    reads = 0
    while writer.is_alive() or not reads:
        loaded, metadata = load_tensors(tmp_path / "last")
        assert all((tensor == metadata["step"]).all() for tensor in loaded.values())
        reads += 1
    writer.join()
    assert load_tensors(tmp_path / "last")[1] == {"step": 59}


# Content

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.int8,
    torch.bool,
    torch.complex64,
]


def identical(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    """Equal in names, order, shape, dtype and every bit (NaN too)."""
    return list(a) == list(b) and all(
        a[name].shape == b[name].shape
        and a[name].dtype == b[name].dtype
        and bits(a[name]) == bits(b[name])
        for name in a
    )


def bits(tensor: Tensor) -> list[int]:
    flat = tensor.detach().contiguous().reshape(-1)
    return list(flat.view(torch.uint8).tolist()) if flat.numel() else []


def filled(dtype: torch.dtype, *shape: int) -> Tensor:
    """Random bits, NaN included."""
    generator = torch.Generator().manual_seed(len(shape))
    count = torch.Size(shape).numel()
    if dtype == torch.bool:
        return torch.randint(2, (count,), generator=generator).bool().reshape(shape)
    data = torch.randint(256, (count * dtype.itemsize,), generator=generator, dtype=torch.uint8)
    return data.view(dtype).reshape(shape)


@pytest.mark.parametrize("shard_mb", [None, 0.01])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_shape_and_layout_round_trips(
    tmp_path: Path, dtype: torch.dtype, shard_mb: float | None
) -> None:
    tensors = {
        "scalar": filled(dtype),
        "empty": filled(dtype, 0),
        "empty rows": filled(dtype, 3, 0, 2),
        "one": filled(dtype, 1),
        "large": filled(dtype, 40, 33, 17),
        "transposed": filled(dtype, 50, 70).T,
        "channels-last": filled(dtype, 2, 3, 5, 7).to(memory_format=torch.channels_last),
        "expanded": filled(dtype, 1, 4).expand(3, 4),
        "every other": filled(dtype, 40)[::2],
    }
    files = save_tensors(tmp_path / "a", tensors, shard_mb=shard_mb)
    assert identical(load_tensors(tmp_path / "a")[0], tensors)
    assert (len(files) > 2) == (shard_mb is not None)


def test_shared_memory_and_parameters(tmp_path: Path) -> None:
    whole = torch.nn.Parameter(torch.arange(6.0))
    tensors = {"whole": whole, "again": whole, "half": whole[:3]}
    save_tensors(tmp_path / "a", tensors)
    loaded = load_tensors(tmp_path / "a")[0]
    assert identical(loaded, tensors)
    assert not loaded["whole"].requires_grad
    loaded["whole"].zero_()  # writable, and a copy
    assert loaded["again"][1] == 1.0


def test_a_file_ends_before_the_limit_and_tensors_stay_whole(tmp_path: Path) -> None:
    tensors = {
        name: torch.ones(size) for name, size in zip("abcd", (1000, 1000, 9000, 1), strict=True)
    }
    _, *shards = save_tensors(tmp_path / "a", tensors, shard_mb=0.01)
    names = [list(safetensors.torch.load_file(shard)) for shard in shards]
    assert names == [["a", "b"], ["c"], ["d"]]
    assert identical(load_tensors(tmp_path / "a")[0], tensors)


def test_a_prefix_reads_only_the_files_it_needs(tmp_path: Path) -> None:
    tensors = {"net.a": torch.ones(2000), "pool.b": torch.ones(9000), "net.c": torch.ones(2)}
    _, _, pool, _ = save_tensors(tmp_path / "a", tensors, shard_mb=0.01)
    pool.unlink()
    net = {name: t for name, t in tensors.items() if name.startswith("net.")}
    assert identical(load_tensors(tmp_path / "a", "net.")[0], net)
    with pytest.raises(RunError, match="no such file"):
        load_tensors(tmp_path / "a")


def test_tensors_cut_by_earlier_versions_are_joined(tmp_path: Path) -> None:
    parts = {
        "net.a#0": torch.arange(4.0),
        "net.a#1": torch.arange(4.0, 6.0),
        "net.b": torch.ones(1),
    }
    shards = []
    for number, (name, tensor) in enumerate(parts.items(), start=1):
        data = safetensors.torch.save({name: tensor})
        file = f"a-0123456789ab-{number:05}-of-00003.safetensors"
        (tmp_path / file).write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        shards.append({"file": file, "bytes": len(data), "sha256": digest, "holds": [name]})
    manifest = {"shards": shards, "split": {"net.a": [2, 3]}}
    index = {"format": 1, "metadata": {}, "weights": manifest}
    write_json(tmp_path / "a.json", index, checksummed=True)
    joined = {"net.a": torch.arange(6.0).reshape(2, 3), "net.b": torch.ones(1)}
    assert identical(load_tensors(tmp_path / "a", "net.")[0], joined)
    save_tensors(tmp_path / "a", joined)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("limit", [0, -1, 0.001, float("nan"), float("inf")])
def test_invalid_limits(tmp_path: Path, limit: float) -> None:
    with pytest.raises(UsageError, match=r"at least 0\.01 MB"):
        save_tensors(tmp_path / "a", {}, shard_mb=limit)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("a#0", torch.ones(1)),
        ("__metadata__", torch.ones(1)),
        ("a", torch.ones(1, dtype=torch.complex128)),
        ("a", torch.ones(2, 2).to_sparse()),
        ("a", [1.0]),
    ],
)
def test_what_safetensors_cannot_store_is_refused(
    tmp_path: Path, name: str, tensor: Tensor
) -> None:
    with pytest.raises(UsageError, match=name):
        save_tensors(tmp_path / "a", {"good": torch.ones(1), name: tensor})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "manifest",
    [
        None,
        [],
        {},
        {"shards": [{}], "split": {}},
        {"shards": [{"file": "../a.safetensors", "bytes": 1, "sha256": "", "holds": []}],
         "split": {}},
        {"shards": [], "split": {"a": 3}},
    ],
)  # fmt: skip
def test_invalid_manifests(tmp_path: Path, manifest: object) -> None:
    write_json(tmp_path / "a.json", {"format": 1, "weights": manifest}, checksummed=True)
    with pytest.raises(RunError, match="lists no tensors"):
        load_tensors(tmp_path / "a")
