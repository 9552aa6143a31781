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
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from iterant.engine import think
from iterant.errors import MissingExtra, NetError
from iterant.export.hub import Source, open_source
from iterant.io import write_atomic, write_json
from iterant.io.files import check_new_folder, make_folder
from iterant.nets import depth_of
from iterant.nets.fast.grouped import for_graphs

Space = tuple[int, ...]

STEPS = 10
"""The number of iterations that are compared."""

_SPACES: dict[int, tuple[tuple[int, Space], ...]] = {
    1: ((1, (7,)), (3, (33,)), (2, (150,))),
    2: ((1, (8, 8)), (3, (26, 22)), (2, (48, 62))),
}
"""Batch and space of the inputs that are compared; none is the traced one."""

_TOLERANCE = 1e-3
"""Relative to the largest logit. Rounding in single precision gives about 1e-6."""

_EXAMPLE_SPACE: dict[int, Space] = {1: (12,), 2: (8, 8)}
_EXAMPLE_STEPS = 4


@dataclass(frozen=True)
class Checked:
    """The comparison of the graphs with PyTorch."""

    worst: float
    """The largest difference of logits, relative to the largest logit"""
    steps: int
    spaces: tuple[Space, ...]
    onnxruntime: str
    """Its version"""


def check(source: Source, graphs: Mapping[str, bytes]) -> Checked:
    """Run the graphs with onnxruntime and compare the logits of every iteration with PyTorch."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    read, step, answer = (
        onnxruntime.InferenceSession(graphs[name], options, providers=["CPUExecutionProvider"])
        for name in ("read", "step", "answer")
    )
    shapes = _SPACES[source.config["dims"]]
    worst = 0.0
    for number, (batch, space) in enumerate(shapes):
        inputs = random_inputs(source.config["channels"], batch, space, seed=number)
        features, *memory = read.run(None, {"inputs": inputs.numpy()})
        recall = {"memory": memory[0]} if memory else {}
        with torch.no_grad():
            for thought in think(source.net, inputs, steps=STEPS):
                (features,) = step.run(None, {"features": features, **recall})
                (logits,) = answer.run(None, {"features": features})
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
    return Checked(worst, STEPS, tuple(space for _, space in shapes), onnxruntime.__version__)


def random_inputs(channels: int, batch: int, space: Space, seed: int) -> Tensor:
    """(B, C, *S) random zeros and ones, similar to the inputs of all tasks."""
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, (batch, channels, *space), generator=rng).float()


def example(source: Source) -> dict[str, Any]:
    """A small input and its logits after a few iterations, for other programs to compare."""
    config = source.config
    inputs = random_inputs(config["channels"], 1, _EXAMPLE_SPACE[config["dims"]], seed=99)
    with torch.no_grad():
        *_, thought = think(source.net, inputs, steps=_EXAMPLE_STEPS)
    return {
        "shape": list(inputs.shape),
        "inputs": inputs.int().flatten().tolist(),
        "steps": _EXAMPLE_STEPS,
        "logits": [float(f"{value:.6g}") for value in thought.logits.flatten().tolist()],
    }


FORMAT = 1
MANIFEST = "network.json"

_TRACED = {1: (12,), 2: (12, 16)}
"""The space that is traced; even, for networks that read blocks of 2 × 2 pixels."""


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    folder: Path
    source: Source
    checked: Checked

    @property
    def worst(self) -> float:
        """The largest difference from PyTorch, relative to the largest logit."""
        return self.checked.worst


class _Read(nn.Module):
    """The initial features and, with recall, the memory."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        memory = self.net.read(inputs)
        start = self.net.start(inputs)
        return (start,) if memory is None else (start, memory)


class _Step(_Read):
    """One iteration, equal at every index (see `check`)."""

    def forward(self, features: Tensor, memory: Tensor | None = None) -> Tensor:  # type: ignore[override]
        after: Tensor = self.net.step(features, memory, 0)
        return after


