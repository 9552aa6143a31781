"""Many iterations in one launch: the CUDA program of ``program.cu``, compiled when needed.

    >>> program = RowProgram.of(rows, features)
    >>> if program is not None:
    ...     program.run(kernels, inputs, end=end, count=30, memory=memory, relu=True)

A convolution of a small batch takes a few microseconds, and so does a launch; in one launch the
next convolution's kernels are on their way while this one is computed. The program exists for
Hopper GPUs, half precision, and batches that fit on the card at once; everything else is computed
by single kernels.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from iterant.nets.fast.hopper.rows import Rows

_WIDE = 80
_HIGH = 128
_THREADS = 288
_STAGES = 8
_LAYERS = 8
_NVRTC = ("libnvrtc.so.{0}", "libnvrtc.so", "libnvrtc.so.{0}.0")
_SHARED_MEMORY = 227 << 10
"""Bytes that a block may have"""
_DYNAMIC_SHARED_MEMORY = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"""
_COMPILING = threading.Lock()
_BINARIES: dict[tuple[int, torch.dtype], bytes | None] = {}


class _Program(ctypes.Structure):
    """As in ``program.cu``."""

    _fields_ = [
        ("kernels", ctypes.c_uint64 * _LAYERS),
        *[(name, ctypes.c_uint64) for name in ("inputs", "gradients", "memory", "end", "counters")],
        *[(name, ctypes.c_longlong) for name in ("layer", "slot", "inner")],
        *[(name, ctypes.c_int) for name in ("ring", "count", "layers", "recall", "recall_relu",
                                            "backward", "rows", "strings", "length")],
    ]  # fmt: skip


