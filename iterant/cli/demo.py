"""``iterant demo``: the page on which networks think in the browser.

iterant demo
iterant demo --build
iterant demo --net runs/m0 --out page
"""

from __future__ import annotations

import shutil
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from iterant.cli.options import SEVERAL, console

if TYPE_CHECKING:
    from iterant.web import Page


def demo(
    *,
    port: int = 8000,
    host: str = "127.0.0.1",
    browser: bool = True,
    build: Annotated[bool, Parameter(negative="")] = False,
    net: Annotated[list[str] | None, SEVERAL] = None,
    out: Path | None = None,
    runtime: Path | None = None,
) -> None:
    """Show a page on which networks think in the browser: mazes, prefix sums, chess.

    Args:
        port: where to serve it; 0: any that is free
        host: this machine only by default; 0.0.0.0 shows it to the network
        browser: open it in a browser
        build: build the page first: fetches onnxruntime-web by npm
        net: build it with these runs in place of the shipped networks
        out: write the page into this new folder, for any web server, and stop
        runtime: the archive of onnxruntime-web, where there is no npm
    """
    page = _page(build or bool(net) or runtime is not None, net, out, runtime)
    screen = console()
    if page.stale:
        screen.print("this page was built from older files; build it again: iterant demo --build")
    if out is not None:
        screen.print(f"{page.folder}: {', '.join(page.networks)}; serve it with any web server")
        screen.print(f"for instance: python -m http.server --directory {page.folder}")
        return
    from iterant.web import page_server

    with page_server(page.folder, port, host) as server:
        # With port 0 the system chooses the port.
        address = f"http://{host}:{server.server_address[1]}/"
        screen.print(f"{address} ({', '.join(page.networks)}); leave with Ctrl-C")
        if browser:
            webbrowser.open(address)
        server.serve_forever()


def _page(build: bool, net: list[str] | None, out: Path | None, runtime: Path | None) -> Page:
    """The page to show: a new one, or the one that exists."""
    from iterant.io.files import check_new_folder
    from iterant.web import build_page, find_page
    from iterant.web.page import cached_page, open_page

    if not build:
        page = find_page()
        if out is None:
            return page
        return open_page(
            Path(shutil.copytree(page.folder, check_new_folder(out), dirs_exist_ok=True))
        )
    if out is not None:
        return build_page(out, networks=net, runtime=runtime, tell=_say)
    target = cached_page()
    # Built beside the old page, which stays until the new one is complete.
    fresh = target.with_name(f"{target.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    build_page(fresh, networks=net, runtime=runtime, tell=_say)
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return open_page(target)


def _say(text: str) -> None:
    console().print(text, soft_wrap=True)
