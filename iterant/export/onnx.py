"""A network as three ONNX graphs, for programs that have no Python.

    >>> exported = export_onnx("runs/m0", "m0-onnx")
    >>> exported.worst                          # largest difference from PyTorch that was met

    read.onnx      inputs -> features, memory     once a problem (no memory without recall)
    step.onnx      features, memory -> next       every iteration
    answer.onnx    features -> logits             when somebody asks
    network.json   which network, how to read its logits out, and a small worked example

Batch and space are dynamic in all three. Each export is run with onnxruntime and compared with
PyTorch, on sizes that the exporter has not seen, before anything is called done.

Exported graphs beside the network they came from: the same numbers at any size, or an error.

Shapes: B batch, C channels, *S space in pixels, W width, K classes.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
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
"""Iterations that are compared."""

_SPACES: dict[int, tuple[tuple[int, Space], ...]] = {
    1: ((1, (7,)), (3, (33,)), (2, (150,))),
    2: ((1, (8, 8)), (3, (26, 22)), (2, (48, 62))),
}
"""Batch and space of the problems compared; the exporter has seen none of them."""

_TOLERANCE = 1e-3
"""Of the largest logit. Single precision and another order of sums give 1e-6 or so."""

_EXAMPLE_SPACE: dict[int, Space] = {1: (12,), 2: (8, 8)}
_EXAMPLE_STEPS = 4


@dataclass(frozen=True)
class Checked:
    """How the graphs compare with PyTorch."""

    worst: float
    """The largest difference of logits, relative to the largest logit"""
    steps: int
    spaces: tuple[Space, ...]
    onnxruntime: str
    """Its version"""

    def described(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


def check(source: Source, graphs: Mapping[str, bytes]) -> Checked:
    """Run the graphs with onnxruntime and compare every iteration's logits with PyTorch's."""
    import onnxruntime

    sessions = {name: _session(content) for name, content in graphs.items()}
    shapes = _SPACES[source.config["dims"]]
    worst = 0.0
    for number, (batch, space) in enumerate(shapes):
        inputs = problems(source.config["channels"], batch, space, seed=number)
        worst = max(worst, _difference(source, sessions, inputs))
    return Checked(worst, STEPS, tuple(space for _, space in shapes), onnxruntime.__version__)


def problems(channels: int, batch: int, space: Space, seed: int) -> Tensor:
    """(B, C, *S) of zeros and ones: no task's problems, and like those of all of them."""
    chance = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, (batch, channels, *space), generator=chance).float()


def example(source: Source) -> dict[str, Any]:
    """A small problem and the logits after a few iterations, for other programs to compare."""
    config = source.config
    inputs = problems(config["channels"], 1, _EXAMPLE_SPACE[config["dims"]], seed=99)
    with torch.no_grad():
        *_, thought = think(source.net, inputs, steps=_EXAMPLE_STEPS)
    return {
        "shape": list(inputs.shape),
        "inputs": inputs.int().flatten().tolist(),
        "steps": _EXAMPLE_STEPS,
        "logits": [float(f"{value:.6g}") for value in thought.logits.flatten().tolist()],
    }


