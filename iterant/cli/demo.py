"""``iterant demo``: a page on which networks run in the browser.

iterant demo
iterant demo --build
iterant demo --net runs/m0 --out page
"""

from __future__ import annotations

import shutil
import webbrowser
from pathlib import Path
from typing import Annotated

from iterant.cli.options import FLAG, SEVERAL
from iterant.cli.output import echo


def demo(
    *,
    port: int = 8000,
    host: str = "127.0.0.1",
    browser: bool = True,
    build: Annotated[bool, FLAG] = False,
    net: Annotated[list[str] | None, SEVERAL] = None,
    out: Path | None = None,
    runtime: Path | None = None,
) -> None:
    """Show a page on which networks run in the browser: mazes, prefix sums, chess.

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
        page = build_page(out, networks=net, runtime=runtime, log=echo)
    else:
        page = find_page()
        if out is not None:
            shutil.copytree(page.folder, check_new_folder(out), dirs_exist_ok=True)
    if page.stale:
        echo("this page was built from older files; build it again: iterant demo --build")
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
