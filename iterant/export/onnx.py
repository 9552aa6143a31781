"""Export to three ONNX graphs, for programs without Python.

    >>> exported = export_onnx("runs/m0", "m0-onnx")
    >>> exported.worst                          # the largest difference from PyTorch

    read.onnx      inputs -> features, memory     once per problem (no memory without recall)
    step.onnx      features, memory -> next       every iteration
    answer.onnx    features -> logits             when an answer is needed
    network.json   configuration, readout, and a small example with its logits

Batch and space are dynamic in all three. The graphs are run with onnxruntime and compared with
PyTorch on sizes other than the traced one.

Shapes: B batch, C channels, *S space in pixels, W width, K classes.
"""

from __future__ import annotations

import importlib
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from iterant.engine import last, think
from iterant.errors import MissingExtra, NetError
from iterant.io import read_weights, write_atomic, write_json
from iterant.io.files import PathLike, check_new_folder, make_folder
from iterant.nets import Net, depth_of, parameter_count
from iterant.zoo.loading import folder_of, load

Space = tuple[int, ...]

STEPS, EXAMPLE_STEPS = 10, 4
"""The number of iterations that are compared, and of the example in the manifest."""

_SPACES: dict[int, tuple[tuple[int, Space], ...]] = {
    1: ((1, (7,)), (3, (33,)), (2, (150,))),
    2: ((1, (8, 8)), (3, (26, 22)), (2, (48, 62))),
}
"""Batch and space of the inputs that are compared, all different from the traced one."""

_TRACED: dict[int, Space] = {1: (12,), 2: (12, 16)}
"""The space that is traced; even, for networks that read blocks of 2 × 2 pixels."""

_EXAMPLE: dict[int, Space] = {1: (12,), 2: (8, 8)}

_TOLERANCE = 1e-3
"""Relative to the largest logit. Rounding in single precision gives about 1e-6."""


@dataclass(frozen=True)
class Exported:
    """The result of an export, and of the comparison with PyTorch."""

    folder: Path
    parameters: int
    """Of the network"""
    worst: float
    """The largest difference of logits, relative to the largest logit"""
    spaces: tuple[Space, ...]
    """Of the inputs that were compared, over `STEPS` iterations"""


class _Part(nn.Module):
    """A function of a network as a module, which is what the exporter takes."""

    def __init__(self, net: nn.Module, function: Callable[..., Any]) -> None:
        super().__init__()
        self.net, self.function = net, function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