def _session(content: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _difference(source: Source, sessions: Mapping[str, Any], inputs: Tensor) -> float:
    """The largest relative difference over the iterations of one batch."""
    features, *memory = sessions["read"].run(None, {"inputs": inputs.numpy()})
    told = {"memory": memory[0]} if memory else {}
    worst = 0.0
    with torch.no_grad():
        for thought in think(source.net, inputs, steps=STEPS):
            (features,) = sessions["step"].run(None, {"features": features, **told})
            (logits,) = sessions["answer"].run(None, {"features": features})
            wanted = thought.logits
            scale = max(1.0, float(wanted.abs().max()))
            apart = float((torch.from_numpy(logits) - wanted).abs().max()) / scale
            if not apart <= _TOLERANCE:
                raise NetError(
                    f"the exported graphs and PyTorch differ by {apart:.2g} of the largest logit "
                    f"at iteration {thought.step} on a problem of shape {tuple(inputs.shape)}; "
                    "a step that depends on the iteration's number or on the size it was traced "
                    "with cannot be exported"
                )
            worst = max(worst, apart)
    return worst


FORMAT = 1
MANIFEST = "network.json"

_TRACED = {1: (12,), 2: (12, 16)}
"""The space that the exporter sees; even, for networks that read doubled squares."""


@dataclass(frozen=True)
class Exported:
    """What was written."""

    folder: Path
    source: Source
    checked: Checked

    @property
    def worst(self) -> float:
        """The largest difference from PyTorch, relative to the largest logit."""
        return self.checked.worst


class _Read(nn.Module):
    """The problem as features to start from and, with recall, what every step is told."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        memory = self.net.read(inputs)
        start = self.net.start(inputs)
        return (start,) if memory is None else (start, memory)


class _Step(nn.Module):
    """One iteration; the same at every index, which `check` makes sure of."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, features: Tensor, memory: Tensor | None = None) -> Tensor:
        after: Tensor = self.net.step(features, memory, 0)
        return after


class _Answer(nn.Module):
    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, features: Tensor) -> Tensor:
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
    given = source if isinstance(source, Source) else open_source(source, which)
    depth = depth_of(given.net)
    if depth is not None:
        raise NetError(
            "this network is feed-forward: each of its iterations has weights of its own, and one "
            "step graph cannot hold them; export a recurrent network"
        )
    if not isinstance(given.net, nn.Module):
        raise NetError("only networks that are nn.Modules can be exported")
    folder = check_new_folder(out)
    make_folder(folder)
    graphs = _graphs(given)
    for name, (content, _) in graphs.items():
        write_atomic(folder / f"{name}.onnx", content)
    checked = check(given, {name: content for name, (content, _) in graphs.items()})
    write_json(folder / MANIFEST, _manifest(given, graphs, checked))
    return Exported(folder, given, checked)


def _manifest(
    source: Source, graphs: Mapping[str, tuple[bytes, dict[str, list[str]]]], checked: Checked
) -> dict[str, Any]:
    return {
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
        "checked": checked.described(),
        "example": example(source),
    }


def _graphs(source: Source) -> dict[str, tuple[bytes, dict[str, list[str]]]]:
    """The graphs by name, with the names of what goes in and comes out."""
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
    told = ["features", "memory"][: 1 + len(memory)]
    return {
        "read": _graph(_Read(net), (inputs,), ["inputs"], told),
        "step": _graph(_Step(net), (start, *memory), told, ["next"]),
        "answer": _graph(_Answer(net), (start,), ["features"], ["logits"]),
    }


def _graph(
    part: nn.Module, values: tuple[Tensor, ...], given: list[str], made: list[str]
) -> tuple[bytes, dict[str, list[str]]]:
    """One part of a network as the bytes of an ONNX file."""
    dynamic = torch.export.Dim.DYNAMIC
    axes = {
        name: dict.fromkeys((0, *range(2, value.dim())), dynamic)
        for name, value in zip(given, values, strict=True)
    }
    with _quietly(), torch.no_grad():
        program = torch.onnx.export(
            part.eval(),
            values,
            input_names=given,
            output_names=made,
            dynamic_shapes=axes,
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise NetError("PyTorch exported nothing; try another version of torch or onnxscript")
    # Where each operation came from, file names of this machine among it: nobody else's concern.
    for node in program.model.graph:
        node.metadata_props.clear()
        node.doc_string = None
    content: bytes = program.model_proto.SerializeToString()
    return content, {"inputs": given, "outputs": made}


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without the exporter's remarks on its own deprecated calls and on torchvision's absence."""
    remarks = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = remarks.level
    remarks.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        remarks.setLevel(level)


def need_extra() -> None:
    """Refuse before any work what cannot be exported here."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        try:
            importlib.import_module(package)
        except ImportError:
            raise MissingExtra(package, "export", "exporting to ONNX") from None