class _Answer(_Read):
    def forward(self, features: Tensor) -> Tensor:  # type: ignore[override]
        logits: Tensor = self.net.answer(features)
        return logits


def export_onnx(
    source: str | os.PathLike[str] | Source,
    out: str | os.PathLike[str],
    *,
    which: str | None = None,
) -> Exported:
    """Write a trained network as ONNX graphs into a new or empty folder, and check them."""
    need_extra()
    if not isinstance(source, Source):
        source = open_source(source, which)
    if depth_of(source.net) is not None:
        raise NetError(
            "this network is feed-forward: each of its iterations has weights of its own, and one "
            "step graph cannot hold them; export a recurrent network"
        )
    if not isinstance(source.net, nn.Module):
        raise NetError("only networks that are nn.Modules can be exported")
    folder = check_new_folder(out)
    make_folder(folder)
    graphs = _graphs(source)
    for name, (content, _) in graphs.items():
        write_atomic(folder / f"{name}.onnx", content)
    checked = check(source, {name: content for name, (content, _) in graphs.items()})
    manifest = {
        "format": FORMAT,
        "name": source.name,
        "kind": source.kind,
        "config": dict(source.config),
        "task": source.task,
        "dims": source.config["dims"],
        "channels": source.config["channels"],
        "readout": source.readout,
        "parameters": source.parameters,
        "graphs": {
            name: {"file": f"{name}.onnx", "bytes": len(content), **ends}
            for name, (content, ends) in graphs.items()
        },
        "checked": asdict(checked),
        "example": example(source),
    }
    write_json(folder / MANIFEST, manifest)
    return Exported(folder, source, checked)


def _graphs(source: Source) -> dict[str, tuple[bytes, dict[str, list[str]]]]:
    """The graphs, with the names of their inputs and outputs."""
    net, config = for_graphs(source.net), source.config
    try:
        space = _TRACED[config["dims"]]
        inputs = torch.zeros(2, config["channels"], *space)
    except KeyError:
        raise NetError(
            'to be exported, a network says "dims" (1 or 2) and "channels" in its configuration; '
            f"this one says {', '.join(map(str, config)) or 'nothing'}"
        ) from None
    with torch.no_grad():
        start, *memory = _Read(net)(inputs)
    state = ["features", "memory"][: 1 + len(memory)]
    return {
        "read": _graph(_Read(net), (inputs,), ["inputs"], state),
        "step": _graph(_Step(net), (start, *memory), state, ["next"]),
        "answer": _graph(_Answer(net), (start,), ["features"], ["logits"]),
    }


def _graph(
    part: nn.Module, values: tuple[Tensor, ...], inputs: list[str], outputs: list[str]
) -> tuple[bytes, dict[str, list[str]]]:
    """A part of a network as the bytes of an ONNX file."""
    dynamic = torch.export.Dim.DYNAMIC
    axes = {
        name: dict.fromkeys((0, *range(2, value.dim())), dynamic)
        for name, value in zip(inputs, values, strict=True)
    }
    # The exporter warns about its own deprecated calls and about missing torchvision.
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                part.eval(),
                values,
                input_names=inputs,
                output_names=outputs,
                dynamic_shapes=axes,
                dynamo=True,
                verbose=False,
            )
    finally:
        logger.setLevel(level)
    if program is None:
        raise NetError("PyTorch exported nothing; try another version of torch or onnxscript")
    # Remove where each operation came from: it has file names of this machine.
    for node in program.model.graph:
        node.metadata_props.clear()
        node.doc_string = None
    content: bytes = program.model_proto.SerializeToString()
    return content, {"inputs": inputs, "outputs": outputs}


def need_extra() -> None:
    """Raise an error if a package of the extra is missing."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        try:
            importlib.import_module(package)
        except ImportError:
            raise MissingExtra(package, "export", "exporting to ONNX") from None