def need_extra() -> None:
    """Raise an error if a package of the extra is missing."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        try:
            importlib.import_module(package)
        except ImportError:
            raise MissingExtra(package, "export", "exporting to ONNX") from None


@torch.no_grad()
def export_onnx(
    name_or_path: PathLike, out: PathLike, *, which: str | None = None, trust: bool = False
) -> Exported:
    """Write a trained network as ONNX graphs into a new or empty folder, and check them.

    ``which`` chooses a checkpoint of a run. ``trust``: import the user-defined network that the
    folder names.
    """
    need_extra()
    saved, _ = read_weights(folder_of(name_or_path), which)
    net, config = load(name_or_path, which=which, trust=trust), saved["config"]
    if depth_of(net) is not None:
        raise NetError(
            "this network is feed-forward: each of its iterations has weights of its own, and one "
            "step graph cannot hold them; export a recurrent network"
        )
    dims, channels = config.get("dims"), config.get("channels")
    if not isinstance(net, nn.Module) or dims not in _TRACED or channels is None:
        raise NetError(
            'to be exported, a network is an nn.Module that says "dims" (1 or 2) and "channels" in '
            f"its configuration; this one says {', '.join(map(str, config)) or 'nothing'}"
        )
    folder = make_folder(check_new_folder(out))
    inputs = torch.zeros(2, channels, *_TRACED[dims])  # (B, C, *S)

    def read(inputs: Tensor) -> tuple[Tensor, ...]:
        features, memory = net.start(inputs), net.read(inputs)
        return (features,) if memory is None else (features, memory)

    def step(features: Tensor, memory: Tensor | None = None) -> Tensor:
        return net.step(features, memory, 0)  # equal at every index: see `_compare`

    values = read(inputs)
    state = ["features", "memory"][: len(values)]
    parts: dict[str, tuple[nn.Module, tuple[Tensor, ...], list[str], list[str]]] = {
        "read": (_Part(net, read), (inputs,), ["inputs"], state),
        "step": (_Part(net, step), values, state, ["next"]),
        "answer": (_Part(net, net.answer), values[:1], ["features"], ["logits"]),
    }
    with nn.utils.parametrize.cached():  # shared weights go into the graphs, not their computation
        for part, values, *_ in parts.values():
            part(*values)
        graphs = {name: _graph(*part) for name, part in parts.items()}
    for name, content in graphs.items():
        write_atomic(folder / f"{name}.onnx", content)
    worst, version = _compare(net, graphs, dims, channels)
    spaces = tuple(space for _, space in _SPACES[dims])
    example = _random_inputs(channels, 1, _EXAMPLE[dims], seed=99)
    logits = last(think(net, example, steps=EXAMPLE_STEPS)).logits
    parameters = parameter_count(net)
    manifest = {
        "format": 1,
        "name": Path(name_or_path).resolve().name,
        "kind": saved["kind"],
        "config": config,
        "task": saved.get("task"),
        "dims": dims,
        "channels": channels,
        "readout": config.get("readout", "argmax"),
        "parameters": parameters,
        "graphs": {
            name: {
                "file": f"{name}.onnx",
                "bytes": len(content),
                "inputs": parts[name][2],
                "outputs": parts[name][3],
            }
            for name, content in graphs.items()
        },
        "checked": {"worst": worst, "steps": STEPS, "spaces": spaces, "onnxruntime": version},
        "example": {
            "shape": list(example.shape),
            "inputs": example.int().flatten().tolist(),
            "steps": EXAMPLE_STEPS,
            "logits": [float(f"{value:.6g}") for value in logits.flatten().tolist()],
        },
    }
    write_json(folder / "network.json", manifest)
    return Exported(folder, parameters, worst, spaces)


def _graph(
    part: nn.Module, values: tuple[Tensor, ...], inputs: list[str], outputs: list[str]
) -> bytes:
    """A part of a network as the bytes of an ONNX file."""
    dynamic = torch.export.Dim.DYNAMIC
    axes = tuple(dict.fromkeys((0, *range(2, value.dim())), dynamic) for value in values)
    # The exporter warns about its own deprecated calls and about missing torchvision.
    logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            part.eval(),
            values,
            input_names=inputs,
            output_names=outputs,
            dynamic_shapes=(axes,),  # of the one parameter *tensors
            dynamo=True,
            verbose=False,
        )
    assert program is not None  # noqa: S101 (always a program with dynamo=True)
    # Remove where each operation came from: it has file names of this machine.
    for node in program.model.graph:
        node.metadata_props.clear()
        node.doc_string = None
    content: bytes = program.model_proto.SerializeToString()
    return content


def _compare(net: Net, graphs: dict[str, bytes], dims: int, channels: int) -> tuple[float, str]:
    """Run the graphs with onnxruntime: the largest difference from PyTorch, and its version."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    read, step, answer = (
        onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        for graph in graphs.values()
    )
    worst = 0.0
    for number, (batch, space) in enumerate(_SPACES[dims]):
        inputs = _random_inputs(channels, batch, space, seed=number)
        features, *memory = read.run(None, {"inputs": inputs.numpy()})  # (B, W, *S) each
        recall = {"memory": memory[0]} if memory else {}
        for thought in think(net, inputs, steps=STEPS):
            (features,) = step.run(None, {"features": features, **recall})
            (logits,) = answer.run(None, {"features": features})  # (B, K, *S)
            scale = max(1.0, float(thought.logits.abs().max()))
            error = float((torch.from_numpy(logits) - thought.logits).abs().max()) / scale
            if not error <= _TOLERANCE:
                raise NetError(
                    f"the exported graphs and PyTorch differ by {error:.2g} of the largest "
                    f"logit at iteration {thought.step} on a problem of shape "
                    f"{tuple(inputs.shape)}; a step that depends on the iteration's number or "
                    "on the size it was traced with cannot be exported"
                )
            worst = max(worst, error)
    return worst, onnxruntime.__version__


def _random_inputs(channels: int, batch: int, space: Space, seed: int) -> Tensor:
    """(B, C, *S) random zeros and ones, similar to the inputs of all tasks."""
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, (batch, channels, *space), generator=rng).float()
