"""Files of bounded size, whatever the tensors."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from iterant.errors import RunError, UsageError
from iterant.io.checkpoint import checked_manifest, read_shards, remove_other_shards, write_shards

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
    """Every bit pattern may occur, NaN included; of bool only its two."""
    generator = torch.Generator().manual_seed(len(shape))
    count = torch.Size(shape).numel()
    if dtype == torch.bool:
        return torch.randint(2, (count,), generator=generator).bool().reshape(shape)
    data = torch.randint(256, (count * dtype.itemsize,), generator=generator, dtype=torch.uint8)
    return data.view(dtype).reshape(shape)


@pytest.mark.parametrize("shard_mb", [None, 0.01])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_and_shape_comes_back_bit_for_bit(
    tmp_path: Path, dtype: torch.dtype, shard_mb: float | None
) -> None:
    tensors = {
        "scalar": filled(dtype),
        "empty": filled(dtype, 0),
        "empty rows": filled(dtype, 3, 0, 2),
        "one": filled(dtype, 1),
        "large": filled(dtype, 40, 33, 17),
        "turned": filled(dtype, 50, 70).T,
        "channels-last": filled(dtype, 2, 3, 5, 7).to(memory_format=torch.channels_last),
        "spread": filled(dtype, 1, 4).expand(3, 4),
        "every other": filled(dtype, 40)[::2],
    }
    manifest = write_shards(tmp_path, "a", tensors, shard_mb)
    assert identical(read_shards(tmp_path, manifest), tensors)
    assert (len(manifest["shards"]) > 1) == (shard_mb is not None)


def test_views_of_one_memory_and_parameters_are_saved(tmp_path: Path) -> None:
    whole = torch.nn.Parameter(torch.arange(6.0))
    tensors = {"whole": whole, "again": whole, "half": whole[:3]}
    loaded = read_shards(tmp_path, write_shards(tmp_path, "a", tensors))
    assert identical(loaded, tensors)
    assert not loaded["whole"].requires_grad
    loaded["whole"].zero_()  # writable, and of its own
    assert loaded["again"][1] == 1.0


@given(
    sizes=st.lists(st.integers(0, 30_000), max_size=12),
    limit=st.sampled_from([0.01, 0.0123, 0.05]),
    name=st.text('aé"\\.\U0001f600', max_size=40),
)
@settings(deadline=None, max_examples=30)
def test_no_file_exceeds_the_limit(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: float, name: str
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    tensors = {f"{i}{name}": torch.full((size,), i % 256, dtype=torch.uint8)
               for i, size in enumerate(sizes)}  # fmt: skip
    manifest = write_shards(folder, "a", tensors, limit)
    assert all(path.stat().st_size <= limit * 1e6 for path in folder.iterdir())
    assert identical(read_shards(folder, manifest), tensors)


def test_a_tensor_of_many_axes_at_the_edge_of_the_limit(tmp_path: Path) -> None:
    for size in range(9_300, 9_900, 7):
        manifest = write_shards(
            tmp_path, "a", {"n": torch.zeros(1, 1, 1, 1, 1, size, dtype=torch.uint8)}, 0.01
        )
        assert all(shard["bytes"] <= 10_000 for shard in manifest["shards"])


def test_many_small_tensors_count_with_what_they_take_in_the_header(tmp_path: Path) -> None:
    tensors = {f"{i}": torch.zeros(1, 1, 1, 1, dtype=torch.uint8) for i in range(400)}
    manifest = write_shards(tmp_path, "a", tensors, 0.01)
    assert all(shard["bytes"] <= 10_000 for shard in manifest["shards"])
    assert identical(read_shards(tmp_path, manifest), tensors)


def test_a_prefix_reads_only_the_files_it_needs(tmp_path: Path) -> None:
    tensors = {"net.a": torch.ones(4000), "pool.b": torch.ones(9000), "net.c": torch.ones(2)}
    manifest = write_shards(tmp_path, "a", tensors, 0.01)
    for shard in manifest["shards"]:
        if all(key.startswith("pool.") for key in shard["holds"]):
            (tmp_path / shard["file"]).unlink()
    wanted = {name: t for name, t in tensors.items() if name.startswith("net.")}
    assert identical(read_shards(tmp_path, manifest, "net."), wanted)
    with pytest.raises(RunError, match="no such file"):
        read_shards(tmp_path, manifest)


@pytest.mark.parametrize("limit", [0, -1, 0.001, float("nan"), float("inf")])
def test_limits_that_cannot_be_kept_are_refused(tmp_path: Path, limit: float) -> None:
    with pytest.raises(UsageError, match=r"at least 0\.01 MB"):
        write_shards(tmp_path, "a", {}, limit)


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
def test_what_cannot_be_saved_is_named_and_nothing_is_written(
    tmp_path: Path, name: str, tensor: Tensor
) -> None:
    with pytest.raises(UsageError, match=name):
        write_shards(tmp_path, "a", {"good": torch.ones(1), name: tensor})
    assert not list(tmp_path.iterdir())


def test_only_sets_of_this_stem_are_removed(tmp_path: Path) -> None:
    kept = write_shards(tmp_path, "best", {"a": torch.ones(1)})
    write_shards(tmp_path, "best", {"a": torch.ones(1)})
    other = write_shards(tmp_path, "best-averaged", {"a": torch.ones(1)})
    (tmp_path / "best-mine.safetensors").touch()
    remove_other_shards(tmp_path, "best", {kept["shards"][0]["file"]})
    assert {path.name for path in tmp_path.iterdir()} == {
        kept["shards"][0]["file"],
        other["shards"][0]["file"],
        "best-mine.safetensors",
    }


@pytest.mark.parametrize(
    "value",
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
def test_manifests_that_are_none_or_leave_their_folder_are_refused(value: object) -> None:
    with pytest.raises(RunError, match="lists no tensors"):
        checked_manifest(value, Path("a.json"))
