"""A network as three ONNX graphs, for programs that have no Python.

    >>> exported = export_onnx("runs/m0", "m0-onnx")
    >>> exported.worst                          # largest difference from PyTorch that was met

    read.onnx      inputs -> features, memory     once a problem (no memory without recall)
    step.onnx      features, memory -> next       every iteration
    answer.onnx    features -> logits             when somebody asks
    network.json   which network, how to read its logits out, and a small worked example

Batch and space are dynamic in all three. Each export is run with onnxruntime and compared with
PyTorch, on sizes that the exporter has not seen, before anything is called done.

Shapes: B batch, C channels, W width, K classes, *S space in pixels.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from iterant.errors import MissingExtra, NetError
from iterant.export.checking import Checked, check, example
from iterant.export.source import Source, open_source
from iterant.nets import LocalRule, depth_of
from iterant.nets.grouped import Grouped, fits
from iterant.runs import write_atomic, write_json
from iterant.runs.files import make_folder
from iterant.runs.places import check_new_folder

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
    net, config = source.net, source.config
    if fits(net):
        net = Grouped(net)
    elif isinstance(net, LocalRule):
        net = net.written_out()  # shared weights are for learning; graphs hold them ready
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
