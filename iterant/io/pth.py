"""Read PyTorch's ``.pth`` files, which may come from anyone.

    >>> content = load_pth("model_best.pth")

`torch.load` with ``weights_only`` runs no code of a file. But it trusts the sizes that the file
states: a few kilobytes can decompress to gigabytes, claim more numbers than there are, or nest
tuples whose hash takes forever. So the file is checked before loading, and its tensors after.
Everything is memory-mapped, where the format allows it: the zip format that PyTorch writes since
2020.
"""

from __future__ import annotations

import io
import os
import pickletools
import warnings
import zipfile
from collections.abc import Iterator
from typing import IO, Any, BinaryIO

import torch
from torch import Tensor

from iterant.errors import DataError
from iterant.io.files import PathLike, one_line_errors, open_to_read

_LARGEST_PICKLE = 1 << 20
"""Bytes that describe the tensors, about 100 for each."""
_MOST_OBJECTS, _DEEPEST = 1_000_000, 100
"""Most objects and levels of nesting; an object counts each time that it is referred to."""
_CALLABLE = {"collections OrderedDict", "torch._utils _rebuild_parameter",
             "torch._utils _rebuild_tensor_v2"}  # fmt: skip
"""What the pickle of a state_dict calls, besides naming types of storage."""
_GET, _PUT = {"BINGET", "LONG_BINGET"}, {"BINPUT", "LONG_BINPUT"}


def load_pth(path: PathLike) -> Any:
    """The content of a file of dense tensors in dicts and lists; DataError for all else."""
    try:
        with one_line_errors("read", path), open_to_read(path) as file:
            size = os.fstat(file.fileno()).st_size
            is_zip = zipfile.is_zipfile(file)
            file.seek(0)
            (_check_zip if is_zip else _check_legacy)(file, size)
        with warnings.catch_warnings():
            # torch warns about foreign pickles before it refuses them.
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
        _check_tensors(content, size)
    except DataError:
        raise
    except Exception as error:  # on arbitrary bytes the restricted loader raises nearly anything
        raise DataError(f"not a file of tensors ({first_sentence(error)})") from error
    return content


def first_sentence(error: Exception) -> str:
    """What a library says is wrong with a file, without the advice that follows."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].split(". ")[0][:200]


def _check_zip(file: BinaryIO, size: int) -> None:
    """Members must be as PyTorch writes them: not compressed, from the first byte of the file on.

    The second makes sure that PyTorch finds the same members as Python, whatever lies before them.
    """
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        pickles = [member for member in members if member.filename.endswith("/data.pkl")]
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        first = min((member.header_offset for member in members), default=1)
        total = sum(member.file_size for member in members)
        if not stored or first or archive.comment or total > size or len(pickles) != 1:
            raise DataError("its members are compressed, repeated or not written by PyTorch")
        if pickles[0].file_size > _LARGEST_PICKLE:
            raise DataError("it describes too many tensors")
        with archive.open(pickles[0]) as stream:
            _check_pickle(stream, size=None)


def _check_legacy(file: BinaryIO, size: int) -> None:
    """A magic number, a version, the machine and the objects, a pickle each; then the numbers."""
    begin = io.BytesIO(file.read(_LARGEST_PICKLE))
    for _ in range(3):
        for _ in pickletools.genops(begin):
            pass
    _check_pickle(begin, size)


def _check_pickle(stream: IO[bytes], size: int | None) -> None:
    """Follow a pickle without building anything: what it calls, how much it nests.

    With ``size``, integers in it are at most that: in the old format they are sizes of storages,
    which are allocated before the file is found to be shorter.
    """
    # (objects, depth) of each value; None: a mark, which is an error where a value is expected.
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    argument: Any
    for opcode, argument, _ in pickletools.genops(stream):
        name = opcode.name
        if name == "GLOBAL" and argument not in _CALLABLE and not argument.endswith("Storage"):
            raise DataError(f"it names {argument.replace(' ', '.')[:100]}, which is not a tensor")
        if isinstance(argument, int) and size is not None and argument > size:
            raise DataError("it claims more numbers than it holds")
        if name in _GET:
            stack.append(memo[argument])
            continue
        if name in _PUT:
            memo[argument] = stack[-1]
            continue
        before = opcode.stack_before
        values = []
        if pickletools.markobject in before:
            while (value := stack.pop()) is not None:
                values.append(value)
            before = before[: before.index(pickletools.markobject)]
        values += [stack.pop() for _ in before]
        objects, depth = 1 + sum(v[0] for v in values), 1 + max((v[1] for v in values), default=0)
        if objects > _MOST_OBJECTS or depth > _DEEPEST:
            raise DataError("it nests too many objects")
        is_mark = [kind is pickletools.markobject for kind in opcode.stack_after]
        stack += [None if mark else (objects, depth) for mark in is_mark]


def _check_tensors(content: Any, size: int) -> None:
    """Tensors must be dense, without repeated elements, and together no more than the file."""
    total = 0
    for tensor in _tensors(content):
        if tensor.layout is not torch.strided or tensor.device.type != "cpu":
            raise DataError("it holds tensors that are not dense")
        total += tensor.numel() * tensor.element_size()
        if total > size:
            raise DataError("its tensors overlap or claim more numbers than it holds")


def _tensors(content: Any) -> Iterator[Tensor]:
    if isinstance(content, Tensor):
        yield content
    elif isinstance(content, dict):
        for value in content.values():
            yield from _tensors(value)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _tensors(value)
