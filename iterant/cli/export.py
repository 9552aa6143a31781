"""``iterant export``: a trained network for other programs and other people.

iterant export runs/m0 --to onnx
iterant export mazes --to hub --out mazes-hub
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from iterant.cli.options import console


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
        which: a checkpoint of a run: best, averaged or last
    """
    from iterant.export import export_hub, export_onnx, open_source
    from iterant.export.onnx import STEPS

    source = open_source(run, which)
    target = out or Path(f"{source.name}-{to}")
    if to == "hub":
        export_hub(source, target)
        text = (
            f"{target}: README.md (read it before you publish it), config.json, model.safetensors; "
            f'read back with iterant.load("{target}")'
        )
    else:
        done = export_onnx(source, target)
        sizes = ", ".join("×".join(map(str, space)) for space in done.spaces)
        text = (
            f"{target}: read.onnx, step.onnx, answer.onnx, network.json; "
            f"{source.parameters:,} parameters, within {done.worst:.1e} of PyTorch "
            f"over {STEPS} iterations at {sizes}"
        )
    console().print(text, soft_wrap=True)
