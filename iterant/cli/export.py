"""``iterant export`` and ``iterant import``: networks for and from other programs.

iterant export runs/m0 --to onnx
iterant export mazes --to hub --out mazes-hub
iterant import model_best.pth --task mazes --out imported
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from iterant.cli.options import TaskName, task_of
from iterant.cli.output import echo


def export(
    run: str,
    /,
    *,
    to: Literal["onnx", "hub"],
    out: Path | None = None,
    which: str | None = None,
) -> None:
    """Write a trained network for other programs, checked against PyTorch.

    Args:
        run: the folder of a run or of weights, or a shipped name
        to: onnx: three graphs; hub: a folder in the Hugging Face layout
        out: the new folder [default: NAME-onnx or NAME-hub, here]
        which: checkpoint of a run: best, averaged (EMA) or last
    """
    from iterant.export import export_hub, export_onnx, open_source
    from iterant.export.onnx import STEPS

    source = open_source(run, which)
    target = out or Path(f"{source.name}-{to}")
    if to == "hub":
        export_hub(source, target)
        echo(
            f"{target}: README.md (read it before you publish it), config.json, model.safetensors;"
            f' load it with iterant.load("{target}")'
        )
    else:
        exported = export_onnx(source, target)
        sizes = ", ".join("×".join(map(str, space)) for space in exported.spaces)
        echo(
            f"{target}: read.onnx, step.onnx, answer.onnx, network.json; "
            f"{source.parameters:,} parameters, within {exported.worst:.1e} of PyTorch "
            f"over {STEPS} iterations at {sizes}"
        )


def import_(file: Path, /, *, task: TaskName, out: Path, group_norm: bool = False) -> None:
    """Convert a checkpoint of the paper's authors to a folder of weights.

    Args:
        file: a checkpoint of the paper's authors, such as *.pth
        out: the new folder for the weights
        group_norm: the network was trained with group norm (the file does not record it)
    """
    from iterant.export import import_checkpoint

    imported = import_checkpoint(file, task=task_of(task).spec, out=out, group_norm=group_norm)
    config = imported.config
    recall = "with recall" if config.recall else "without recall"
    norm = ", with group norm" if config.group_norm else ""
    epoch = "" if imported.epoch is None else f", after epoch {imported.epoch}"
    echo(
        f"{config.kind}, {config.dims}D, width {config.width}, {recall}{norm}, "
        f"{imported.parameters:,} parameters{epoch}: written to {imported.folder}"
    )
    echo(f'load it with iterant.load("{imported.folder}")')