def tiled(kernel: Tensor, channels: int) -> Tensor:
    """A kernel (N, C, 3) as the program reads it; the same numbers in another order."""
    tiles = channels // _WIDE
    parts = kernel.reshape(tiles, _WIDE // 8, 8, tiles, _WIDE // 8, 8, 3)
    return parts.permute(0, 3, 6, 4, 1, 2, 5)


def can_tile(weight: Tensor, width: int) -> bool:
    """Whether there may be a program for networks of this width on this device."""
    if not weight.is_cuda or weight.dtype not in (torch.float16, torch.bfloat16):
        return False
    hopper = torch.cuda.get_device_capability(weight.device) == (9, 0)
    return hopper and width % _WIDE == 0 and 2 * _WIDE <= width <= 6 * _WIDE


@dataclass(frozen=True)
class RowProgram:
    """The program for one layout of strings."""

    rows: Rows
    channels: int
    function: Any

    @classmethod
    def of(cls, rows: Rows, features: Tensor) -> RowProgram | None:
        """The program for features (B, C, L) in this layout; None where there is none."""
        channels = features.shape[1]
        if not can_tile(features, channels) or _HIGH // 2 % rows.length:
            return None
        at_once = _HIGH // rows.length
        blocks = rows.strings // at_once * (channels // _WIDE)
        processors = torch.cuda.get_device_properties(features.device).multi_processor_count
        if rows.strings % at_once or blocks > processors:
            return None
        if _shared_memory(channels, rows.length) > _SHARED_MEMORY:
            return None
        function = _function(channels, features.dtype, features.device)
        return None if function is None else cls(rows, channels, function)

    def run(
        self,
        kernels: Sequence[Tensor],
        inputs: Tensor,
        *,
        end: Tensor,
        count: int,
        memory: Tensor | None,
        relu: bool,
        gradients: Tensor | None = None,
    ) -> None:
        """Iterate ``count`` times from inputs[0, 0], or back through as many iterations.

        ``inputs`` (layers, slots, R, C) are those of every layer and iteration, ``gradients`` the
        same of every layer's output, with the last one given: then ``kernels`` are those of the
        way back. With fewer slots than iterations nothing is kept: two slots take turns. ``relu``
        says whether there is one after the recall layer.
        """
        layers, slots, size, channels = inputs.shape
        kept = slots >= count
        groups = self.rows.strings * self.rows.length // _HIGH
        counters = torch.zeros(2 * groups, dtype=torch.int32, device=inputs.device)
        program = _Program(
            kernels=(ctypes.c_uint64 * _LAYERS)(*[kernel.data_ptr() for kernel in kernels]),
            inputs=inputs.data_ptr(),
            gradients=0 if gradients is None else gradients.data_ptr(),
            memory=0 if memory is None else memory.data_ptr(),
            end=end.data_ptr(),
            counters=counters.data_ptr(),
            layer=slots * size * channels,
            slot=size * channels,
            inner=size * channels if kept else 0,
            ring=-1 if kept else 1,
            count=count,
            layers=layers,
            recall=layers % 2,
            recall_relu=int(relu),
            backward=int(gradients is not None),
            rows=size,
            strings=self.rows.strings,
            length=self.rows.length,
        )
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(program))
        blocks = groups * (channels // _WIDE)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        # Blocks wait for each other: a cooperative launch has all of them on the card at once.
        _check(
            _driver().cuLaunchCooperativeKernel(
                self.function, blocks, 1, 1, _THREADS, 1, 1,
                _shared_memory(channels, self.rows.length), stream, arguments,
            )
        )  # fmt: skip


def _shared_memory(channels: int, length: int) -> int:
    """Bytes: the ring of kernels, the rows of a group, and two barriers a stage."""
    rows = _HIGH // length * (length + 1) + 1
    return _STAGES * (_WIDE * _WIDE * 2 + 16) + rows * (channels * 2 + 16)


@functools.cache
def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _check(code: int) -> None:
    if code:
        said = ctypes.c_char_p()
        _driver().cuGetErrorString(code, ctypes.byref(said))
        raise RuntimeError(f"CUDA: {(said.value or b'unknown error').decode()}")


def prepare(channels: int, dtype: torch.dtype) -> None:
    """Begin to compile the program for networks of this width, beside whatever comes next."""
    threading.Thread(target=_binary, args=(channels, dtype), daemon=True).start()


def _binary(channels: int, dtype: torch.dtype) -> bytes | None:
    """The program's machine code, compiled once; None where it cannot be compiled."""
    with _COMPILING:
        key = channels, dtype
        if key not in _BINARIES:
            source = Path(__file__).with_name("program.cu").read_bytes()
            bfloat = int(dtype == torch.bfloat16)
            options = ["--gpu-architecture=sm_90a", f"-DCHANNELS={channels}", f"-DBFLOAT={bfloat}"]
            _BINARIES[key] = _compiled(source, options)
        return _BINARIES[key]


@functools.cache
def _function(channels: int, dtype: torch.dtype, device: torch.device) -> Any:
    """The program on a device, or None."""
    binary = _binary(channels, dtype)
    if binary is None:
        return None
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    with torch.cuda.device(device):
        _check(_driver().cuModuleLoadData(ctypes.byref(module), binary))
        _check(_driver().cuModuleGetFunction(ctypes.byref(function), module, b"run"))
        _check(_driver().cuFuncSetAttribute(function, _DYNAMIC_SHARED_MEMORY, _SHARED_MEMORY))
    return function


def _compiled(source: bytes, options: list[str]) -> bytes | None:
    """Machine code by NVIDIA's run-time compiler, which comes with torch; None without it."""
    compiler = _compiler()
    if compiler is None:
        return None
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    made = compiler.nvrtcCreateProgram(ctypes.byref(program), source, b"rows.cu", 0, None, None)
    if made or compiler.nvrtcCompileProgram(program, len(options), words):
        return None
    compiler.nvrtcGetCUBINSize(program, ctypes.byref(size))
    binary = ctypes.create_string_buffer(size.value)
    compiler.nvrtcGetCUBIN(program, binary)
    compiler.nvrtcDestroyProgram(ctypes.byref(program))
    return binary.raw


@functools.cache
def _compiler() -> Any:
    major = (torch.version.cuda or "").partition(".")[0]
    for name in _NVRTC:
        try:
            return ctypes.CDLL(name.format(major))
        except OSError:
            continue
    return None
