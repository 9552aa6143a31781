"""A set of tensors is replaced as a whole, and damage is always noticed."""

import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from iterant.errors import RunError, UsageError
from iterant.io import checkpoint as module
from iterant.io import checkpoint as shards
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


def test_tensors_and_metadata_come_back(tmp_path: Path) -> None:
    metadata = {"step": 7, "rates": [1e-3, 0.1 + 0.2], "random": {"state": [2**64 - 1]}}
    files = save_tensors(tmp_path / "last", TENSORS, metadata, shard_mb=0.01)
    assert sorted(files) == sorted(tmp_path.iterdir())
    assert files[0] == tmp_path / "last.json"
    loaded, found = load_tensors(tmp_path / "last")
    assert same(loaded)
    assert found == metadata


def test_a_new_set_replaces_the_old_and_leaves_others(tmp_path: Path) -> None:
    save_tensors(tmp_path / "best", TENSORS)
    before = set(tmp_path.iterdir())
    save_tensors(tmp_path / "last", TENSORS, shard_mb=0.01)
    files = save_tensors(tmp_path / "last", {n: t * 2 for n, t in TENSORS.items()})
    assert set(tmp_path.iterdir()) == before | set(files)
    assert same(load_tensors(tmp_path / "last")[0], 2)
    assert same(load_tensors(tmp_path / "best")[0])


def test_every_file_is_plain_safetensors(tmp_path: Path) -> None:
    _, shard = save_tensors(tmp_path / "last", TENSORS)
    assert same(safetensors.torch.load_file(shard))


def test_leftovers_of_a_killed_save_are_removed(tmp_path: Path) -> None:
    _, shard = save_tensors(tmp_path / "last", TENSORS)
    shard.with_name("last-0123456789ab-00001-of-00002.safetensors").touch()
    shard.with_name(".last-0123456789ab-00002-of-00002.safetensors.0123456789ab.tmp").touch()
    files = save_tensors(tmp_path / "last", TENSORS)
    assert set(tmp_path.iterdir()) == set(files)


@pytest.mark.parametrize("moment", ["first shard", "last shard", "index"])
def test_a_save_that_fails_keeps_the_old_set_and_nothing_of_the_new(
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
            shards,
            "write_atomic",
            lambda p, d: write_atomic(p, d) if next(calls) < good else fail(),
        )
    with pytest.raises(RunError, match="disk is full"):
        save_tensors(tmp_path / "last", new, {"step": 2}, shard_mb=0.01)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_first_save_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RunError("the disk is full; free some space")

    monkeypatch.setattr(module, "write_json", fail)
    with pytest.raises(RunError, match="disk is full"):
        save_tensors(tmp_path / "last", TENSORS, shard_mb=0.01)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_after_the_index_was_replaced_keeps_the_new_set(
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
def test_a_file_cut_anywhere_is_reported(tmp_path: Path, which: int) -> None:
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
def test_a_flipped_bit_is_reported(tmp_path: Path, which: int) -> None:
    path = save_tensors(tmp_path / "last", TENSORS, {"step": 1}, shard_mb=0.01)[which]
    data = path.read_bytes()
    for position in np.random.default_rng(which).integers(len(data) * 8, size=60):
        damaged = bytearray(data)
        damaged[position // 8] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        with pytest.raises(RunError) as caught:
            load_tensors(tmp_path / "last")
        one_line(caught, path)


def test_missing_and_foreign_files_are_reported(tmp_path: Path) -> None:
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


def test_a_pickle_under_our_name_is_refused_and_never_run(tmp_path: Path) -> None:
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


def test_a_single_file_of_other_origin_is_read_and_damage_to_its_form_reported(
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


def test_metadata_that_would_not_come_back_equal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'best\.loss'"):
        save_tensors(tmp_path / "last", TENSORS, {"best": {"loss": float("inf")}})
    assert not list(tmp_path.iterdir())


def test_a_reader_beside_a_writer_always_sees_one_whole_set(tmp_path: Path) -> None:
    save_tensors(tmp_path / "last", {"a": torch.zeros(4000)}, {"step": 0}, shard_mb=0.01)

    def write() -> None:
        for step in range(1, 60):
            values = {"a": torch.full((4000,), float(step))}
            save_tensors(tmp_path / "last", values, {"step": step}, shard_mb=0.01)

    writer = threading.Thread(target=write)
    writer.start()
    reads = 0
    while writer.is_alive() or not reads:
        loaded, metadata = load_tensors(tmp_path / "last")
        assert (loaded["a"] == metadata["step"]).all()
        reads += 1
    writer.join()
    assert load_tensors(tmp_path / "last")[1] == {"step": 59}
