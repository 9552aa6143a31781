"""``iterant export``: a trained network for other programs and other people.

iterant export runs/m0 --to onnx
iterant export mazes --to hub --out mazes-hub
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from iterant.cli.options import console


def export(
    run: Annotated[str, Parameter(help="the folder of a run or of weights, or a shipped name")],
    /,
    *,
    to: Annotated[
        Literal["onnx", "hub"],
        Parameter(help="onnx: three graphs; hub: a folder in the Hugging Face layout"),
    ],
    out: Annotated[
        Path | None, Parameter(help="the new folder [default: NAME-onnx or NAME-hub, here]")
    ] = None,
    which: Annotated[
        str | None, Parameter(help="a checkpoint of a run: best, averaged or last")
    ] = None,
) -> None:
    """Write a trained network for other programs, checked against PyTorch."""
    from iterant.export import export_hub, export_onnx, open_source

    source = open_source(run, which)
    target = out or Path(f"{source.name}-{to}")
    screen = console()
    if to == "hub":
        export_hub(source, target)
        screen.print(
            f"{target}: README.md (read it before you publish it), config.json, model.safetensors; "
            f'read back with iterant.load("{target}")',
            soft_wrap=True,
        )
        return
    done = export_onnx(source, target)
    sizes = ", ".join("×".join(map(str, space)) for space in done.checked.spaces)
    screen.print(
        f"{target}: read.onnx, step.onnx, answer.onnx, network.json; "
        f"{source.parameters:,} parameters, within {done.worst:.1e} of PyTorch "
        f"over {done.checked.steps} iterations at {sizes}",
        soft_wrap=True,
    )
