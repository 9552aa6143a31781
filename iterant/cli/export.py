"""``iterant export``, ``iterant import`` and ``iterant demo``: networks for other programs."""

from __future__ import annotations

import shutil
import webbrowser
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from iterant import bounds
from iterant.cli.options import FLAG, SEVERAL, TaskName, TrustCode
from iterant.cli.output import echo


def export(
    run: str,
    /,
    *,
    to: Literal["onnx", "hub"],
    out: Path | None = None,
    which: str | None = None,
    trust_code: TrustCode = False,
) -> None:
    """Write a trained network for other programs, checked against PyTorch.

    iterant export runs/m0 --to onnx
    iterant export mazes --to hub --out mazes-hub

    Args:
        run: the folder of a run or of weights, or a shipped name
        to: onnx: three graphs; hub: a folder in the Hugging Face layout
        out: the new folder [default: NAME-onnx or NAME-hub, here]
        which: checkpoint of a run: best, averaged (EMA) or last
    """
    from iterant.export import export_hub, export_onnx
    from iterant.export.onnx import STEPS

    target = out or Path(f"{Path(run).resolve().name}-{to}")
    if to == "hub":
        export_hub(run, target, which=which, trust=trust_code)
        echo(
            f"{target}: README.md (read it before you publish it), config.json, model.safetensors;"
            f' load it with iterant.load("{target}")'
        )
    else:
        exported = export_onnx(run, target, which=which, trust=trust_code)
        sizes = ", ".join("×".join(map(str, space)) for space in exported.spaces)
        echo(
            f"{target}: read.onnx, step.onnx, answer.onnx, network.json; "
            f"{exported.parameters:,} parameters, within {exported.worst:.1e} of PyTorch "
            f"over {STEPS} iterations at {sizes}"
        )


def import_(file: Path, /, *, task: TaskName, out: Path, group_norm: bool = False) -> None:
    """Convert a checkpoint of the paper's authors to a folder of weights.

    iterant import model_best.pth --task mazes --out imported

    Args:
        file: a checkpoint of the paper's authors, such as *.pth
        out: the new folder for the weights
        group_norm: the network was trained with group norm (the file does not record it)
    """
    from iterant.export import import_checkpoint
    from iterant.tasks.protocol import task as named_task

    spec = named_task(task).spec
    imported = import_checkpoint(file, task=spec, out=out, group_norm=group_norm)
    config = imported.config
    recall = "with recall" if config.recall else "without recall"
    norm = ", with group norm" if config.group_norm else ""
    epoch = "" if imported.epoch is None else f", after epoch {imported.epoch}"
    echo(
        f"{config.kind}, {config.dims}D, width {config.width}, {recall}{norm}, "
        f"{imported.parameters:,} parameters{epoch}: written to {imported.folder}"
    )
    echo(f'load it with iterant.load("{imported.folder}")')


def demo(
    *,
    port: Annotated[int, Parameter(validator=bounds.PORT)] = 8000,
    host: str = "127.0.0.1",
    browser: bool = True,
    build: Annotated[bool, FLAG] = False,
    net: Annotated[list[str] | None, SEVERAL] = None,
    out: Path | None = None,
    runtime: Path | None = None,
    trust_code: TrustCode = False,
) -> None:
    """Show a page on which networks run in the browser: mazes, prefix sums, chess.

    iterant demo
    iterant demo --build
    iterant demo --build --out site
    iterant demo --net runs/m0 --out page

    Args:
        port: of the server; 0: any free one
        host: address to listen on; 0.0.0.0 makes the page reachable from other machines
        browser: open the page in a browser
        build: build the page first; npm downloads onnxruntime-web
        net: build it with these runs instead of the shipped networks
        out: write the page into this new folder, for any web server, and stop
        runtime: archive of onnxruntime-web, to build without npm
    """
    from iterant.io.files import check_new_folder
    from iterant.web import build_page, find_page, page_server

    if build or net or runtime is not None:
        page = build_page(out, networks=net, runtime=runtime, log=echo, trust=trust_code)
    else:
        page = find_page()
        if out is not None:
            shutil.copytree(page.folder, check_new_folder(out), dirs_exist_ok=True)
    if out is not None:
        echo(f"{out}: {', '.join(page.networks)}; serve it with any web server")
        echo(f"for instance: python -m http.server --directory {out}")
        return
    with page_server(page.folder, port, host) as server:
        # With port 0 the system chooses the port.
        address = f"http://{host}:{server.server_address[1]}/"
        echo(f"{address} ({', '.join(page.networks)}); stop with Ctrl-C")
        if browser:
            webbrowser.open(address)
        server.serve_forever()
